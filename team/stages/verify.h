// Verify, tune and operate: what is merged is judged by every gate, made faster where that can be
// proved, and run under supervision. See engine.h for what errors mean.
#pragma once

#include "team/stages/builder.h"
#include "team/stages/engine.h"

#include <string>
#include <vector>

namespace team {

// Runs every gate on the head, bounces what fails to the task that covers it, until all criteria
// pass or a task is escalated. True: all criteria pass on `engine.head`.
base::Result<bool> verify(Engine& engine, Builder& builder);
// Seeded mutants must each be noticed by the gates of their criterion. True: all were.
base::Result<bool> kill_mutants(Engine& engine);
// The performance loop: hypothesis, fork, gates, paired measurement, keep or reject.
base::Status tune(Engine& engine);
// Builds the head twice from clean sources, compares, and seals the result as artefact `id`.
base::Status seal_artifact(Engine& engine, const std::string& id);
// Runs the sealed artefact under supervision, injects the planned faults, turns what breaks into a
// reproduction, a task and a fix, and deploys that. True: it serves, and all planned faults are
// survived.
base::Result<bool> operate(Engine& engine, Builder& builder);

// Criteria that do not pass now: shown to fail, or never judged because the run did not get there.
struct Unmet {
  std::vector<std::string> failing, unjudged;
  bool empty() const { return failing.empty() && unjudged.empty(); }
};
Unmet unmet_criteria(const Engine& engine);

}  // namespace team
