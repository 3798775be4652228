// Build: the loop that turns tasks into merged commits. It asks the scheduler what to do, leases
// tasks to attempts on threads, gates what they hand in, and merges through the queue. A gate's
// failure bounces the task up a ladder (core/ladder.h): same context, fresh context, another model,
// a new cut of the task, and then the line stops and somebody decides (ladder.cc).
//
// Which attempt ended first is recorded, so a replay takes the same decisions in the same order.
// Single-threaded but for the attempts it starts and joins.
#pragma once

#include "team/stages/attempt.h"
#include "team/stages/engine.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace team {

class Builder {
 public:
  explicit Builder(Engine& engine) : engine_(engine) {}
  ~Builder();

  base::Status propose(const TaskDoc& task);
  // A merged task whose work turned out wrong: back to its coder with what the gates said.
  base::Status reopen(const std::string& task, const Evidence& evidence, Visibility visibility);
  // Works until every task is merged or can never be.
  base::Status run(Stage stage);
  bool merged(const std::string& task) const;
  // The merged task to blame for a criterion: the first in plan order that covers it. "" if none.
  std::string owner_of(const std::string& criterion) const;
  base::Status close_merged();  // merged tasks become done

 private:
  // The scheduler's time: one second a decision, the same on replay.
  static constexpr i64 kTickUs = 1'000'000;

  struct Work {
    TaskDoc doc;
    TaskState state = TaskState::kBlocked;
    int attempts = 0;
    i64 fence = 0;
    int queue_position = 0;
    i64 waiting_since_us = 0;
    std::string base;         // commit its attempt started from
    std::string change;       // commit of what it handed in
    std::string feedback;     // what the gates said last
    int rung = 0;             // 0: never came back; else Rung + 1
    int attempts_before = 0;  // made before somebody said "once more"
    int escalations = 0;
    bool is_part = false;                   // of a task that was split
    std::vector<std::string> parts;         // once split
    std::map<std::string, int> signatures;  // failures seen, by signature
    base::Json last_state;                  // of its agent, to go on from
  };
  struct Running {
    std::thread thread;
    std::unique_ptr<AttemptSpec> spec;
    std::unique_ptr<base::Result<AttemptResult>> result;  // set when it has ended
  };

  Work& work(const std::string& id);
  std::vector<PlanTask> graph() const;
  base::Status perform(const PlanAction& action);
  base::Status lease(Work& task);
  base::Status wait_for_one();
  base::Status take_in(Work& task, const std::string& attempt, const AttemptResult& result);
  base::Result<std::string> keep_allowed(Work& task, const AttemptResult& result,
                                         std::vector<std::string>& refused);
  base::Status gate(Work& task);
  base::Result<bool> review(Work& task, const std::string& candidate, const std::string& evidence);
  base::Status merge(const std::vector<std::string>& ids);
  base::Result<bool> tip_passes(const std::vector<std::string>& stack, int height, bool again,
                                std::string& failure);
  base::Status bounce(Work& task, const std::string& signature, const std::string& feedback,
                      const std::string& evidence);
  base::Status split(std::string id);  // by value: tasks move
  base::Status escalate(Work& task);
  base::Result<EscalationDoc> ask_decider(const Work& task);
  base::Status ask_person(const std::string& decision, EscalationDoc& said);
  base::Result<std::string> check_gate(const Work& task, const std::string& attempt,
                                       const std::string& gate);

  Engine& engine_;
  Stage stage_ = Stage::kBuild;
  std::vector<Work> tasks_;
  std::map<std::string, Running> running_;
  std::mutex mutex_;
  std::condition_variable ended_;
  i64 tick_ = 0;
  int queue_ = 0;
  int waits_ = 0;
  i64 fences_ = 0;
};

}  // namespace team
