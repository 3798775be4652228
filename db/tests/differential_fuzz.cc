// Random statements on two SQLite-compatible libraries in one process; counts statements and
// differences and prints each. Deterministic: one seed, one sequence.
//
// FUZZ_TRACE=1 writes each statement to stderr before it runs.
//
//   differential_fuzz FLEETDB_LIBRARY [SQLITE_LIBRARY] [STATEMENTS] [SEED]
//
// Compared: success or failure, the number of columns, and the rows with their types, as multisets.
// Libraries before 3.53 print reals in another way, so against them no reals and no blobs are made.
#include "base/random.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

class Engine {
 public:
  explicit Engine(const char* path) {
    void* library = dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "cannot load %s: %s\n", path, dlerror());
      std::exit(2);
    }
    load(library, open_, "sqlite3_open");
    load(library, prepare_, "sqlite3_prepare_v2");
    load(library, step_, "sqlite3_step");
    load(library, finalize_, "sqlite3_finalize");
    load(library, errmsg_, "sqlite3_errmsg");
    load(library, count_, "sqlite3_column_count");
    load(library, type_, "sqlite3_column_type");
    load(library, int64_, "sqlite3_column_int64");
    load(library, double_, "sqlite3_column_double");
    load(library, blob_, "sqlite3_column_blob");
    load(library, bytes_, "sqlite3_column_bytes");
    load(library, version_, "sqlite3_libversion_number");
    open_(":memory:", &db_);
  }
  int version() const { return version_(); }

  // Rows as text, sorted; or "error".
  std::string run(const std::string& sql, std::string& message) {
    void* stmt = nullptr;
    message.clear();
    if (prepare_(db_, sql.c_str(), -1, &stmt, nullptr) != 0) {
      message = errmsg_(db_);
      return "error";
    }
    std::vector<std::string> rows;
    int code = 0;
    bool merged = false;
    for (const char* word : {"GROUP BY", "DISTINCT", "UNION ", "EXCEPT", "INTERSECT"}) {
      merged = merged || sql.find(word) != std::string::npos;
    }
    while ((code = step_(stmt)) == 100 && rows.size() < 5000) rows.push_back(row(stmt, merged));
    if (code != 101 && code != 100) message = errmsg_(db_);
    std::string out = "columns " + std::to_string(count_(stmt)) + "\n";
    finalize_(stmt);
    if (!message.empty()) return "error";
    std::sort(rows.begin(), rows.end());
    for (const std::string& one : rows) out += one + "\n";
    return out;
  }

 private:
  template <class F>
  static void load(void* library, F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
  }

  std::string row(void* stmt, bool merged) {
    std::string out;
    for (int i = 0; i < count_(stmt); ++i) {
      int type = type_(stmt, i);
      // 1, 1.0 and -0.0, 0.0 are equal to GROUP BY and DISTINCT, and which of them stands for the
      // group is nobody's promise: where rows are merged, numbers compare by value.
      bool number = type == 1 || type == 2;
      out += number && merged ? "|n:" : "|" + std::to_string(type) + ":";
      if (type == 1) out += std::to_string(int64_(stmt, i));
      if (type == 2) {
        char text[40];
        std::snprintf(text, sizeof text, "%.15g", double_(stmt, i) + 0.0);
        out += text;
      }
      if (type == 3 || type == 4) {
        const void* data = blob_(stmt, i);
        if (data != nullptr)
          out.append(static_cast<const char*>(data), static_cast<size_t>(bytes_(stmt, i)));
      }
    }
    return out;
  }

  void* db_ = nullptr;
  int (*open_)(const char*, void**) = nullptr;
  int (*prepare_)(void*, const char*, int, void**, const char**) = nullptr;
  int (*step_)(void*) = nullptr;
  int (*finalize_)(void*) = nullptr;
  const char* (*errmsg_)(void*) = nullptr;
  int (*count_)(void*) = nullptr;
  int (*type_)(void*, int) = nullptr;
  long long (*int64_)(void*, int) = nullptr;
  double (*double_)(void*, int) = nullptr;
  const void* (*blob_)(void*, int) = nullptr;
  int (*bytes_)(void*, int) = nullptr;
  int (*version_)() = nullptr;
};

class Generator {
 public:
  Generator(u64 seed, bool reals) : random_(seed), reals_(reals) {}

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
    switch (random_.below(10)) {
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

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FLEETDB_LIBRARY [SQLITE_LIBRARY] [STATEMENTS] [SEED]\n",
                 argv[0]);
    return 2;
  }
  Engine ours(argv[1]);
  Engine theirs(argc > 2 && *argv[2] != 0 ? argv[2] : "libsqlite3.so.0");
  long statements = argc > 3 ? std::atol(argv[3]) : 20000;
  u64 seed = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1;
  Generator generator(seed, theirs.version() >= 3053000);
  std::string message;
  std::string other;
  for (const std::string& sql : generator.schema()) {
    ours.run(sql, message);
    theirs.run(sql, other);
  }
  long differences = 0;
  long errors = 0;
  for (long i = 0; i < statements; ++i) {
    std::string sql = generator.statement();
    if (std::getenv("FUZZ_TRACE") != nullptr) std::fprintf(stderr, "%s;\n", sql.c_str());
    std::string a = ours.run(sql, message);
    std::string b = theirs.run(sql, other);
    errors += b == "error" ? 1 : 0;
    if (a == b) continue;
    if (++differences > 20) continue;
    // The first row that differs.
    size_t at = static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                    a.begin());
    size_t line = at == 0 ? 0 : a.rfind('\n', at - 1) + 1;
    auto row_at = [line](const std::string& text) {
      return line < text.size() ? text.substr(line, text.find('\n', line) - line)
                                : std::string("(end)");
    };
    std::printf("DIFFERENT %s;\n  ours:   %s %s\n  theirs: %s %s\n", sql.c_str(), row_at(a).c_str(),
                message.c_str(), row_at(b).c_str(), other.c_str());
  }
  std::printf(
      "%ld statements with seed %llu against SQLite %d: %ld differences (%ld were errors)\n",
      statements, static_cast<unsigned long long>(seed), theirs.version(), differences, errors);
  return differences == 0 ? 0 : 1;
}
