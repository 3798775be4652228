#include "bench/db/data.h"

namespace bench {

std::string word(u64 value) {
  std::string text;
  for (int i = 0; i < 8; i++, value /= 26) text += static_cast<char>('a' + value % 26);
  return text;
}

// big: seven columns, an index on an integer and one on a text; small tables beside it.
void make_big(Session& s, i64 rows) {
  s.exec(
      "CREATE TABLE big(id INTEGER PRIMARY KEY, k INT, g INT, x REAL, name TEXT, note TEXT, j INT);"
      "CREATE TABLE side(id INTEGER PRIMARY KEY, big_id INT, v INT, label TEXT);"
      "BEGIN");
  {
    Statement insert(s, "INSERT INTO big VALUES(?,?,?,?,?,?,?)");
    for (i64 i = 1; i <= rows; i++) {
      u64 r = s.rng().next();
      insert.bind(1, i).bind(2, static_cast<i64>(r % static_cast<u64>(rows)));
      insert.bind(3, static_cast<i64>(r % 50)).bind(4, static_cast<f64>(r % 1000000) / 100);
      insert.bind(5, word(r)).bind(6, word(r >> 20) + " " + word(r >> 9) + " " + word(r >> 31));
      insert.bind(7, static_cast<i64>(r >> 40) % (rows / 4 + 1)).run();
    }
    Statement side(s, "INSERT INTO side VALUES(?,?,?,?)");
    for (i64 i = 1; i <= rows / 4; i++) {
      u64 r = s.rng().next();
      side.bind(1, i).bind(2, static_cast<i64>(r % static_cast<u64>(rows)) + 1);
      side.bind(3, static_cast<i64>(r >> 33) % 1000).bind(4, word(r)).run();
    }
  }
  s.exec("COMMIT; CREATE INDEX big_k ON big(k); CREATE INDEX big_name ON big(name)");
}

void make_log(Session& s, i64) {
  s.exec("CREATE TABLE log(id INTEGER PRIMARY KEY, a INT, b TEXT, c REAL)");
}

void make_log_indexed(Session& s, i64 rows) {
  make_log(s, rows);
  s.exec("CREATE INDEX log_a ON log(a); CREATE INDEX log_b ON log(b)");
}

// One query, run whole.
Workload query(std::string group, std::string name, std::string sql, Place place) {
  return {.group = std::move(group),
          .name = std::move(name),
          .place = place,
          .setup = make_big,
          .run = [sql = std::move(sql)](Session& s, i64) {
            s.query(sql);
            return i64{1};
          }};
}

// One prepared statement with a random key in ?1, many times.
Workload keyed(std::string name, std::string sql, Place place, bool text_key) {
  return {.group = "point",
          .name = std::move(name),
          .place = place,
          .setup = make_big,
          .run = [sql = std::move(sql), text_key](Session& s, i64 rows) {
            Statement statement(s, sql);
            const i64 count = 20000;
            for (i64 i = 0; i < count && !s.failed(); i++) {
              u64 key = s.rng().below(static_cast<u64>(rows)) + 1;
              text_key ? statement.bind(1, word(key * 7919)).run()
                       : statement.bind(1, static_cast<i64>(key)).run();
            }
            return count;
          }};
}

}  // namespace bench
