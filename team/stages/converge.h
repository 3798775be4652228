// The stages, one function each; run.cc calls them in order. See engine.h for what errors mean.
#pragma once

#include "team/stages/engine.h"

namespace team {

// Intent in; out come frozen criteria, each bound to gates that have shown that they can fail.
base::Status converge(Engine& engine);
// Decisions with their triggers, contract files frozen by hash, the first commit.
base::Status design(Engine& engine);
// A task graph that covers every criterion.
base::Status plan_work(Engine& engine);

}  // namespace team
