// Writes: bulk loads, index builds, ranges, autocommit in each journal mode.
#include "bench/db/data.h"

namespace bench {
namespace {

using Setup = std::function<void(Session&, i64)>;

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
          .setup = [](Session& s, i64 rows) { make_big(s, rows / 10); },
          .run =
              [sql = std::move(sql), count, synchronous](Session& s, i64 rows) {
                s.exec("PRAGMA synchronous=" + synchronous);
                Statement statement(s, sql);
                for (i64 i = 0; i < count && !s.failed(); i++)
                  statement
                      .bind(1, static_cast<i64>(s.rng().below(static_cast<u64>(rows / 10)) + 1))
                      .run();
                return count;
              }};
}

void add_bulk_writes(std::vector<Workload>& all) {
  all.push_back(bulk_insert("bulk insert", make_log));
  all.push_back(bulk_insert("bulk insert, one index", [](Session& s, i64 rows) {
    make_log(s, rows);
    s.exec("CREATE INDEX log_a ON log(a)");
  }));
  all.push_back(bulk_insert("bulk insert, two indexes", make_log_indexed));
  all.push_back({.group = "write",
                 .name = "bulk insert, not prepared",
                 .setup = make_log,
                 .run = [](Session& s, i64 rows) {
                   s.exec("DELETE FROM log; BEGIN");
                   for (i64 i = 0; i < rows / 5 && !s.failed(); i++) {
                     u64 r = s.rng().next();
                     s.query("INSERT INTO log(a, b, c) VALUES(" + std::to_string(r >> 30) + ", '" +
                             word(r) + "', 1.5)");
                   }
                   s.exec("COMMIT");
                   return rows / 5;
                 }});
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
}

void add_changes(std::vector<Workload>& all) {
  all.push_back({.group = "write",
                 .name = "UPDATE and DELETE ranges",
                 .setup = make_big,
                 .run = [](Session& s, i64 rows) {
                   s.exec(
                       "BEGIN; UPDATE big SET k = k + 1 WHERE g < 10; DELETE FROM big WHERE g = "
                       "49; ROLLBACK");
                   return rows / 5;
                 }});
  all.push_back({.group = "write",
                 .name = "VACUUM",
                 .place = Place::kRollbackFile,
                 .setup = make_big,
                 .run = [](Session& s, i64 rows) {
                   s.exec("VACUUM");
                   return rows;
                 }});
  all.push_back(
      {.group = "write",
       .name = "UPDATE of an indexed column by rowid",
       .setup = make_big,
       .run = [](Session& s, i64 rows) {
         s.exec("BEGIN");
         {
           Statement update(s, "UPDATE big SET k = k + 7 WHERE id = ?1");
           for (i64 i = 0; i < 10000 && !s.failed(); i++)
             update.bind(1, static_cast<i64>(s.rng().below(static_cast<u64>(rows)) + 1)).run();
         }
         s.exec("COMMIT");
         return i64{10000};
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

void add_writes(std::vector<Workload>& all) {
  add_bulk_writes(all);
  add_changes(all);
}

}  // namespace bench
