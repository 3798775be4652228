// Decisions that production reopened. After each deployment what it measured, and what the run has
// cost, is held against the triggers of the design's decisions (ops/triggers.h). One that fires is
// decided again by the architect, who sees the numbers: kept, with a trigger that does not fire on
// the same numbers at once, or changed, and then a task makes the product follow. Each decision is
// reopened once in a run. Single-threaded.
#pragma once

#include "team/ops/triggers.h"
#include "team/stages/engine.h"

#include <map>
#include <string>
#include <vector>

namespace team {

class Revisits {
 public:
  explicit Revisits(Engine& engine) : engine_(engine) {}
  // The tasks that changed decisions ask for. `operation`: Monitor::to_json() of the deployment,
  // or null when it never served.
  base::Result<std::vector<TaskDoc>> after(const std::string& deployment,
                                           const base::Json& operation);
  // Nobody could do the work of that task: its decision is again what it was.
  base::Status withdraw(const TaskDoc& task);

 private:
  base::Result<RevisionDoc> ask(const DecisionDoc& decision, const std::string& because,
                                const Measured& measured);
  base::Status reopen(const DecisionDoc& decision, const std::string& because,
                      const std::string& deployment);
  base::Status decide(DecisionDoc& decision, const RevisionDoc& said);
  TaskDoc task_for(const DecisionDoc& decision, const RevisionDoc& revision) const;

  Engine& engine_;
  std::map<std::string, DecisionDoc> reopened_;  // by id, as it was before
};

}  // namespace team
