#include "team/ledger/projection.h"

#include <array>

namespace team {
namespace {

using base::Json;

constexpr const char* kSchema = R"sql(
CREATE TABLE IF NOT EXISTS event (
  seq INTEGER PRIMARY KEY, run TEXT NOT NULL, stream TEXT NOT NULL, ver INTEGER NOT NULL,
  type TEXT NOT NULL, schema_v INTEGER NOT NULL, at_us INTEGER NOT NULL, actor TEXT NOT NULL,
  cause INTEGER NOT NULL, fence INTEGER NOT NULL, body TEXT NOT NULL,
  prev TEXT NOT NULL, hash TEXT NOT NULL, UNIQUE (stream, ver));
CREATE TABLE IF NOT EXISTS blob (hash TEXT PRIMARY KEY, size INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS effect (
  idem TEXT PRIMARY KEY, kind TEXT NOT NULL, class TEXT NOT NULL, stream TEXT NOT NULL,
  state TEXT NOT NULL, intended INTEGER NOT NULL, done INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS lease (
  task TEXT PRIMARY KEY, worker TEXT NOT NULL, fence INTEGER NOT NULL, attempt TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS budget (scope TEXT PRIMARY KEY, cap INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS usage (
  call TEXT PRIMARY KEY, run TEXT NOT NULL, stage TEXT NOT NULL, role TEXT NOT NULL,
  task TEXT NOT NULL, attempt TEXT NOT NULL,
  backend TEXT NOT NULL, model_asked TEXT NOT NULL, model_got TEXT NOT NULL,
  in_fresh INTEGER NOT NULL, in_cached INTEGER NOT NULL, in_written INTEGER NOT NULL,
  out_text INTEGER NOT NULL, out_reason INTEGER NOT NULL, estimated INTEGER NOT NULL,
  price TEXT NOT NULL, cost_nusd INTEGER NOT NULL, ttft_ms INTEGER NOT NULL,
  total_ms INTEGER NOT NULL,
  outcome TEXT NOT NULL, seq INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS criterion (
  id TEXT PRIMARY KEY, text TEXT NOT NULL, visibility TEXT NOT NULL, state TEXT NOT NULL,
  last_evidence TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS task (
  id TEXT PRIMARY KEY, title TEXT NOT NULL, role TEXT NOT NULL, state TEXT NOT NULL,
  bounces INTEGER NOT NULL, head TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS dep (task TEXT NOT NULL, needs TEXT NOT NULL, PRIMARY KEY (task, needs));
CREATE TABLE IF NOT EXISTS touch (task TEXT NOT NULL, glob TEXT NOT NULL, PRIMARY KEY (task, glob));
CREATE TABLE IF NOT EXISTS covers (
  task TEXT NOT NULL, criterion TEXT NOT NULL, PRIMARY KEY (task, criterion));
CREATE TABLE IF NOT EXISTS evidence (
  id TEXT PRIMARY KEY, gate TEXT NOT NULL, tree TEXT NOT NULL, command TEXT NOT NULL,
  profile TEXT NOT NULL, verdict TEXT NOT NULL, num INTEGER NOT NULL, denom INTEGER NOT NULL,
  list TEXT NOT NULL, log TEXT NOT NULL, wall_us INTEGER NOT NULL, cpu_us INTEGER NOT NULL,
  rss INTEGER NOT NULL, seq INTEGER NOT NULL);
)sql";

constexpr std::array<const char*, 10> kProjections = {"effect",    "lease",   "budget", "usage",
                                                      "criterion", "task",    "dep",    "touch",
                                                      "covers",    "evidence"};

base::Status project_effect(Database& db, const Event& event) {
  const Json& body = event.body;
  if (event.type == "effect.intended") {
    Statement insert =
        TRY(db.prepare("INSERT INTO effect (idem, kind, class, stream, state, intended, done) "
                       "VALUES (?,?,?,?,?,?,0)"));
    return insert.bind(body["idem"].as_string())
        .bind(body["kind"].as_string())
        .bind(body["class"].as_string())
        .bind(event.stream)
        .bind("intended")
        .bind(event.seq)
        .run();
  }
  Statement update = TRY(db.prepare("UPDATE effect SET state = ?, done = ? WHERE idem = ?"));
  return update.bind(move_of(event)).bind(event.seq).bind(body["idem"].as_string()).run();
}

base::Status project_usage(Database& db, const std::string& run, const Event& event) {
  const Json& body = event.body;
  const Json& usage = body["usage"];
  Statement insert = TRY(db.prepare(
      "INSERT INTO usage (call, run, stage, role, task, attempt, backend, model_asked, model_got, "
      "in_fresh, in_cached, in_written, out_text, out_reason, estimated, price, cost_nusd, "
      "ttft_ms, "
      "total_ms, outcome, seq) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
  insert.bind(body["call"].as_string()).bind(run);
  for (const char* key :
       {"stage", "role", "task", "attempt", "backend", "model_asked", "model_got"}) {
    insert.bind(body[key].as_string());
  }
  for (const char* key : {"in_fresh", "in_cached", "in_written", "out_text", "out_reason"}) {
    insert.bind(usage[key].as_int());
  }
  return insert.bind(i64{usage["estimated"].as_bool()})
      .bind(body["price"].as_string())
      .bind(body["cost_nusd"].as_int())
      .bind(body["ttft_ms"].as_int())
      .bind(body["total_ms"].as_int())
      .bind(body["outcome"].as_string())
      .bind(event.seq)
      .run();
}

base::Status project_links(Database& db, const char* sql, const std::string& task,
                           const Json& list) {
  for (const Json& item : list.items()) {
    Statement insert = TRY(db.prepare(sql));
    TRY(insert.bind(task).bind(item.as_string()).run());
  }
  return {};
}

base::Status project_lease(Database& db, const Event& event) {
  const std::string& id = event.body["id"].as_string();
  Statement release = TRY(db.prepare("DELETE FROM lease WHERE task = ?"));
  TRY(release.bind(id).run());
  if (event.type != "task.leased") return {};
  Statement lease =
      TRY(db.prepare("INSERT INTO lease (task, worker, fence, attempt) VALUES (?,?,?,?)"));
  return lease.bind(id)
      .bind(event.body["worker"].as_string())
      .bind(event.body["fence"].as_int())
      .bind(event.body["attempt"].as_string())
      .run();
}

base::Status project_task(Database& db, const Event& event) {
  const Json& body = event.body;
  const std::string& id = body["id"].as_string();
  if (event.type == "task.proposed") {
    Statement insert = TRY(db.prepare(
        "INSERT INTO task (id, title, role, state, bounces, head) VALUES (?,?,?,?,0,'')"));
    TRY(insert.bind(id)
            .bind(body["title"].as_string())
            .bind(body["role"].as_string())
            .bind("proposed")
            .run());
    TRY(project_links(db, "INSERT INTO dep (task, needs) VALUES (?,?)", id, body["needs"]));
    TRY(project_links(db, "INSERT INTO touch (task, glob) VALUES (?,?)", id, body["touches"]));
    return project_links(db, "INSERT INTO covers (task, criterion) VALUES (?,?)", id,
                         body["covers"]);
  }
  Statement move = TRY(db.prepare("UPDATE task SET state = ? WHERE id = ?"));
  TRY(move.bind(move_of(event)).bind(id).run());
  if (event.type == "task.bounced") {
    Statement count = TRY(db.prepare("UPDATE task SET bounces = bounces + 1 WHERE id = ?"));
    TRY(count.bind(id).run());
  }
  if (event.type == "task.merged") {
    Statement head = TRY(db.prepare("UPDATE task SET head = ? WHERE id = ?"));
    TRY(head.bind(body["commit"].as_string()).bind(id).run());
  }
  return project_lease(db, event);
}

base::Status project_criterion(Database& db, const Event& event) {
  const Json& body = event.body;
  const std::string& id = body["id"].as_string();
  if (event.type == "criterion.unbound" && body.has("text")) {
    Statement insert = TRY(db.prepare(
        "INSERT INTO criterion (id, text, visibility, state, last_evidence) VALUES (?,?,?,?,'')"));
    return insert.bind(id)
        .bind(body["text"].as_string())
        .bind(body["visibility"].as_string())
        .bind("unbound")
        .run();
  }
  Statement move = TRY(db.prepare("UPDATE criterion SET state = ? WHERE id = ?"));
  TRY(move.bind(move_of(event)).bind(id).run());
  if (!body.has("evidence")) return {};
  Statement last = TRY(db.prepare("UPDATE criterion SET last_evidence = ? WHERE id = ?"));
  return last.bind(body["evidence"].as_string()).bind(id).run();
}

base::Status project_evidence(Database& db, const Event& event) {
  const Json& body = event.body;
  Statement insert = TRY(db.prepare(
      "INSERT INTO evidence (id, gate, tree, command, profile, verdict, num, denom, list, log, "
      "wall_us, cpu_us, rss, seq) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
  for (const char* key : {"id", "gate", "tree", "command_hash", "profile_hash", "verdict"}) {
    insert.bind(body[key].as_string());
  }
  return insert.bind(body["num"].as_int())
      .bind(body["denom"].as_int())
      .bind(body["list_hash"].as_string())
      .bind(body["log_blob"].as_string())
      .bind(body["wall_us"].as_int())
      .bind(body["cpu_us"].as_int())
      .bind(body["rss"].as_int())
      .bind(event.seq)
      .run();
}

base::Status project_budget(Database& db, const Event& event) {
  const std::string& scope = event.body["scope"].as_string();
  Statement drop = TRY(db.prepare("DELETE FROM budget WHERE scope = ?"));
  TRY(drop.bind(scope).run());
  Statement insert = TRY(db.prepare("INSERT INTO budget (scope, cap) VALUES (?,?)"));
  return insert.bind(scope).bind(event.body["cap"].as_int()).run();
}

}  // namespace

base::Status create_tables(Database& database) {
  return database.run(kSchema);
}

base::Status clear_projections(Database& database) {
  for (const char* table : kProjections) TRY(database.run(std::string("DELETE FROM ") + table));
  return {};
}

base::Status project(Database& database, const std::string& run, const Event& event) {
  std::string_view kind = kind_of(event);
  if (kind == "effect") return project_effect(database, event);
  if (kind == "usage") return project_usage(database, run, event);
  if (kind == "task") return project_task(database, event);
  if (kind == "criterion") return project_criterion(database, event);
  if (kind == "evidence") return project_evidence(database, event);
  if (kind == "budget") return project_budget(database, event);
  return {};
}

base::Result<std::string> dump_projections(Database& database) {
  std::string out;
  for (const char* table : kProjections) {
    Statement columns = TRY(database.prepare("SELECT count(*) FROM pragma_table_info(?)"));
    columns.bind(table);
    TRY(columns.step());
    i64 width = columns.integer(0);
    Statement rows =
        TRY(database.prepare(std::string("SELECT * FROM ") + table + " ORDER BY 1, 2"));
    while (TRY(rows.step())) {
      out += table;
      for (int column = 0; column < width; ++column) out += '|' + rows.text(column);
      out += '\n';
    }
  }
  return out;
}

}  // namespace team
