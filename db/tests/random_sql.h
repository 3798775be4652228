// Random SQL over two small tables, a view and their indexes: expressions of every kind, joins,
// aggregates, compound and nested queries, windows, common table expressions, row changes.
// Deterministic: one seed, one sequence. Single-threaded.
#pragma once

#include "base/random.h"

#include <string>
#include <vector>

namespace db_fuzz {

class RandomSql {
 public:
  RandomSql(u64 seed, bool reals) : random_(seed), reals_(reals) {}

  std::vector<std::string> schema() {
    std::string real = reals_ ? "REAL" : "INT";
    std::vector<std::string> out = {
        "CREATE TABLE t0(a INTEGER, b TEXT, c " + real + ", d)",
        "CREATE TABLE t1(x INTEGER PRIMARY KEY, y TEXT COLLATE NOCASE, z NUMERIC)",
        "CREATE INDEX i0 ON t0(a, b)",
        "CREATE INDEX i1 ON t0(b DESC) WHERE a > 0",
        "CREATE INDEX i2 ON t1(y)",
        "CREATE VIEW v0 AS SELECT a AS p, b || 'v' AS q FROM t0 WHERE a <> 3"};
    for (int i = 0; i < 30; ++i) {
      out.push_back("INSERT INTO t0 VALUES(" + literal() + "," + literal() + "," + literal() + "," +
                    literal() + ")");
      out.push_back("INSERT OR IGNORE INTO t1 VALUES(" + std::to_string(random_.below(40)) + "," +
                    literal() + "," + literal() + ")");
    }
    return out;
  }

  std::string statement() {
    tables_.clear();
    switch (random_.below(14)) {
      case 10:
        return row_change();
      case 11:
        return "WITH k(p, q) AS (SELECT " + over({"t0"}, 2) + ", " + over({"t0"}, 1) +
               " FROM t0) SELECT p, q FROM k WHERE p " + pick({"=", "<", "IS NOT", ">="}) + " q";
      case 12:
        return "SELECT x, " + pick({"count(*)", "min(y)", "max(z)", "first_value(y)"}) + " OVER (" +
               pick({"", "PARTITION BY y ", "PARTITION BY z "}) + "ORDER BY x" +
               pick({"", " DESC", " ROWS 2 PRECEDING", " GROUPS 1 PRECEDING"}) +
               ") FROM t1 WHERE " + over({"t1"}, 2);
      case 13:
        return "SELECT s.k, t1.y FROM (SELECT " + over({"t0"}, 2) + " AS k FROM t0" +
               pick({"", " LIMIT 1000"}) + ") AS s" + join() + "t1 ON s.k = t1." +
               pick({"x", "y", "z"});
      case 0:
      case 1:
        return "SELECT " + expr(4);
      case 2:
      case 3:
        use("t0");
        return "SELECT " + expr(2) + ", " + expr(3) + " FROM t0 WHERE " + expr(3);
      case 4:
        use("t0");
        use("t1");
        return "SELECT a, x, " + expr(2) + " FROM t0" + join() + "t1 ON " + expr(2) + " WHERE " +
               expr(2);
      case 5:
        use("t0");
        return "SELECT " + pick({"b", "d", "a % 3", "typeof(d)"}) + " AS g, " + aggregate() + ", " +
               aggregate() + " FROM t0 WHERE " + expr(2) + " GROUP BY 1" +
               (random_.chance(0.4) ? " HAVING " + aggregate() + " IS NOT NULL" : "");
      case 6:
        use("t1");
        return "SELECT DISTINCT " + expr(2) + " FROM t1 WHERE " + expr(3);
      case 7:
        use("t0");
        return "SELECT " + expr(2) + " FROM t0 " +
               pick({"UNION", "UNION ALL", "EXCEPT", "INTERSECT"}) + " SELECT " + expr(2) +
               " FROM t0";
      case 8:
        use("t0");
        return "SELECT a FROM t0 WHERE a " + pick({"IN", "NOT IN"}) + " (SELECT x FROM t1 WHERE " +
               nested("t1") + ") AND " + expr(2);
      default:
        use("t0");
        return "SELECT a, b, (SELECT " + pick({"max(x)", "count(*)", "min(y)"}) +
               " FROM t1 WHERE " + pick({"x", "z"}) + " " + pick({"=", "<", ">="}) +
               " a) FROM t0 WHERE EXISTS (SELECT 1 FROM t1 WHERE y = b) OR " + expr(2);
    }
  }

  // An expression over the columns of the tables.
  std::string over(std::vector<std::string> tables, int depth) {
    tables_ = std::move(tables);
    return expr(depth);
  }
  base::Rng& random() { return random_; }

  // INSERT, UPDATE or DELETE, so that later statements see other rows.
  std::string row_change() {
    switch (random_.below(6)) {
      case 0:
        return pick({"INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE"}) + " INTO t1 VALUES(" +
               std::to_string(random_.below(40)) + "," + literal() + "," + literal() + ")";
      case 1:
        return "INSERT INTO t0 VALUES(" + literal() + "," + literal() + "," + literal() + "," +
               literal() + ")";
      case 2:
        return "UPDATE t0 SET " + pick({"a", "b", "c", "d"}) + " = " + over({"t0"}, 2) +
               " WHERE rowid % 7 = " + std::to_string(random_.below(7));
      case 3:
        return "UPDATE " + pick({"", "OR IGNORE ", "OR REPLACE "}) + "t1 SET " + pick({"y", "z"}) +
               " = " + over({"t1"}, 2) + " WHERE " + over({"t1"}, 2);
      case 4:
        return "DELETE FROM t0 WHERE rowid % 40 = " + std::to_string(random_.below(40));
      default:
        return "INSERT INTO t1 VALUES(" + std::to_string(random_.below(40)) + "," + literal() +
               "," + literal() +
               ") ON CONFLICT DO UPDATE SET z = " + pick({"excluded.z", "z", "y"});
    }
  }

 private:
  std::string pick(std::vector<std::string> options) {
    return options[random_.below(options.size())];
  }
  void use(const char* table) { tables_.push_back(table); }
  std::string join() { return pick({" JOIN ", " LEFT JOIN ", " CROSS JOIN "}); }
  std::string nested(const char* table) {
    auto outer = tables_;
    tables_ = {table};
    std::string out = expr(2);
    tables_ = outer;
    return out;
  }
  std::string aggregate() {
    std::string f =
        pick(reals_ ? std::vector<std::string>{"count", "sum", "min", "max", "total", "avg"}
                    : std::vector<std::string>{"count", "min", "max"});
    if (f == "sum" || f == "avg" || f == "total")
      return f + "(" + pick({"a", "c", "DISTINCT a", "a + 1"}) + ")";
    return random_.chance(0.2) ? "count(*)"
                               : f + "(" + (random_.chance(0.3) ? "DISTINCT " : "") + expr(1) + ")";
  }
  std::string literal() {
    switch (random_.below(reals_ ? 9 : 6)) {
      case 0:
        return "NULL";
      case 1:
      case 2:
        return std::to_string(random_.between(-3, 12));
      case 3:
        return pick({"'a'", "'B'", "'abc'", "''", "'12'", "'3x'", "' 7'", "'%b%'", "'Ab'"});
      case 4:
        return pick({"1000000", "-1", "0", "'0'"});
      case 5:
        return pick({"'a'", "5", "'5'", "NULL"});
      case 6:
        return pick({"x'61'", "x''", "x'62'"});  // Debian's SQLite does not match blobs with LIKE
      default:
        return pick({"0.5", "-1.5", "2.0", "1e3", "'2.5'", "100.25"});
    }
  }
  std::string leaf() {
    if (tables_.empty() || random_.chance(0.35)) return literal();
    return tables_[random_.below(tables_.size())] == "t0" ? pick({"a", "b", "c", "d"})
                                                          : pick({"x", "y", "z"});
  }
  std::string expr(int depth) {
    if (depth <= 0 || random_.chance(0.15)) return leaf();
    auto e = [&] { return expr(depth - 1); };
    switch (random_.below(17)) {
      case 0:
      case 1:
      case 2:
        return "(" + e() + " " + pick({"+", "-", "*", "%", "&", "|", "<<", ">>"}) + " " + e() + ")";
      case 3:
      case 4:
        return "(" + e() + " " + pick({"=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT"}) + " " +
               e() + ")";
      case 5:
        return "(" + e() + " " + pick({"AND", "OR"}) + " " + e() + ")";
      case 6:
        return pick({"-", "+", "~", "NOT "}) + e();
      case 7:
        return "(" + e() + pick({" BETWEEN ", " NOT BETWEEN "}) + e() + " AND " + e() + ")";
      case 8:
        return "(" + e() + pick({" IN (", " NOT IN ("}) + e() + "," + e() + "," + literal() + "))";
      case 9:
        return "CASE " + (random_.chance(0.5) ? e() : std::string()) + " WHEN " + e() + " THEN " +
               e() + (random_.chance(0.6) ? " ELSE " + e() : "") + " END";
      case 10:
        return "CAST(" + e() + " AS " +
               pick({"INTEGER", "TEXT", reals_ ? "BLOB" : "TEXT", "NUMERIC"}) + ")";
      case 11:
        return "(" + e() + " || " + e() + ")";
      case 12:
        return "(" + leaf() + pick({" LIKE ", " NOT LIKE ", " GLOB "}) +
               pick({"'a%'", "'%B'", "'_b_'", "'*a*'", "'[a-c]*'", "NULL"}) + ")";
      case 13:
        return "(" + e() + pick({" IS NULL", " NOT NULL", " COLLATE NOCASE", " ISNULL"}) + ")";
      case 14:
        return pick({"abs", "typeof", "length", "upper", "lower", "hex", "quote", "trim",
                     "unicode"}) +
               "(" + leaf() + ")";
      case 15:
        // Older libraries cut positions to 32 bits.
        return "substr(" + e() + ", " + (reals_ ? e() : "(" + e() + ") % 1000") + ")";
      default:
        return pick({"coalesce", "ifnull", "nullif", "min", "max", "instr"}) + "(" + e() + ", " +
               e() + ")";
    }
  }

  base::Rng random_;
  bool reals_;
  std::vector<std::string> tables_;
};

}  // namespace db_fuzz
