// Checks that need no second engine: a query must agree with others that say the same in another
// way. Prints every disagreement; exit 1 when there is one. Deterministic: one seed, one sequence.
//
//   metamorphic_fuzz LIBRARY [CHECKS] [SEED]
//
// NoREC: rows that WHERE p keeps, counted, against p computed for every row, where no index helps.
// TLP:   all rows, against those with p, with NOT p and with p IS NULL; for counts, minima and
//        DISTINCT as well. PQS: a row of which p is true must come back from WHERE p, together with
//        whatever else; p is first turned so that it is true of the row.
// The tables, their indexes and their rows change all the time.
#include "db/tests/loaded_engine.h"
#include "db/tests/random_sql.h"

#include <set>

namespace {

using db_fuzz::Engine;
using db_fuzz::RandomSql;
using Rows = std::vector<std::string>;

class Checker {
 public:
  Checker(const char* library, u64 seed) : engine_(library), sql_(seed, true) {
    for (const std::string& one : sql_.schema()) ask(one);
  }

  void check() {
    if (sql_.random().chance(0.05)) change();
    switch (sql_.random().below(3)) {
      case 0:
        return norec();
      case 1:
        return tlp();
      default:
        return pqs();
    }
  }
  long errors() const { return errors_; }
  long disagreements() const { return disagreements_; }

 private:
  struct From {
    std::string text;
    std::vector<std::string> tables;
    std::string columns;
  };

  Rows ask(const std::string& sql, bool merged = false) {
    std::string message;
    Rows rows = engine_.rows(sql, message, merged);
    failed_ = !message.empty();
    return rows;
  }

  void change() {
    if (sql_.random().chance(0.7)) {
      ask(sql_.row_change());
      return;
    }
    std::string name = "j" + std::to_string(sql_.random().below(4));
    ask("DROP INDEX IF EXISTS " + name);
    bool first = sql_.random().chance(0.5);
    std::string table = first ? "t0" : "t1";
    std::string index = "CREATE INDEX " + name + " ON " + table + "(" + sql_.over({table}, 1) +
                        (sql_.random().chance(0.3) ? " DESC" : "") + ", " + (first ? "c" : "z") +
                        ")";
    if (sql_.random().chance(0.3)) index += " WHERE " + sql_.over({table}, 1);
    ask(index);
    if (sql_.random().chance(0.2)) ask("ANALYZE");
  }

  From from() {
    switch (sql_.random().below(6)) {
      case 0:
        return {"t1", {"t1"}, "x, y, z"};
      case 1:
        return {"t0, t1", {"t0", "t1"}, "a, b, c, d, x, y, z"};
      case 2:
        return {"t0 LEFT JOIN t1 ON " + sql_.over({"t0", "t1"}, 2), {"t0", "t1"}, "a, b, x, y"};
      case 3:
        return {"t0 JOIN t1 ON t0.a = t1.x", {"t0", "t1"}, "a, b, c, x, z"};
      default:
        return {"t0", {"t0"}, "a, b, c, d"};
    }
  }

  void norec() {
    From f = from();
    std::string p = sql_.over(f.tables, 3);
    Rows fast = ask("SELECT count(*) FROM " + f.text + " WHERE " + p);
    if (failed_) return fail();
    Rows slow = ask("SELECT count(*) FROM (SELECT (" + p + ") IS TRUE AS hit FROM " + f.text +
                    " LIMIT -1) WHERE +hit");
    if (failed_) return fail();
    compare("NoREC", f, p, fast, slow);
  }

  void tlp() {
    From f = from();
    std::string p = sql_.over(f.tables, 3);
    std::string kind = "SELECT ";
    std::string what = f.columns;
    int form = static_cast<int>(sql_.random().below(4));
    if (form == 1) kind = "SELECT DISTINCT ";
    if (form == 2) what = "count(*)";
    if (form == 3) what = "max(" + f.columns.substr(0, 1) + ")";
    std::string head = kind + what + " FROM " + f.text;
    Rows whole = ask(head, true);
    if (failed_) return fail();
    Rows parts;
    for (const std::string& where : {p, "NOT (" + p + ")", "(" + p + ") IS NULL"}) {
      Rows part = ask(head + " WHERE " + where, true);
      if (failed_) return fail();
      parts.insert(parts.end(), part.begin(), part.end());
    }
    if (form == 1) parts = distinct(parts), whole = distinct(whole);
    if (form == 2) parts = {"|n:" + std::to_string(sum(parts))};
    if (form == 3) parts = {largest(parts)};
    std::sort(parts.begin(), parts.end());
    compare("TLP", f, head + " BY " + p, whole, parts);
  }

  void pqs() {
    From f = sql_.random().chance(0.5) ? From{"t0", {"t0"}, "a, b, c, d"}
                                       : From{"t1", {"t1"}, "x, y, z"};
    Rows ids = ask("SELECT rowid FROM " + f.text);
    if (ids.empty()) return;
    std::string id = ids[sql_.random().below(ids.size())].substr(3);
    std::string p = sql_.over(f.tables, 3);
    Rows truth = ask("SELECT (" + p + ") IS TRUE, (" + p + ") IS NULL FROM " + f.text +
                     " WHERE +rowid = " + id);
    if (failed_ || truth.size() != 1) return fail();
    std::string turned = truth[0] == "|1:1|1:0"   ? p
                         : truth[0] == "|1:0|1:1" ? "(" + p + ") IS NULL"
                                                  : "NOT (" + p + ")";
    Rows found = ask("SELECT rowid FROM " + f.text + " WHERE " + turned);
    if (failed_) return fail();
    bool present = std::find(found.begin(), found.end(), "|1:" + id) != found.end();
    compare("PQS", f, turned, {present ? "the row" : "without row " + id}, {"the row"});
  }

  static Rows distinct(const Rows& rows) {
    std::set<std::string> all(rows.begin(), rows.end());
    return {all.begin(), all.end()};
  }
  static long sum(const Rows& rows) {
    long total = 0;
    for (const std::string& one : rows) total += std::atol(one.c_str() + 3);
    return total;
  }
  // The greatest value by the engine's own order.
  std::string largest(const Rows& rows) {
    std::string best;
    for (const std::string& one : rows) {
      if (one == "|5:") continue;
      bool number = one.starts_with("|n:");
      bool better = best.empty() || (!number && best.starts_with("|n:"));
      if (number && best.starts_with("|n:"))
        better = std::atof(one.c_str() + 3) > std::atof(best.c_str() + 3);
      if (!number && !best.empty() && !best.starts_with("|n:")) better = one > best;
      if (better) best = one;
    }
    return best.empty() ? "|5:" : best;
  }

  void fail() { ++errors_; }
  void compare(const char* check, const From& f, const std::string& p, const Rows& one,
               const Rows& other) {
    if (one == other) return;
    if (++disagreements_ > 20) return;
    std::printf("%s disagrees: FROM %s, %s\n  %zu rows against %zu, first %s against %s\n", check,
                f.text.c_str(), p.c_str(), one.size(), other.size(),
                one.empty() ? "(none)" : one[0].c_str(),
                other.empty() ? "(none)" : other[0].c_str());
  }

  Engine engine_;
  RandomSql sql_;
  bool failed_ = false;
  long errors_ = 0;
  long disagreements_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s LIBRARY [CHECKS] [SEED]\n", argv[0]);
    return 2;
  }
  long checks = argc > 2 ? std::atol(argv[2]) : 5000;
  u64 seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  Checker checker(argv[1], seed);
  for (long i = 0; i < checks; ++i) checker.check();
  std::printf("%ld checks with seed %llu: %ld disagreements (%ld ended in an error)\n", checks,
              static_cast<unsigned long long>(seed), checker.disagreements(), checker.errors());
  return checker.disagreements() == 0 ? 0 : 1;
}
