#include "bench/db/workloads.h"

namespace bench {
namespace {

using Setup = std::function<void(Session&, i64)>;

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
Workload query(std::string group, std::string name, std::string sql, Place place = Place::kMemory) {
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
Workload keyed(std::string name, std::string sql, Place place, bool text_key = false) {
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

Workload bulk_insert(std::string name, Setup setup, Place place = Place::kMemory) {
  return {.group = "write",
          .name = std::move(name),
          .place = place,
          .setup = std::move(setup),
          .run = [](Session& s, i64 rows) {
            s.exec("DELETE FROM log; BEGIN");
            {
              Statement insert(s, "INSERT INTO log(a, b, c) VALUES(?,?,?)");
              for (i64 i = 0; i < rows / 2 && !s.failed(); i++) {
                u64 r = s.rng().next();
                insert.bind(1, static_cast<i64>(r >> 30)).bind(2, word(r)).bind(3, 1.5).run();
              }
            }
            s.exec("COMMIT");
            return rows / 2;
          }};
}

Workload autocommit(std::string name, std::string sql, Place place, std::string synchronous,
                    i64 count) {
  return {.group = "write",
          .name = std::move(name),
          .place = place,
          .wall = synchronous == "FULL",
          .setup =
              [synchronous](Session& s, i64 rows) {
                make_big(s, rows / 10);
                s.exec("PRAGMA synchronous=" + synchronous);
              },
          .run =
              [sql = std::move(sql), count](Session& s, i64 rows) {
                Statement statement(s, sql);
                for (i64 i = 0; i < count && !s.failed(); i++)
                  statement
                      .bind(1, static_cast<i64>(s.rng().below(static_cast<u64>(rows / 10)) + 1))
                      .run();
                return count;
              }};
}

void add_points(std::vector<Workload>& all) {
  for (auto [place, where] : {std::pair{Place::kMemory, ""},
                              {Place::kRollbackFile, ", rollback file"},
                              {Place::kWalFile, ", WAL file"}}) {
    all.push_back(
        keyed(std::string("get by rowid") + where, "SELECT name, x FROM big WHERE id = ?1", place));
    all.push_back(keyed(std::string("get by text index") + where,
                        "SELECT id, note FROM big WHERE name = ?1", place, true));
  }
  all.push_back(
      keyed("get by integer index", "SELECT id, note FROM big WHERE k = ?1", Place::kMemory));
  all.push_back(keyed("range of 100 by rowid",
                      "SELECT sum(g) FROM big WHERE id BETWEEN ?1 AND ?1 + 99", Place::kMemory));
  all.push_back({.group = "point",
                 .name = "get by rowid, not prepared",
                 .setup = make_big,
                 .run = [](Session& s, i64 rows) {
                   for (i64 i = 0; i < 10000 && !s.failed(); i++)
                     s.query("SELECT name, x FROM big WHERE id = " +
                             std::to_string(s.rng().below(static_cast<u64>(rows)) + 1));
                   return i64{10000};
                 }});
  all.push_back(
      {.group = "point", .name = "prepare only", .setup = make_big, .run = [](Session& s, i64) {
         for (i64 i = 0; i < 10000 && !s.failed(); i++)
           Statement(s,
                     "SELECT g, count(*), sum(x) FROM big WHERE k > ? AND name LIKE 'a%' "
                     "GROUP BY g HAVING count(*) > 3 ORDER BY 2 DESC LIMIT 10");
         return i64{10000};
       }});
  all.push_back({.group = "point",
                 .name = "open, first query, close",
                 .place = Place::kRollbackFile,
                 .setup = make_log,
                 .run = [](Session& s, i64) {
                   for (i64 i = 0; i < 500 && !s.failed(); i++) {
                     s.reopen();
                     s.query("SELECT count(*) FROM log");
                   }
                   return i64{500};
                 }});
}

void add_scans(std::vector<Workload>& all) {
  all.push_back(
      query("scan", "four aggregates", "SELECT count(*), sum(g), avg(x), max(k) FROM big"));
  all.push_back(query("scan", "count(*)", "SELECT count(*) FROM big"));
  all.push_back(
      query("scan", "filtered count", "SELECT count(*) FROM big WHERE g = 7 AND x > 100"));
  all.push_back(query("scan", "LIKE %qz%", "SELECT count(*) FROM big WHERE note LIKE '%qz%'"));
  all.push_back(query("scan", "string functions",
                      "SELECT sum(length(upper(name) || substr(note, 3, 5))) FROM big"));
  all.push_back(
      query("scan", "arithmetic", "SELECT sum((k * 3 + g) % 17), sum(x * 1.5 - g) FROM big"));
  all.push_back(query("scan", "all rows out", "SELECT id, k, x, name FROM big"));
  all.push_back(query("scan", "four aggregates, WAL file",
                      "SELECT count(*), sum(g), avg(x), max(k) FROM big", Place::kWalFile));
  all.push_back(query("group", "50 groups", "SELECT g, count(*), sum(x) FROM big GROUP BY g"));
  all.push_back(query("group", "many groups", "SELECT j, count(*), sum(k) FROM big GROUP BY j"));
  all.push_back(query("group", "two count(DISTINCT)",
                      "SELECT count(DISTINCT j), count(DISTINCT name) FROM big"));
  all.push_back(query("group", "UNION and EXCEPT",
                      "SELECT count(*) FROM (SELECT k FROM big UNION SELECT j FROM big EXCEPT "
                      "SELECT v FROM side)"));
  all.push_back(query("sort", "ORDER BY, LIMIT 10", "SELECT id FROM big ORDER BY x, id LIMIT 10"));
  all.push_back(query("sort", "whole table", "SELECT id, name FROM big ORDER BY x, name"));
  all.push_back(query(
      "window", "row_number",
      "SELECT sum(r) FROM (SELECT row_number() OVER (PARTITION BY g ORDER BY x) AS r FROM big)"));
  all.push_back(
      query("window", "running sum",
            "SELECT sum(r) FROM (SELECT sum(k) OVER (PARTITION BY g ORDER BY id) AS r FROM big)"));
}

void add_joins(std::vector<Workload>& all) {
  all.push_back(query("join", "two tables by rowid",
                      "SELECT count(*), sum(b.g) FROM side s JOIN big b ON b.id = s.big_id"));
  all.push_back(
      query("join", "four tables by rowid",
            "SELECT count(*) FROM side s JOIN big b ON b.id = s.big_id JOIN side t ON t.id = b.j "
            "JOIN big c ON c.id = t.big_id"));
  all.push_back(query("join", "without an index, integers",
                      "SELECT count(*) FROM side s JOIN side t ON s.big_id = t.big_id"));
  all.push_back(query("join", "without an index, texts",
                      "SELECT count(*) FROM side s JOIN side t ON s.label = t.label"));
  all.push_back(query("join", "EXISTS, no index",
                      "SELECT count(*) FROM big b WHERE b.id <= 300 AND EXISTS "
                      "(SELECT 1 FROM side s WHERE s.big_id = b.id)"));
  all.push_back(query("join", "scalar subquery, no index",
                      "SELECT sum((SELECT sum(v) FROM side s WHERE s.big_id = b.id)) FROM big b "
                      "WHERE b.id <= 100"));
  all.push_back(
      query("join", "IN (SELECT)",
            "SELECT count(*) FROM big WHERE id IN (SELECT big_id FROM side WHERE v < 100)"));
  all.push_back(
      query("recursive", "count to 200,000",
            "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 200000) "
            "SELECT sum(n) FROM c"));
  all.push_back(
      query("json", "extract",
            "SELECT sum(json_extract('{\"a\":' || g || ',\"b\":[1,' || k || ',3]}', '$.b[1]')) "
            "FROM big WHERE id <= 10000"));
}

void add_writes(std::vector<Workload>& all) {
  all.push_back(bulk_insert("bulk insert", make_log));
  all.push_back(bulk_insert("bulk insert, two indexes", make_log_indexed));
  all.push_back(bulk_insert("bulk insert, WAL file", make_log, Place::kWalFile));
  all.push_back({.group = "write",
                 .name = "INSERT ... SELECT",
                 .setup =
                     [](Session& s, i64 rows) {
                       make_big(s, rows);
                       s.exec("CREATE TABLE copy(id INTEGER PRIMARY KEY, k, g, x, name, note, j)");
                     },
                 .run =
                     [](Session& s, i64 rows) {
                       s.exec("DELETE FROM copy; INSERT INTO copy SELECT * FROM big");
                       return rows;
                     }});
  all.push_back({.group = "write",
                 .name = "CREATE INDEX",
                 .setup = make_big,
                 .run = [](Session& s, i64 rows) {
                   s.exec("DROP INDEX IF EXISTS big_note; CREATE INDEX big_note ON big(note)");
                   return rows;
                 }});
  all.push_back({.group = "write",
                 .name = "UPDATE and DELETE ranges",
                 .setup = make_big,
                 .run = [](Session& s, i64 rows) {
                   s.exec(
                       "BEGIN; UPDATE big SET k = k + 1 WHERE g < 10; DELETE FROM big WHERE g = "
                       "49; ROLLBACK");
                   return rows / 5;
                 }});
  const std::string update = "UPDATE big SET g = g + 1 WHERE id = ?1";
  all.push_back(autocommit("autocommit update", update, Place::kMemory, "OFF", 10000));
  all.push_back(
      autocommit("autocommit update, rollback, OFF", update, Place::kRollbackFile, "OFF", 2000));
  all.push_back(
      autocommit("autocommit update, rollback, FULL", update, Place::kRollbackFile, "FULL", 200));
  all.push_back(
      autocommit("autocommit update, WAL, NORMAL", update, Place::kWalFile, "NORMAL", 5000));
  all.push_back(autocommit("autocommit update, WAL, FULL", update, Place::kWalFile, "FULL", 500));
  all.push_back(
      autocommit("autocommit upsert",
                 "INSERT INTO side(id, v) VALUES(?1, 1) ON CONFLICT(id) DO UPDATE SET v = v + 1",
                 Place::kMemory, "OFF", 10000));
}

}  // namespace

std::vector<Workload> all_workloads() {
  std::vector<Workload> all;
  add_points(all);
  add_scans(all);
  add_joins(all);
  add_writes(all);
  return all;
}

}  // namespace bench
