// run_attempt: gives an attempt to a worker process and answers it from the ledger. A worker that
// is lost is fenced (the ledger refuses its number from then on) and a fresh one goes on from the
// record: what has a result is passed, what was under way is put back and done again. Model calls
// are made here, so no worker holds a key and a call that was paid for is never lost with one.
#include "base/files.h"
#include "team/stages/attempt.h"
#include "team/stages/attempt_json.h"
#include "team/stages/attempt_port.h"
#include "team/stages/call_json.h"
#include "team/worker/worker_process.h"

#include <memory>
#include <utility>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

// Workers lost one after the other without a step forward in between.
constexpr int kLossesMax = 3;

// The back end cannot be used until a person mends something, or gives it time: halt, do not blame
// the agent. Nothing was billed, so nothing is recorded, and a resumed run asks again.
bool is_unusable(CallOutcome outcome) {
  return outcome == CallOutcome::kUnreachable || outcome == CallOutcome::kUnauthorized ||
         outcome == CallOutcome::kNoSuchModel || outcome == CallOutcome::kNoRecording ||
         outcome == CallOutcome::kRateLimited;
}

const std::string& model_of(const Engine& engine, const AttemptSpec& spec) {
  return spec.model.empty() ? engine.config.model : spec.model;
}

bool has_ended(const std::vector<Event>& events) {
  return !events.empty() && kind_of(events.back()) == "attempt" &&
         parse_attempt_end(move_of(events.back())).ok();
}

class LocalPort : public AttemptPort {
 public:
  LocalPort(Engine& engine, const AttemptSpec& spec, Strand& strand)
      : engine_(engine), spec_(spec), strand_(strand) {}

  base::Status emit(std::string type, Json body) override {
    return strand_.emit(std::move(type), std::move(body));
  }
  Result<Json> once(const EffectIntent& intent, const std::function<Result<Json>()>& act) override {
    return strand_.once(intent, act);
  }
  Result<std::string> check(const std::string& gate) override {
    if (!spec_.check) return Error(ErrorCode::kNotFound, "there is nothing to check in this task");
    return spec_.check(gate);
  }
  void activity(const std::string& what) override {
    if (!strand_.replaying()) engine_.watcher.activity(spec_.id, what);
  }

  Result<CallResult> infer(const std::string& key, const ModelRequest& request) override {
    EffectIntent intent{.key = key,
                        .kind = "model.call",
                        .cls = EffectClass::kPaid,
                        .request = describe(request),
                        .reserve_nusd = worst_cost_nusd(request.input_tokens_estimate(),
                                                        request.output_tokens_max, price())};
    Json recorded = TRY(strand_.once_booked(
        intent,
        [&]() -> Result<Json> {
          CallResult called = engine_.model.complete(request);
          if (is_unusable(called.outcome)) {
            return Error(ErrorCode::kUnavailable,
                         "the model cannot be used (" + std::string(name_of(called.outcome)) +
                             "): " + called.error + "; mend it and resume the run");
          }
          return to_json(called);
        },
        [&](const Json& json) { return usage_rows(json); }));
    return call_result_from_json(recorded);
  }

 private:
  const Price& price() const { return engine_.config.price_of(model_of(engine_, spec_)); }

  std::vector<Json> usage_rows(const Json& json) const {
    std::vector<Json> rows;
    auto called = call_result_from_json(json);
    if (!called.ok()) return rows;
    for (const CallTry& t : called->tries) {
      if (!t.maybe_billed && t.outcome != CallOutcome::kOk) continue;
      rows.push_back(Json::object({{"stage", name_of(spec_.stage)},
                                   {"role", name_of(spec_.role)},
                                   {"task", spec_.task},
                                   {"attempt", spec_.id},
                                   {"backend", engine_.config.backend},
                                   {"model_asked", model_of(engine_, spec_)},
                                   {"model_got", called->reply.model},
                                   {"price", price().id},
                                   {"usage", to_json(t.usage)},
                                   {"cost_nusd", cost_nusd(t.usage, price())},
                                   {"ttft_ms", t.first_token_ms},
                                   {"total_ms", t.total_ms},
                                   {"outcome", name_of(t.outcome)}}));
    }
    return rows;
  }

  Engine& engine_;
  const AttemptSpec& spec_;
  Strand& strand_;
};

class AttemptHost {
 public:
  AttemptHost(Engine& engine, const AttemptSpec& spec) : engine_(engine), spec_(spec) {}

  Result<AttemptResult> run() {
    std::vector<Event> record = TRY(engine_.ledger.stream(spec_.id));
    if (has_ended(record) || engine_.workers.argv.empty()) {
      TRY(open_strand(0));
      LocalPort port(engine_, spec_, *strand_);
      AttemptResult result = TRY(step_attempt(place(), spec_, port));
      TRY(release());  // we died between its end and this
      return result;
    }
    for (;;) {
      TRY(grant());
      TRY(open_strand(fence_));
      const size_t before = strand_->length();
      auto result = with_worker();
      if (result.ok()) TRY(release());
      if (result.ok() || worker_ == nullptr || worker_->why().empty()) return result;
      TRY(lose(worker_->why(), strand_->length() > before));
      worker_.reset();
    }
  }

 private:
  AttemptPlace place() const {
    return {engine_.config.folder, model_of(engine_, spec_), engine_.sandbox, engine_.repo};
  }

  base::Status open_strand(i64 fence) {
    std::string scope = std::string("run/") + name_of(spec_.stage) + "/" + name_of(spec_.role) +
                        "/" + spec_.task + "/" + spec_.id;
    strand_ = TRY(Strand::open(engine_.ledger, {.stream = spec_.id,
                                                .actor = "worker:" + spec_.id,
                                                .scope = scope,
                                                .fence = fence,
                                                .replay_only = engine_.main.replay_only()}));
    return {};
  }

  // Leases are on a stream of their own: which worker did it is no part of what was done.
  base::Status note_lease(const char* move, Json body) {
    const std::string stream = "lease/" + spec_.id;
    const i64 ver = static_cast<i64>(TRY(engine_.ledger.stream(stream)).size()) + 1;
    body.set("id", spec_.id);
    TRY(engine_.ledger.append(stream, ver, "engine", {{std::string("lease.") + move, body}}));
    return {};
  }

  base::Status grant() {
    i64 last = 0;
    engine_.ledger.with_state([&](const RunState& state, const BudgetTree&) {
      const Entity* lease = state.find("lease", spec_.id);
      if (lease != nullptr) last = lease->facts["fence"].as_int();
    });
    fence_ = last + 1;
    return note_lease("granted", Json::object({{"fence", fence_}}));
  }

  base::Status release() {
    std::string state;
    engine_.ledger.with_state(
        [&](const RunState& run, const BudgetTree&) { state = run.state_of("lease", spec_.id); });
    return state == "granted" ? note_lease("released", Json::object()) : base::Status();
  }

  base::Status lose(const std::string& why, bool got_on) {
    losses_ = got_on ? 1 : losses_ + 1;
    TRY(note_lease("lost", Json::object({{"why", why}})));
    engine_.watcher.activity(spec_.id, "worker lost: " + why + "; a fresh one goes on");
    if (losses_ < kLossesMax) return {};
    // A call that ends its worker each time is answered for it, so that the agent can do otherwise.
    if (!answer_for_it_ && doing_.rfind("tool.", 0) == 0) {
      answer_for_it_ = true;
      losses_ = 0;
      return {};
    }
    return Error(ErrorCode::kUnavailable,
                 "workers of attempt " + spec_.id + " are lost again and " + "again (" + why +
                     "); see workers.log in the run's " + "folder, then resume");
  }

  Result<AttemptResult> with_worker() {
    worker_ =
        TRY(WorkerProcess::start(engine_.workers, Json::object({{"do", "attempt"},
                                                                {"spec", to_json(spec_)},
                                                                {"folder", engine_.config.folder},
                                                                {"model", model_of(engine_, spec_)},
                                                                {"fence", fence_}})));
    LocalPort port(engine_, spec_, *strand_);
    for (;;) {
      Frame frame = TRY(worker_->next());
      const Json& ask = frame.head;
      const std::string& say = ask["say"].as_string();
      if (ask["fence"].as_int() != fence_) continue;  // of another lease
      if (say == "done") return attempt_result_from_json(ask["result"]);
      if (say == "failed") return error_from_json(ask);
      if (say == "activity") {
        port.activity(ask["what"].as_string());
        continue;
      }
      auto answer = answer_to(say, ask, port);
      // A worker that was lost in the middle of an effect has nobody to be answered.
      if (!worker_->why().empty()) return std::move(answer).error();
      TRY(worker_->send(answer.ok() ? Json::object({{"ok", std::move(*answer)}})
                                    : to_json(answer.error())));
    }
  }

  Result<Json> answer_to(const std::string& say, const Json& ask, LocalPort& port) {
    if (say == "emit") {
      TRY(port.emit(ask["type"].as_string(), ask["body"]));
      return Json(true);
    }
    if (say == "infer") {
      ModelRequest request = TRY(model_request_from_json(ask["request"]));
      return to_json(TRY(port.infer(ask["key"].as_string(), request)));
    }
    if (say == "check") return Json(TRY(port.check(ask["gate"].as_string())));
    if (say == "once") return once(ask, port);
    return Error(ErrorCode::kInternal, "a worker asks for '" + say + "', which is not known");
  }

  // The strand decides whether to act; the acting is the worker's.
  Result<Json> once(const Json& ask, LocalPort& port) {
    bool undo = false;
    EffectIntent intent{
        .key = ask["key"].as_string(),
        .kind = ask["kind"].as_string(),
        .cls = ask["workspace"].as_bool() ? EffectClass::kWorkspace : EffectClass::kPure,
        .request = ask["request"]};
    intent.undo = [&]() -> base::Status {
      undo = true;
      return {};
    };
    doing_ = intent.kind;
    return port.once(intent, [&]() -> Result<Json> {
      const bool answer = std::exchange(answer_for_it_, false);
      TRY(worker_->send(Json::object({{"do", answer ? "undo" : "act"}, {"undo", undo}})));
      if (!answer && engine_.workers.on_work) engine_.workers.on_work(doing_, worker_->pid());
      for (;;) {
        Frame frame = TRY(worker_->next());
        const std::string& say = frame.head["say"].as_string();
        if (say == "activity") {
          engine_.watcher.activity(spec_.id, frame.head["what"].as_string());
        } else if (say == "check") {  // the agent's check tool, in the middle of its call
          auto text = port.check(frame.head["gate"].as_string());
          TRY(worker_->send(text.ok() ? Json::object({{"ok", *text}}) : to_json(text.error())));
        } else if (say == "undone") {
          return to_json(ToolResult{
              .text = "This call ended the process that ran it, three times; do it another way.",
              .is_error = true});
        } else if (frame.head.has("code")) {
          return error_from_json(frame.head);
        } else {
          return frame.head["result"];
        }
      }
    });
  }

  Engine& engine_;
  const AttemptSpec& spec_;
  std::unique_ptr<Strand> strand_;
  std::unique_ptr<WorkerProcess> worker_;
  i64 fence_ = 0;
  int losses_ = 0;
  std::string doing_;
  bool answer_for_it_ = false;
};

}  // namespace

Result<AttemptResult> run_attempt(Engine& engine, const AttemptSpec& spec) {
  auto result = AttemptHost(engine, spec).run();
  engine.watcher.activity(spec.id, "");
  return result;
}

}  // namespace team
