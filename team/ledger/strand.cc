#include "team/ledger/strand.h"

#include "base/hash.h"

#include <algorithm>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

// Results up to this size live in the event itself, larger ones as blobs.
constexpr size_t kInlineBytesMax = 2048;

// Errors of the surroundings: nothing is recorded, so that a resumed run tries again.
bool is_transient(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kFull || code == ErrorCode::kBusy ||
         code == ErrorCode::kDeadline || code == ErrorCode::kCancelled ||
         code == ErrorCode::kUnsupported || code == ErrorCode::kIo;
}

}  // namespace

Result<std::unique_ptr<Strand>> Strand::open(Ledger& ledger, Options options) {
  std::unique_ptr<Strand> strand(new Strand(ledger, std::move(options)));
  strand->history_ = TRY(ledger.stream(strand->options_.stream));
  return strand;
}

base::Status Strand::write(std::vector<NewEvent> events) {
  if (options_.replay_only) {
    return Error(ErrorCode::kConflict, "the record of " + options_.stream + " ends at event " +
                                           std::to_string(history_.size()) + ", before " +
                                           events.front().type);
  }
  i64 ver = static_cast<i64>(history_.size()) + 1;
  for (NewEvent& event : events) {
    if (event.fence == 0) event.fence = options_.fence;
  }
  std::vector<Event> stored =
      TRY(ledger_.append(options_.stream, ver, options_.actor, std::move(events)));
  for (Event& event : stored) history_.push_back(std::move(event));
  cursor_ = history_.size();
  return {};
}

Error Strand::diverged(const std::string& wanted) const {
  const Event& found = history_[cursor_];
  return Error(ErrorCode::kConflict, "strand " + options_.stream + " diverged from its record at " +
                                         "event " + std::to_string(found.seq) +
                                         " (the run's files or fleet itself were changed since); "
                                         "the record says " +
                                         found.type + " " +
                                         found.body.dump_canonical().substr(0, 160) +
                                         ", the code says " + wanted.substr(0, 200));
}

const Event* Strand::peek(std::string_view type) const {
  if (cursor_ >= history_.size() || history_[cursor_].type != type) return nullptr;
  return &history_[cursor_];
}

base::Status Strand::emit(std::string type, Json body, i64 fence) {
  if (cursor_ < history_.size()) {
    const Event* recorded = peek(type);
    if (recorded == nullptr || recorded->body.dump_canonical() != body.dump_canonical()) {
      return diverged(type + " " + body.dump_canonical());
    }
    ++cursor_;
    return {};
  }
  return write({{.type = std::move(type), .body = std::move(body), .fence = fence}});
}

Result<Json> Strand::once(const EffectIntent& intent, const std::function<Result<Json>()>& act) {
  return once_booked(intent, act, {});
}

Result<Json> Strand::once_booked(const EffectIntent& intent,
                                 const std::function<Result<Json>()>& act, const Book& book) {
  std::string request_hash = base::sha256_hex(intent.request.dump_canonical());
  if (!replaying()) {
    TRY(write_intent(intent, request_hash));
    return perform(intent, act, book);
  }
  bool open = TRY(replay_intent(intent, request_hash));
  while (!open && peek("effect.ambiguous") != nullptr) {
    ++cursor_;
    skip_usage();
    if (!replaying()) {
      TRY(write_intent(intent, request_hash));
      return perform(intent, act, book);
    }
    open = TRY(replay_intent(intent, request_hash));
  }
  if (open) {
    TRY(recover(intent, request_hash));
    return perform(intent, act, book);
  }
  const Event& outcome = history_[cursor_++];
  skip_usage();
  if (outcome.type == "effect.done") return stored_result(outcome);
  return Error(static_cast<ErrorCode>(outcome.body["code"].as_int()),
               outcome.body["error"].as_string());
}

// Passes the recorded intent. True: it has no outcome, we died in between.
Result<bool> Strand::replay_intent(const EffectIntent& intent, const std::string& request_hash) {
  const Event* recorded = peek("effect.intended");
  if (recorded == nullptr || recorded->body["key"].as_string() != intent.key ||
      recorded->body["request"].as_string() != request_hash) {
    return diverged("effect.intended " + intent.key + " " + intent.request.dump_canonical());
  }
  idem_ = recorded->body["idem"].as_string();
  ++cursor_;
  if (!replaying()) return true;
  if (peek("effect.done") == nullptr && peek("effect.failed") == nullptr &&
      peek("effect.ambiguous") == nullptr) {
    return diverged("the outcome of " + intent.key);
  }
  return false;
}

base::Status Strand::write_intent(const EffectIntent& intent, const std::string& request_hash) {
  // The position in the stream tells repeated keys apart and is the same on every replay.
  idem_ = options_.stream + "/" + intent.key + "@" + std::to_string(history_.size() + 1);
  Json body = Json::object({{"idem", idem_},
                            {"key", intent.key},
                            {"kind", intent.kind},
                            {"class", name_of(intent.cls)},
                            {"request", request_hash}});
  if (intent.reserve_nusd > 0) {
    body.set("reserve_nusd", intent.reserve_nusd);
    body.set("scope", options_.scope);
  }
  return write({{.type = "effect.intended", .body = std::move(body)}});
}

// The record ends at the intent: put right what may be half done.
base::Status Strand::recover(const EffectIntent& intent, const std::string& request_hash) {
  if (options_.replay_only) return diverged("the outcome of " + intent.key);
  if (intent.cls == EffectClass::kWorkspace && intent.undo) return intent.undo();
  if (intent.cls != EffectClass::kPaid) return {};
  // It may have been billed: book the most it can have cost and ask again.
  std::vector<NewEvent> events;
  events.push_back({.type = "effect.ambiguous", .body = Json::object({{"idem", idem_}})});
  if (intent.reserve_nusd > 0) {
    Json row = Json::object({{"call", idem_},
                             {"outcome", "ambiguous"},
                             {"cost_nusd", intent.reserve_nusd},
                             {"usage", to_json(Usage{.estimated = true})}});
    for (NewEvent& event : usage_events(intent, {std::move(row)}))
      events.push_back(std::move(event));
  }
  TRY(write(std::move(events)));
  return write_intent(intent, request_hash);
}

Result<Json> Strand::perform(const EffectIntent& intent, const std::function<Result<Json>()>& act,
                             const Book& book) {
  Result<Json> result = act();
  if (!result.ok() && is_transient(result.error().code())) {
    // Stand before the intent again, so that the same call recovers it.
    while (cursor_ > 0 && history_[--cursor_].type != "effect.intended") {
    }
    return result;
  }
  std::vector<NewEvent> events;
  if (result.ok()) {
    Json body = Json::object({{"idem", idem_}});
    std::string text = result->dump_canonical();
    if (text.size() <= kInlineBytesMax) {
      body.set("result", *result);
    } else {
      body.set("blob", TRY(ledger_.put_blob(text)));
    }
    events.push_back({.type = "effect.done", .body = std::move(body)});
  } else {
    events.push_back({.type = "effect.failed",
                      .body = Json::object({{"idem", idem_},
                                            {"code", static_cast<i64>(result.error().code())},
                                            {"error", result.error().message()}})});
  }
  std::vector<Json> rows;
  if (book && result.ok()) rows = book(*result);
  if (rows.empty() && intent.reserve_nusd > 0) {
    rows.push_back(Json::object({{"call", idem_}, {"outcome", "free"}, {"cost_nusd", 0}}));
  }
  for (NewEvent& event : usage_events(intent, std::move(rows))) events.push_back(std::move(event));
  TRY(write(std::move(events)));
  return result;
}

std::vector<NewEvent> Strand::usage_events(const EffectIntent& intent,
                                           std::vector<Json> rows) const {
  std::vector<NewEvent> events;
  for (size_t i = 0; i < rows.size(); ++i) {
    Json& row = rows[i];
    if (!row.has("call")) row.set("call", idem_ + (i ? "." + std::to_string(i) : ""));
    row.set("scope", options_.scope);
    // The whole reservation goes back with the first row.
    row.set("reserved_nusd", i == 0 ? intent.reserve_nusd : 0);
    events.push_back({.type = "usage.booked", .body = std::move(row)});
  }
  return events;
}

void Strand::skip_usage() {
  while (peek("usage.booked") != nullptr) ++cursor_;
}

Result<Json> Strand::stored_result(const Event& done) const {
  if (!done.body.has("blob")) return done.body["result"];
  return Json::parse(TRY(ledger_.blob(done.body["blob"].as_string())));
}

}  // namespace team
