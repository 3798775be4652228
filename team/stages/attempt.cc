#include "team/stages/attempt.h"

#include "base/files.h"
#include "team/agent/machine.h"
#include "team/agent/role_file.h"
#include "team/sandbox/workspace.h"
#include "team/stages/call_json.h"
#include "team/stages/roles.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

// The back end cannot be used at all until a person mends something: halt, do not blame the agent.
bool is_unusable(CallOutcome outcome) {
  return outcome == CallOutcome::kUnreachable || outcome == CallOutcome::kUnauthorized ||
         outcome == CallOutcome::kNoSuchModel || outcome == CallOutcome::kNoRecording;
}

class Attempt {
 public:
  Attempt(Engine& engine, const AttemptSpec& spec) : engine_(engine), spec_(spec) {}

  Result<AttemptResult> run() {
    std::string scope = std::string("run/") + name_of(spec_.stage) + "/" + name_of(spec_.role) +
                        "/" + spec_.task + "/" + spec_.id;
    strand_ = TRY(Strand::open(
        engine_.ledger, {.stream = spec_.id, .actor = "worker:" + spec_.id, .scope = scope}));
    TRY(strand_->emit("attempt.created", Json::object({{"id", spec_.id},
                                                       {"task", spec_.task},
                                                       {"number", spec_.number},
                                                       {"role", name_of(spec_.role)},
                                                       {"stage", name_of(spec_.stage)},
                                                       {"commit", spec_.commit}})));
    TRY(prepare_workspace());
    TRY(prepare_agent());
    TRY(strand_->emit("attempt.running",
                      Json::object({{"id", spec_.id}, {"role_hash", role_hash_}})));
    while (!state_.ended()) TRY(step());
    TRY(strand_->emit(std::string("attempt.") + name_of(*state_.end),
                      Json::object({{"id", spec_.id},
                                    {"claim", state_.end_text.substr(0, 600)},
                                    {"turns", state_.turn}})));
    engine_.watcher.activity(spec_.id, "");
    return AttemptResult{*state_.end, state_.end_text, folder_, state_.to_json(), state_.turn};
  }

 private:
  base::Status prepare_workspace() {
    folder_ = engine_.path("workspaces/" + spec_.id);
    auto make = [&]() -> Result<Json> {
      TRY(base::remove_tree(folder_));
      if (!spec_.commit.empty()) {
        TRY(engine_.repo.checkout(spec_.commit, folder_));
      } else if (!spec_.folder.empty()) {
        TRY(Workspace::fork_directory(spec_.folder, folder_));
      } else {
        TRY(base::make_directories(folder_));
      }
      Workspace made = TRY(Workspace::open(folder_));
      return Json::object({{"tree", TRY(made.tree_hash())}});
    };
    TRY(strand_->once({.key = "workspace",
                       .kind = "workspace.fork",
                       .cls = EffectClass::kWorkspace,
                       .request = Json::object({{"commit", spec_.commit}})},
                      make));
    return {};
  }

  base::Status prepare_agent() {
    RoleFile role = TRY(role_file(spec_.role));
    role_hash_ = role.hash;
    workspace_.emplace(TRY(Workspace::open(folder_)));
    ToolboxOptions options;
    options.tools = role.tools;
    options.write_globs = spec_.write_globs;
    options.read_only_globs = spec_.read_only_globs;
    options.mounts = spec_.mounts;
    options.check = spec_.check;
    toolbox_.emplace(*workspace_, engine_.sandbox, std::move(options));
    config_.role = name_of(spec_.role);
    config_.model = engine_.config.model;
    config_.system_text = TRY(role.render({}));
    config_.pinned_text =
        "Task: " + spec_.task + "\nAttempt: " + std::to_string(spec_.number) + "\n\n" + spec_.brief;
    config_.tools = toolbox_->specs();
    config_.turns_max = role.turns;
    config_.effort = role.effort;
    state_ = first_state(config_);
    if (!spec_.continue_from.is_null()) {
      state_ = TRY(AgentState::from_json(spec_.continue_from));
      state_.end.reset();
      state_.end_text.clear();
      state_.transcript.push_back(Message::user(config_.pinned_text));
    }
    return {};
  }

  base::Status step() {
    AgentAction action = next_action(config_, state_, {});
    AgentResult result;
    if (action.kind == ActionKind::kInfer) {
      // A budget without room is an error like a missing model: nothing is recorded, the run halts,
      // and goes on from here once there is more.
      result.call = TRY(infer(action));
    } else if (action.kind == ActionKind::kTool) {
      result.tool = TRY(use_tool(action));
    }
    apply(config_, state_, action, result);
    return {};
  }

  Result<CallResult> infer(const AgentAction& action) {
    const ModelRequest& request = action.request;
    show("thinking");
    EffectIntent intent{
        .key = "c" + action.id,
        .kind = "model.call",
        .cls = EffectClass::kPaid,
        .request = describe(request),
        .reserve_nusd = worst_cost_nusd(request.input_tokens_estimate(), request.output_tokens_max,
                                        engine_.config.price)};
    Json recorded = TRY(strand_->once_booked(
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
                                   {"model_asked", engine_.config.model},
                                   {"model_got", called->reply.model},
                                   {"price", engine_.config.price.id},
                                   {"usage", to_json(t.usage)},
                                   {"cost_nusd", cost_nusd(t.usage, engine_.config.price)},
                                   {"ttft_ms", t.first_token_ms},
                                   {"total_ms", t.total_ms},
                                   {"outcome", name_of(t.outcome)}}));
    }
    return rows;
  }

  Result<ToolResult> use_tool(const AgentAction& action) {
    bool changes = Toolbox::class_of(action.call.name) == ToolClass::kWorkspace;
    std::string snapshot = engine_.path("snapshots/" + spec_.id + "-" + action.id);
    show(describe_call(action.call));
    EffectIntent intent{.key = "t" + action.id,
                        .kind = "tool." + action.call.name,
                        .cls = changes ? EffectClass::kWorkspace : EffectClass::kPure,
                        .request = Json::object(
                            {{"name", action.call.name}, {"arguments", action.call.arguments}})};
    intent.undo = [&]() -> base::Status {
      if (!base::is_directory(snapshot)) return {};
      return workspace_->restore_from(snapshot);
    };
    Json recorded = TRY(strand_->once(intent, [&]() -> Result<Json> {
      if (changes) TRY(take_snapshot(snapshot));
      Json result = to_json(toolbox_->run(action.call));
      return result;
    }));
    if (changes) TRY(base::remove_tree(snapshot));
    return tool_result_from_json(recorded);
  }

  // Whole or not at all: a half-made snapshot must never be restored.
  base::Status take_snapshot(const std::string& snapshot) {
    std::string making = snapshot + ".making";
    TRY(base::remove_tree(making));
    TRY(base::remove_tree(snapshot));
    TRY(base::make_directories(engine_.path("snapshots")));
    TRY(workspace_->snapshot_to(making));
    if (std::rename(making.c_str(), snapshot.c_str()) != 0) {
      return base::errno_error(errno, "keeping a snapshot at " + snapshot);
    }
    return {};
  }

  void show(const std::string& what) {
    if (strand_->replaying()) return;
    engine_.watcher.activity(spec_.id, "turn " + std::to_string(state_.turn + 1) + "  " + what);
  }

  static std::string describe_call(const ToolCall& call) {
    auto arguments = Json::parse(call.arguments);
    std::string detail;
    if (arguments.ok()) {
      for (const char* key : {"path", "command", "pattern", "gate", "note", "question"}) {
        if (detail.empty()) detail = (*arguments)[key].as_string();
      }
    }
    size_t end = detail.find('\n');
    if (end != std::string::npos) detail.resize(end);
    return call.name + (detail.empty() ? "" : " " + detail.substr(0, 60));
  }

  Engine& engine_;
  const AttemptSpec& spec_;
  std::unique_ptr<Strand> strand_;
  std::string folder_;
  std::string role_hash_;
  std::optional<Workspace> workspace_;
  std::optional<Toolbox> toolbox_;
  AgentConfig config_;
  AgentState state_;
};

}  // namespace

Result<AttemptResult> run_attempt(Engine& engine, const AttemptSpec& spec) {
  return Attempt(engine, spec).run();
}

Result<Json> read_document(const AttemptResult& result, const std::string& name) {
  auto text = base::read_file(result.workspace + "/" + name);
  if (!text.ok()) {
    return Error(ErrorCode::kInvalidArgument, "the file " + name + " was not written");
  }
  auto json = Json::parse(*text);
  if (!json.ok()) {
    return Error(ErrorCode::kInvalidArgument, name + " is not JSON: " + json.error().message());
  }
  return json;
}

Result<AttemptResult> run_document(
    Engine& engine, AttemptSpec spec, int attempts_max,
    const std::function<base::Status(const AttemptResult&)>& accept) {
  std::string brief = spec.brief;
  for (int n = 0; n < attempts_max; ++n, ++spec.number) {
    spec.id = spec.task + ".a" + std::to_string(spec.number);
    AttemptResult result = TRY(run_attempt(engine, spec));
    std::string problem;
    if (result.end != AttemptEnd::kSubmitted) {
      problem = std::string("the attempt ended without a result: ") + name_of(result.end) + ", " +
                result.text;
    } else if (auto accepted = accept(result); accepted.ok()) {
      return result;
    } else if (accepted.error().code() != ErrorCode::kInvalidArgument) {
      return accepted.error();
    } else {
      problem = accepted.error().message();
    }
    if (n + 1 == attempts_max) {
      return Error(ErrorCode::kConflict,
                   "'" + spec.task + "' was not brought to an acceptable end in " +
                       std::to_string(attempts_max) + " attempts: " + problem);
    }
    spec.brief = brief + "\n\nThe last attempt was not accepted: " + problem + "\n";
    spec.folder = result.workspace;
    spec.commit.clear();
  }
  return Error(ErrorCode::kInternal, "no attempt was made at " + spec.task);
}

}  // namespace team
