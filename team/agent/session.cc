#include "team/agent/session.h"

namespace team {

AgentSession::AgentSession(const AgentConfig& config, Model& model, Toolbox& toolbox, Hooks hooks,
                           AgentState state)
    : config_(config),
      model_(model),
      toolbox_(toolbox),
      hooks_(std::move(hooks)),
      state_(std::move(state)) {}

AgentResult AgentSession::perform(const AgentAction& action) {
  AgentResult result;
  if (action.kind == ActionKind::kInfer) {
    result.call = model_.complete(action.request, hooks_.on_delta);
  } else if (action.kind == ActionKind::kTool) {
    result.tool = toolbox_.run(action.call);
  }
  return result;
}

base::Result<AgentAction> AgentSession::step() {
  AgentSignals signals;
  signals.cancelled = hooks_.cancelled && hooks_.cancelled();
  AgentAction action = next_action(config_, state_, signals);
  if (hooks_.before && action.kind != ActionKind::kEnd) {
    if (base::Status allowed = hooks_.before(action); !allowed.ok()) {
      action = AgentAction();
      action.end = AttemptEnd::kBudgetOut;
      action.reason = allowed.error().message();
    }
  }
  const AgentResult result = perform(action);
  apply(config_, state_, action, result);
  if (hooks_.after) TRY(hooks_.after(action, result, state_));
  return action;
}

base::Status AgentSession::run() {
  while (!state_.ended()) TRY(step());
  return {};
}

}  // namespace team
