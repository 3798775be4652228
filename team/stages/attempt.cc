#include "team/stages/attempt.h"

#include "base/files.h"
#include "team/agent/machine.h"
#include "team/agent/role_file.h"
#include "team/sandbox/workspace.h"
#include "team/stages/attempt_port.h"
#include "team/stages/call_json.h"
#include "team/stages/roles.h"

#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

// A tool call whose sandbox was killed from outside is put back and run again.
constexpr int kRunsAgainMax = 2;

class Attempt {
 public:
  Attempt(const AttemptPlace& place, const AttemptSpec& spec, AttemptPort& port)
      : place_(place), spec_(spec), port_(port) {}

  Result<AttemptResult> run() {
    TRY(port_.emit("attempt.created", Json::object({{"id", spec_.id},
                                                    {"task", spec_.task},
                                                    {"number", spec_.number},
                                                    {"role", name_of(spec_.role)},
                                                    {"stage", name_of(spec_.stage)},
                                                    {"commit", spec_.commit}})));
    TRY(prepare_workspace());
    TRY(prepare_agent());
    TRY(port_.emit("attempt.running", Json::object({{"id", spec_.id}, {"role_hash", role_hash_}})));
    while (!state_.ended()) TRY(step());
    TRY(port_.emit(std::string("attempt.") + name_of(*state_.end),
                   Json::object({{"id", spec_.id},
                                 {"claim", state_.end_text.substr(0, 600)},
                                 {"turns", state_.turn}})));
    return AttemptResult{*state_.end, state_.end_text, folder_, state_.to_json(), state_.turn};
  }

 private:
  base::Status prepare_workspace() {
    folder_ = path("workspaces/" + spec_.id);
    auto make = [&]() -> Result<Json> {
      TRY(base::remove_tree(folder_));
      if (!spec_.commit.empty()) {
        TRY(place_.repo.checkout(spec_.commit, folder_));
      } else if (!spec_.folder.empty()) {
        TRY(Workspace::fork_directory(spec_.folder, folder_));
      } else {
        TRY(base::make_directories(folder_));
      }
      Workspace made = TRY(Workspace::open(folder_));
      return Json::object({{"tree", TRY(made.tree_hash())}});
    };
    TRY(port_.once({.key = "workspace",
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
    toolbox_.emplace(*workspace_, place_.sandbox, std::move(options));
    config_.role = name_of(spec_.role);
    config_.model = place_.model;
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
      show("thinking");
      result.call = TRY(port_.infer("c" + action.id, action.request));
    } else if (action.kind == ActionKind::kTool) {
      result.tool = TRY(use_tool(action));
    }
    apply(config_, state_, action, result);
    return {};
  }

  Result<ToolResult> use_tool(const AgentAction& action) {
    bool changes = Toolbox::class_of(action.call.name) == ToolClass::kWorkspace;
    std::string snapshot = path("snapshots/" + spec_.id + "-" + action.id);
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
    Json recorded = TRY(port_.once(intent, [&]() -> Result<Json> {
      if (changes) TRY(take_snapshot(snapshot));
      ToolResult result = toolbox_->run(action.call);
      // A command that kills itself does so each time, and is then believed.
      for (int again = 0; result.lost && again < kRunsAgainMax; ++again) {
        TRY(intent.undo());
        result = toolbox_->run(action.call);
      }
      return to_json(result);
    }));
    if (changes) TRY(base::remove_tree(snapshot));
    return tool_result_from_json(recorded);
  }

  // Whole or not at all: a half-made snapshot must never be restored.
  base::Status take_snapshot(const std::string& snapshot) {
    std::string making = snapshot + ".making";
    TRY(base::remove_tree(making));
    TRY(base::remove_tree(snapshot));
    TRY(base::make_directories(path("snapshots")));
    TRY(workspace_->snapshot_to(making));
    if (std::rename(making.c_str(), snapshot.c_str()) != 0) {
      return base::errno_error(errno, "keeping a snapshot at " + snapshot);
    }
    return {};
  }

  void show(const std::string& what) {
    port_.activity("turn " + std::to_string(state_.turn + 1) + "  " + what);
  }

  std::string path(const std::string& name) const { return place_.folder + "/" + name; }

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

  const AttemptPlace& place_;
  const AttemptSpec& spec_;
  AttemptPort& port_;
  std::string folder_;
  std::string role_hash_;
  std::optional<Workspace> workspace_;
  std::optional<Toolbox> toolbox_;
  AgentConfig config_;
  AgentState state_;
};

}  // namespace

Result<AttemptResult> step_attempt(const AttemptPlace& place, const AttemptSpec& spec,
                                   AttemptPort& port) {
  return Attempt(place, spec, port).run();
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
