// Machine, model and hands together: one step() is one action performed and folded in. The caller
// stores state() after each. For callers that record intent and result themselves, use the machine
// directly. Single-threaded.
#pragma once

#include "team/agent/machine.h"
#include "team/agent/toolbox.h"

#include <functional>
#include <string>

namespace team {

class AgentSession {
 public:
  struct Hooks {
    // Both may be empty. `before` sees the action before it is performed and may veto it (budget):
    // an error ends the attempt as kBudgetOut with its sentence.
    std::function<base::Status(const AgentAction&)> before;
    std::function<base::Status(const AgentAction&, const AgentResult&, const AgentState&)> after;
    std::function<bool()> cancelled;
    DeltaSink on_delta;
  };
  // All outlive the session.
  AgentSession(const AgentConfig& config, Model& model, Toolbox& toolbox, Hooks hooks,
               AgentState state);
  // Performs one action. Errors: what Hooks::after returned (a ledger that cannot be written).
  base::Result<AgentAction> step();
  // Steps until the attempt ends.
  base::Status run();
  const AgentState& state() const { return state_; }

 private:
  AgentResult perform(const AgentAction& action);
  const AgentConfig& config_;
  Model& model_;
  Toolbox& toolbox_;
  Hooks hooks_;
  AgentState state_;
};

}  // namespace team
