#include "team/ledger/ledger.h"

#include "base/hash.h"
#include "team/ledger/projection.h"

#include <utility>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;

constexpr i64 kSchemaVersion = 1;
constexpr const char* kColumns =
    "SELECT seq, stream, ver, type, at_us, actor, cause, fence, body, prev, hash, run FROM event ";

// Undoes the open transaction unless told that it was committed.
class Rollback {
 public:
  explicit Rollback(Database& database) : database_(database) {}
  ~Rollback() {
    if (!done_) (void)database_.run("ROLLBACK");
  }
  void committed() { done_ = true; }

 private:
  Database& database_;
  bool done_ = false;
};

base::Result<Event> event_from_row(const Statement& row) {
  Event event;
  event.seq = row.integer(0);
  event.stream = row.text(1);
  event.ver = row.integer(2);
  event.type = row.text(3);
  event.at_us = row.integer(4);
  event.actor = row.text(5);
  event.cause = row.integer(6);
  event.fence = row.integer(7);
  auto body = Json::parse(row.text(8));
  if (!body.ok()) {
    return Error(ErrorCode::kCorruption,
                 "event " + std::to_string(event.seq) + " of the ledger cannot be read");
  }
  event.body = std::move(*body);
  return event;
}

base::Status insert_event(Database& database, const std::string& run, const Event& event,
                          const std::string& prev, const std::string& hash) {
  Statement insert = TRY(database.prepare(
      "INSERT INTO event (seq, run, stream, ver, type, schema_v, at_us, actor, cause, fence, body, "
      "prev, hash) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"));
  return insert.bind(event.seq)
      .bind(run)
      .bind(event.stream)
      .bind(event.ver)
      .bind(event.type)
      .bind(kSchemaVersion)
      .bind(event.at_us)
      .bind(event.actor)
      .bind(event.cause)
      .bind(event.fence)
      .bind(event.body.dump_canonical())
      .bind(prev)
      .bind(hash)
      .run();
}

}  // namespace

std::string canonical_event(const Event& event, std::string_view run) {
  return Json::object({{"seq", event.seq},
                       {"run", run},
                       {"stream", event.stream},
                       {"ver", event.ver},
                       {"type", event.type},
                       {"schema_v", kSchemaVersion},
                       {"at_us", event.at_us},
                       {"actor", event.actor},
                       {"cause", event.cause},
                       {"fence", event.fence},
                       {"body", event.body}})
      .dump_canonical();
}

base::Result<std::unique_ptr<Ledger>> Ledger::open(Options options) {
  if (options.clock == nullptr) options.clock = &base::system_clock();
  std::unique_ptr<Ledger> ledger(new Ledger(std::move(options)));
  auto mode = ledger->options_.create      ? Database::Mode::kCreate
              : ledger->options_.read_only ? Database::Mode::kRead
                                           : Database::Mode::kWrite;
  ledger->database_ = TRY(Database::open(ledger->options_.path, mode));
  if (!ledger->options_.read_only) {
    // Journal in WAL mode, every commit synced: what was appended survives a power cut.
    TRY(ledger->database_->run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"));
    TRY(create_tables(*ledger->database_));
  }
  TRY(ledger->load());
  return ledger;
}

base::Status Ledger::load() {
  auto prepared = database_->prepare(std::string(kColumns) + "ORDER BY seq");
  if (!prepared.ok() &&
      prepared.error().message().find("no such table") != std::string_view::npos) {
    return Error(ErrorCode::kCorruption,
                 options_.path + " holds no ledger; restore it from a copy, or start a new run");
  }
  Statement rows = TRY(std::move(prepared));
  while (TRY(rows.step())) {
    Event event = TRY(event_from_row(rows));
    if (event.seq != seq_ + 1) {
      return Error(ErrorCode::kCorruption, "the ledger lacks event " + std::to_string(seq_ + 1) +
                                               "; restore " + options_.path + " from a copy");
    }
    if (rows.text(9) != head_) {
      return Error(ErrorCode::kCorruption, "the hash chain of the ledger breaks at event " +
                                               std::to_string(event.seq) + "; restore " +
                                               options_.path + " from a copy");
    }
    if (options_.run.empty()) options_.run = rows.text(11);
    seq_ = event.seq;
    head_ = rows.text(10);
    if (auto folded = fold(event); !folded.ok()) {
      return Error(ErrorCode::kCorruption,
                   "event " + std::to_string(event.seq) +
                       " of the ledger does not fit: " + folded.error().message());
    }
  }
  return {};
}

base::Status Ledger::fold(const Event& event) {
  TRY(state_.apply(event));
  const Json& body = event.body;
  if (event.type == "budget.capped") {
    budget_.set_cap(body["scope"].as_string(), body["cap"].as_int());
  } else if (event.type == "effect.intended" && body["reserve_nusd"].as_int() > 0) {
    TRY(budget_.reserve(body["scope"].as_string(), body["reserve_nusd"].as_int()));
  } else if (event.type == "usage.booked") {
    budget_.settle(body["scope"].as_string(), body["reserved_nusd"].as_int(),
                   body["cost_nusd"].as_int());
  }
  return {};
}

base::Status Ledger::check_budget(const std::vector<NewEvent>& events) const {
  for (const NewEvent& event : events) {
    if (event.type != "effect.intended") continue;
    BudgetTree trial = budget_;
    TRY(trial.reserve(event.body["scope"].as_string(), event.body["reserve_nusd"].as_int()));
  }
  return {};
}

base::Status Ledger::check_fence(std::string_view stream, const NewEvent& event) const {
  if (event.fence == 0) return {};
  if (event.type.rfind("task.", 0) != 0) {  // an attempt's own stream, written under its lease
    const Entity* lease = state_.find("lease", stream);
    if (lease == nullptr ||
        (lease->state == "granted" && lease->facts["fence"].as_int() == event.fence)) {
      return {};
    }
    return Error(ErrorCode::kConflict, "the lease of attempt " + lease->id +
                                           " went to another worker; this result is too late");
  }
  const Entity* task = state_.find("task", event.body["id"].as_string());
  if (task == nullptr || task->facts["fence"].as_int() == event.fence) return {};
  return Error(ErrorCode::kConflict,
               "the lease of task " + task->id + " went to somebody else; this result is too late");
}

base::Result<std::vector<Event>> Ledger::append(std::string_view stream, i64 ver_from,
                                                std::string_view actor,
                                                std::vector<NewEvent> events) {
  std::lock_guard lock(mutex_);
  TRY(check_budget(events));
  RunState trial;
  if (events.size() > 1) trial = state_;
  std::vector<Event> out;
  TRY(database_->run("BEGIN IMMEDIATE"));
  Rollback rollback(*database_);
  std::string head = head_;
  for (NewEvent& fresh : events) {
    TRY(check_fence(stream, fresh));
    Event event;
    event.seq = seq_ + static_cast<i64>(out.size()) + 1;
    event.stream = stream;
    event.ver = ver_from + static_cast<i64>(out.size());
    event.type = std::move(fresh.type);
    event.at_us = options_.clock->wall_us();
    event.actor = actor;
    event.cause = fresh.cause;
    event.fence = fresh.fence;
    event.body = std::move(fresh.body);
    if (events.size() > 1) {
      TRY(trial.apply(event));
    } else {
      TRY(state_.check(event));
    }
    std::string hash = base::sha256_hex(head + canonical_event(event, options_.run));
    TRY(insert_event(*database_, options_.run, event, head, hash));
    TRY(project(*database_, options_.run, event));
    head = std::move(hash);
    out.push_back(std::move(event));
  }
  i64 last = seq_ + static_cast<i64>(out.size());
  if (options_.on_commit) options_.on_commit(last, false);
  TRY(database_->run("COMMIT"));
  rollback.committed();
  if (options_.on_commit) options_.on_commit(last, true);
  seq_ = last;
  head_ = std::move(head);
  for (const Event& event : out) {
    TRY(fold(event));
    if (sink_) sink_(event, state_);
  }
  return out;
}

base::Result<std::vector<Event>> Ledger::select(std::string_view where, std::string_view text,
                                                i64 number) const {
  std::lock_guard lock(mutex_);
  Statement rows = TRY(database_->prepare(std::string(kColumns) + std::string(where)));
  if (text.empty()) {
    rows.bind(number);
  } else {
    rows.bind(text);
  }
  std::vector<Event> out;
  while (TRY(rows.step())) out.push_back(TRY(event_from_row(rows)));
  return out;
}

base::Result<std::vector<Event>> Ledger::stream(std::string_view stream) const {
  return select("WHERE stream = ? ORDER BY ver", stream, 0);
}

base::Result<std::vector<Event>> Ledger::events(i64 after) const {
  return select("WHERE seq > ? ORDER BY seq", "", after);
}

base::Result<std::string> Ledger::put_blob(std::string_view bytes) {
  std::string hash = base::sha256_hex(bytes);
  std::lock_guard lock(mutex_);
  Statement have = TRY(database_->prepare("SELECT size FROM blob WHERE hash = ?"));
  if (TRY(have.bind(hash).step())) return hash;
  Statement insert = TRY(database_->prepare("INSERT INTO blob (hash, size, data) VALUES (?,?,?)"));
  TRY(insert.bind(hash).bind(static_cast<i64>(bytes.size())).bind_blob(bytes).run());
  return hash;
}

base::Result<std::string> Ledger::blob(std::string_view hash) const {
  std::lock_guard lock(mutex_);
  Statement row = TRY(database_->prepare("SELECT data FROM blob WHERE hash = ?"));
  if (!TRY(row.bind(hash).step())) {
    return Error(ErrorCode::kNotFound, "the ledger holds no blob " + std::string(hash));
  }
  std::string data = row.blob(0);
  if (base::sha256_hex(data) != hash) {
    return Error(ErrorCode::kCorruption, "blob " + std::string(hash) + " is damaged");
  }
  return data;
}

void Ledger::with_state(const std::function<void(const RunState&, const BudgetTree&)>& read) const {
  std::lock_guard lock(mutex_);
  read(state_, budget_);
}

RunState Ledger::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

BudgetTree Ledger::budget() const {
  std::lock_guard lock(mutex_);
  return budget_;
}

void Ledger::on_event(std::function<void(const Event&, const RunState&)> sink) {
  std::lock_guard lock(mutex_);
  sink_ = std::move(sink);
}

base::Status Ledger::fork_to(const std::string& path, i64 seq) const {
  std::lock_guard lock(mutex_);
  auto target = TRY(Database::open(path, Database::Mode::kCreate));
  TRY(create_tables(*target));
  TRY(target->run("BEGIN IMMEDIATE"));
  Rollback rollback(*target);
  Statement rows = TRY(database_->prepare(std::string(kColumns) + "WHERE seq <= ? ORDER BY seq"));
  rows.bind(seq);
  while (TRY(rows.step())) {
    Event event = TRY(event_from_row(rows));
    TRY(insert_event(*target, rows.text(11), event, rows.text(9), rows.text(10)));
    TRY(project(*target, rows.text(11), event));
  }
  Statement blobs = TRY(database_->prepare("SELECT hash, size, data FROM blob"));
  while (TRY(blobs.step())) {
    Statement insert = TRY(target->prepare("INSERT INTO blob (hash, size, data) VALUES (?,?,?)"));
    TRY(insert.bind(blobs.text(0)).bind(blobs.integer(1)).bind_blob(blobs.blob(2)).run());
  }
  TRY(target->run("COMMIT"));
  rollback.committed();
  return {};
}

base::Result<LedgerReport> Ledger::verify() const {
  std::lock_guard lock(mutex_);
  LedgerReport report;
  RunState state;
  auto fault = [&](std::string problem) {
    report.problem = std::move(problem);
    return report;
  };
  Statement rows = TRY(database_->prepare(std::string(kColumns) + "ORDER BY seq"));
  while (TRY(rows.step())) {
    auto event = event_from_row(rows);
    std::string at = "event " + std::to_string(report.events + 1);
    if (!event.ok()) return fault(event.error().message());
    if (event->seq != report.events + 1) return fault(at + " is missing");
    if (rows.text(9) != report.head) return fault(at + " does not follow the one before it");
    std::string hash = base::sha256_hex(report.head + canonical_event(*event, rows.text(11)));
    if (hash != rows.text(10)) return fault(at + " was changed after it was written");
    if (auto applied = state.apply(*event); !applied.ok()) {
      return fault(at + ": " + applied.error().message());
    }
    report.head = std::move(hash);
    ++report.events;
  }
  // Pages that hold no event: indexes and tables that are views of them.
  Statement pages = TRY(database_->prepare("PRAGMA integrity_check(1)"));
  if (TRY(pages.step()) && pages.text(0) != "ok") {
    return fault("the file " + options_.path + " is damaged: " + pages.text(0));
  }
  Statement blobs = TRY(database_->prepare("SELECT hash, data FROM blob"));
  while (TRY(blobs.step())) {
    if (base::sha256_hex(blobs.blob(1)) != blobs.text(0)) {
      return fault("blob " + blobs.text(0) + " is damaged");
    }
    ++report.blobs;
  }
  report.intact = true;
  return report;
}

base::Status Ledger::rebuild() {
  std::vector<Event> all = TRY(events());
  std::lock_guard lock(mutex_);
  TRY(database_->run("BEGIN IMMEDIATE"));
  Rollback rollback(*database_);
  TRY(clear_projections(*database_));
  for (const Event& event : all) TRY(project(*database_, options_.run, event));
  TRY(database_->run("COMMIT"));
  rollback.committed();
  return {};
}

base::Result<std::string> Ledger::projections() const {
  std::lock_guard lock(mutex_);
  return dump_projections(*database_);
}

}  // namespace team
