// Queries: points, ranges, scans, groups, sorts, windows, joins, recursion, JSON.
#include "bench/db/data.h"

namespace bench {
namespace {

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
  all.push_back(keyed("range of 50 by index, rows out",
                      "SELECT id, x, name FROM big WHERE k BETWEEN ?1 AND ?1 + 49",
                      Place::kMemory));
  for (auto [place, where] : {std::pair{Place::kMemory, ""}, {Place::kWalFile, ", WAL file"}}) {
    all.push_back({.group = "point",
                   .name = std::string("get by rowid, not prepared") + where,
                   .place = place,
                   .setup = make_big,
                   .run = [](Session& s, i64 rows) {
                     for (i64 i = 0; i < 10000 && !s.failed(); i++)
                       s.query("SELECT name, x FROM big WHERE id = " +
                               std::to_string(s.rng().below(static_cast<u64>(rows)) + 1));
                     return i64{10000};
                   }});
  }
  all.push_back(
      {.group = "point", .name = "prepare only", .setup = make_big, .run = [](Session& s, i64) {
         for (i64 i = 0; i < 10000 && !s.failed(); i++)
           Statement(s,
                     "SELECT g, count(*), sum(x) FROM big WHERE k > ? AND name LIKE 'a%' "
                     "GROUP BY g HAVING count(*) > 3 ORDER BY 2 DESC LIMIT 10");
         return i64{10000};
       }});
  all.push_back({.group = "point",
                 .name = "prepare only, never the same text",
                 .setup = make_big,
                 .run = [](Session& s, i64) {
                   for (i64 i = 0; i < 10000 && !s.failed(); i++)
                     Statement(s, "SELECT g, count(*), sum(x) AS s" +
                                      std::to_string(s.rng().below(1000000000)) +
                                      " FROM big WHERE k > ? AND name LIKE 'a%' GROUP BY g "
                                      "HAVING count(*) > 3 ORDER BY 2 DESC LIMIT 10");
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

// `tables` small tables, each row of one pointing at a row of the next.
Workload chain(int tables) {
  std::string from = "t1";
  std::string where = "t1.id > 0";
  for (int i = 2; i <= tables; i++) {
    from += ", t" + std::to_string(i);
    where += " AND t" + std::to_string(i) + ".id = t" + std::to_string(i - 1) + ".next";
  }
  return {.group = "join",
          .name = std::to_string(tables) + " tables in a chain",
          .setup =
              [tables](Session& s, i64 rows) {
                s.exec("BEGIN");
                for (int i = 1; i <= tables; i++) {
                  const std::string name = "t" + std::to_string(i);
                  s.exec("CREATE TABLE " + name + "(id INTEGER PRIMARY KEY, next INT, v INT)");
                  Statement insert(s, "INSERT INTO " + name + " VALUES(?,?,?)");
                  const i64 count = i == 1 ? rows / 10 : rows / 50;
                  for (i64 row = 1; row <= count; row++)
                    insert.bind(1, row)
                        .bind(2, static_cast<i64>(s.rng().below(static_cast<u64>(rows / 50))) + 1)
                        .bind(3, row)
                        .run();
                }
                s.exec("COMMIT");
              },
          .run =
              [sql = "SELECT count(*), sum(t" + std::to_string(tables) + ".v) FROM " + from +
                     " WHERE " + where](Session& s, i64) {
                s.query(sql);
                return i64{1};
              }};
}

void add_joins(std::vector<Workload>& all) {
  all.push_back(query("join", "two tables by rowid",
                      "SELECT count(*), sum(b.g) FROM side s JOIN big b ON b.id = s.big_id"));
  all.push_back(
      query("join", "four tables by rowid",
            "SELECT count(*) FROM side s JOIN big b ON b.id = s.big_id JOIN side t ON t.id = b.j "
            "JOIN big c ON c.id = t.big_id"));
  for (int tables : {8, 16, 64}) all.push_back(chain(tables));
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
  all.push_back(query("json", "json_each",
                      "SELECT count(*), sum(e.value) FROM big, json_each('[1,2,' || g || ',4]') e "
                      "WHERE big.id <= 3000"));
}

}  // namespace

void add_reads(std::vector<Workload>& all) {
  add_points(all);
  add_scans(all);
  add_joins(all);
}

}  // namespace bench
