#include "team/stages/builder.h"

#include "base/check.h"
#include "base/files.h"
#include "base/hash.h"
#include "team/core/glob.h"
#include "team/core/ladder.h"
#include "team/core/merge_queue.h"
#include "team/gate/gate_runner.h"
#include "team/sandbox/workspace.h"
#include "team/stages/gating.h"
#include "team/stages/prompts.h"

#include <algorithm>
#include <utility>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

constexpr i64 kLeaseUs =
    i64{1} << 60;  // a task keeps its attempt; the attempt's leases to workers are attempt_host's

Json strings(const std::vector<std::string>& list) {
  return Json(Json::Array(list.begin(), list.end()));
}

}  // namespace

Builder::~Builder() {
  for (auto& [id, running] : running_) {
    if (running.thread.joinable()) running.thread.join();
  }
}

Builder::Work& Builder::work(const std::string& id) {
  auto at =
      std::find_if(tasks_.begin(), tasks_.end(), [&](const Work& w) { return w.doc.id == id; });
  CHECK(at != tasks_.end());
  return *at;
}

bool Builder::merged(const std::string& task) const {
  auto at =
      std::find_if(tasks_.begin(), tasks_.end(), [&](const Work& w) { return w.doc.id == task; });
  if (at == tasks_.end()) return false;
  if (at->state == TaskState::kSplit) {
    return std::all_of(at->parts.begin(), at->parts.end(),
                       [&](const std::string& part) { return merged(part); });
  }
  return at->state == TaskState::kMerged || at->state == TaskState::kDone;
}

std::string Builder::owner_of(const std::string& criterion) const {
  for (const Work& w : tasks_) {
    if (w.state == TaskState::kSplit || w.state == TaskState::kAbandoned) continue;
    const auto& covers = w.doc.covers;
    if (std::find(covers.begin(), covers.end(), criterion) != covers.end()) return w.doc.id;
  }
  return "";
}

base::Status Builder::propose(const TaskDoc& task) {
  Work fresh;
  fresh.doc = task;
  tasks_.push_back(std::move(fresh));
  return engine_.main.emit("task.proposed", Json::object({{"id", task.id},
                                                          {"title", task.title},
                                                          {"role", name_of(task.role)},
                                                          {"needs", strings(task.needs)},
                                                          {"touches", strings(task.touches)},
                                                          {"covers", strings(task.covers)},
                                                          {"gates", strings(task.gates)}}));
}

std::vector<PlanTask> Builder::graph() const {
  std::vector<PlanTask> out;
  for (const Work& w : tasks_) {
    PlanTask t;
    t.id = w.doc.id;
    t.role = w.doc.role;
    t.state = w.state;
    t.needs = w.doc.needs;
    t.touches = w.doc.touches;
    t.value = w.doc.value;
    t.cost = w.doc.cost;
    t.waiting_since_us = w.waiting_since_us;
    t.lease_until_us = kLeaseUs;
    t.queue_position = w.queue_position;
    t.parts = w.parts;
    out.push_back(std::move(t));
  }
  return out;
}

base::Status Builder::run(Stage stage) {
  stage_ = stage;
  while (!is_settled(graph())) {
    ++tick_;
    std::vector<PlanAction> actions =
        plan(graph(), tick_ * kTickUs, engine_.config.capacity, engine_.config.seed);
    if (actions.empty() && running_.empty()) {
      return Error(ErrorCode::kInternal,
                   "the plan cannot go on: no task is ready and none is live");
    }
    for (const PlanAction& action : actions) TRY(perform(action));
    if (actions.empty()) TRY(wait_for_one());
  }
  return {};
}

base::Status Builder::perform(const PlanAction& action) {
  Work& first = work(action.tasks[0]);
  switch (action.kind) {
    case PlanKind::kUnblock:
      first.state = TaskState::kReady;
      first.waiting_since_us = tick_ * kTickUs;
      return engine_.main.emit("task.ready", Json::object({{"id", first.doc.id}}));
    case PlanKind::kLease:
      return lease(first);
    case PlanKind::kGate:
      return gate(first);
    case PlanKind::kMerge:
      return merge(action.tasks);
    case PlanKind::kExpire:
      return {};  // not with leases that never end
  }
  return {};
}

base::Status Builder::lease(Work& task) {
  ++task.attempts;
  task.fence = ++fences_;
  task.state = TaskState::kLeased;
  task.base = engine_.head;
  std::string id = task.doc.id + ".a" + std::to_string(task.attempts);
  TRY(engine_.main.emit("task.leased", Json::object({{"id", task.doc.id},
                                                     {"worker", "process"},
                                                     {"fence", task.fence},
                                                     {"attempt", id},
                                                     {"base", task.base}})));
  auto spec = std::make_unique<AttemptSpec>();
  spec->id = id;
  spec->task = task.doc.id;
  spec->number = task.attempts;
  spec->role = task.doc.role;
  spec->stage = stage_;
  spec->brief = task_brief(task.doc, engine_.spec, engine_.design, task.feedback, task.rung);
  spec->commit = task.base;
  spec->write_globs = task.doc.touches;
  spec->read_only_globs = engine_.design.contracts;
  spec->fence = task.fence;
  if (task.rung == static_cast<int>(Rung::kOtherModel) + 1) {
    spec->model = engine_.config.other_model;
  }
  if (task.rung == 1) {
    spec->continue_from = task.last_state;
    spec->folder.clear();
  }
  spec->check = [this, doc = task.doc, id](const std::string& gate) {
    Work probe;
    probe.doc = doc;
    return check_gate(probe, id, gate);
  };
  // Going on in the same context means going on from what was handed in.
  if (task.rung == 1 && !task.change.empty()) {
    auto onto = engine_.repo.merge(task.base, task.change, task.doc.id);
    if (onto.ok()) spec->commit = *onto;
  }
  std::lock_guard lock(mutex_);
  Running& running = running_[id];  // stays where it is until it is joined
  running.spec = std::move(spec);
  running.thread = std::thread([this, &running] {
    auto result = std::make_unique<Result<AttemptResult>>(run_attempt(engine_, *running.spec));
    std::lock_guard ending(mutex_);
    running.result = std::move(result);
    ended_.notify_all();
  });
  return {};
}

// Runs a visible gate on the workspace of an attempt, for the agent's own use: no evidence.
Result<std::string> Builder::check_gate(const Work& task, const std::string& attempt,
                                        const std::string& id) {
  std::string workspace = engine_.path("workspaces/" + attempt);
  std::string folder = engine_.path("checks/" + attempt);
  TRY(base::remove_tree(folder));
  Evidence built = TRY(engine_.runner.run(build_gate(engine_.spec.interface),
                                          {.product = workspace, .sealed = "", .keep_at = folder}));
  if (built.verdict != Verdict::kPass) {
    return "it does not build:\n" + built.log.substr(0, 4000);
  }
  if (id.empty() || id == "build") return std::string("it builds\n");
  const GateSpec* gate = engine_.gate(id);
  const auto& own = task.doc.gates;
  bool visible = gate != nullptr && gate->visibility == Visibility::kVisible;
  if (!visible && std::find(own.begin(), own.end(), id) == own.end()) {
    return Error(ErrorCode::kNotFound, "there is no visible gate '" + id + "'");
  }
  Evidence evidence = TRY(
      engine_.runner.run(*gate, {.product = folder, .sealed = engine_.sealed(), .keep_at = ""}));
  return feedback_for_agent(evidence, gate->visibility);
}

base::Status Builder::wait_for_one() {
  // Who ended first is decided by the world, so it is recorded.
  EffectIntent intent{.key = "wait." + std::to_string(++waits_),
                      .kind = "attempt.wait",
                      .cls = EffectClass::kPure,
                      .request = Json(waits_)};
  Json who = TRY(engine_.main.once(intent, [&]() -> Result<Json> {
    std::unique_lock waiting(mutex_);
    std::string id;
    ended_.wait(waiting, [&] {
      for (auto& [name, running] : running_) {
        if (running.result != nullptr) id = name;
      }
      return !id.empty();
    });
    return Json::object({{"attempt", id}});
  }));
  std::string id = who["attempt"].as_string();
  auto at = running_.find(id);
  if (at == running_.end()) {
    return Error(ErrorCode::kConflict,
                 "the record names attempt " + id + ", which was not started");
  }
  at->second.thread.join();
  AttemptResult result = TRY(std::move(*at->second.result));
  std::string task = at->second.spec->task;
  {
    std::lock_guard erasing(mutex_);
    running_.erase(at);
  }
  return take_in(work(task), id, result);
}

base::Status Builder::take_in(Work& task, const std::string& attempt, const AttemptResult& result) {
  task.last_state = result.state;
  if (result.end != AttemptEnd::kSubmitted) {
    return bounce(
        task, std::string("attempt:") + name_of(result.end),
        std::string("the attempt ended as ") + name_of(result.end) + ": " + result.text + "\n", "");
  }
  std::vector<std::string> refused;
  task.change = TRY(keep_allowed(task, result, refused));
  task.state = TaskState::kSubmitted;
  return engine_.main.emit("task.submitted",
                           Json::object({{"id", task.doc.id},
                                         {"attempt", attempt},
                                         {"change", task.change},
                                         {"claim", result.text.substr(0, 400)},
                                         {"refused", strings(refused)}}),
                           task.fence);
}

// The path policy: of what was handed in only files the task may touch are taken over; contracts,
// gates and everybody else's files stay as they were.
Result<std::string> Builder::keep_allowed(Work& task, const AttemptResult& result,
                                          std::vector<std::string>& refused) {
  std::string number = std::to_string(task.attempts);
  Json kept = TRY(engine_.main.once(
      {.key = "commit." + task.doc.id + ".a" + number,
       .kind = "change.commit",
       .cls = EffectClass::kExternal,
       .request = Json::object({{"base", task.base}})},
      [&]() -> Result<Json> {
        std::string raw = TRY(engine_.repo.commit(result.workspace, task.base, "raw"));
        base::TempDir staging("fleet-change");
        TRY(engine_.repo.checkout(task.base, staging.path()));
        Json out = Json::object({{"refused", Json::array()}});
        for (const std::string& file : TRY(engine_.repo.changed(task.base, raw))) {
          const auto& touches = task.doc.touches;
          const auto& frozen = engine_.design.contracts;
          bool allowed =
              std::any_of(touches.begin(), touches.end(),
                          [&](const std::string& glob) { return glob_matches(glob, file); }) &&
              std::find(frozen.begin(), frozen.end(), file) == frozen.end();
          if (!allowed) {
            out.at("refused").push(file);
            continue;
          }
          std::string to = staging / file;
          auto content = base::read_file(result.workspace + "/" + file);
          if (!content.ok()) {
            TRY(base::remove_tree(to));
            continue;
          }
          if (to.rfind('/') != std::string::npos) {
            TRY(base::make_directories(to.substr(0, to.rfind('/'))));
          }
          TRY(base::write_file(to, *content));
        }
        out.set("commit", TRY(engine_.repo.commit(staging.path(), task.base,
                                                  task.doc.id + ": " + task.doc.title)));
        return out;
      }));
  for (const Json& file : kept["refused"].items()) refused.push_back(file.as_string());
  return kept["commit"].as_string();
}

base::Status Builder::gate(Work& task) {
  task.state = TaskState::kGating;
  TRY(engine_.main.emit("task.gating", Json::object({{"id", task.doc.id}})));
  Json merged = TRY(engine_.main.once(
      {.key = "candidate." + task.doc.id,
       .kind = "change.merge",
       .cls = EffectClass::kExternal,
       .request = Json::object({{"onto", engine_.head}, {"change", task.change}})},
      [&]() -> Result<Json> {
        if (task.base == engine_.head) return Json::object({{"commit", task.change}});
        auto commit = engine_.repo.merge(engine_.head, task.change, task.doc.id);
        if (commit.ok()) return Json::object({{"commit", *commit}});
        if (commit.error().code() != ErrorCode::kConflict) return commit.error();
        return Json::object({{"conflict", commit.error().message()}});
      }));
  if (merged.has("conflict")) {
    return bounce(task, "conflict", merged["conflict"].as_string() + "\n", "");
  }
  std::string candidate = merged["commit"].as_string();
  Built built = TRY(build_commit(engine_, candidate));
  if (!built.ok) {
    return bounce(task, failure_signature(built.evidence),
                  "it does not build:\n" + built.evidence.log.substr(0, 4000) + "\n",
                  built.evidence.id);
  }
  std::string seen = feedback_for_agent(built.evidence, Visibility::kVisible);
  for (const Evidence& evidence : TRY(run_gates(engine_, built, task.doc.gates))) {
    Visibility visibility = engine_.gate(evidence.gate)->visibility;
    if (evidence.verdict != Verdict::kPass) {
      for (const std::string& criterion : engine_.gate(evidence.gate)->criteria) {
        TRY(engine_.judge(criterion, false, evidence));
      }
      return bounce(task, failure_signature(evidence), feedback_for_agent(evidence, visibility),
                    evidence.id);
    }
    seen += feedback_for_agent(evidence, visibility);
  }
  if (!TRY(review(task, candidate, seen))) return {};
  task.state = TaskState::kQueued;
  task.queue_position = ++queue_;
  return engine_.main.emit("task.queued",
                           Json::object({{"id", task.doc.id}, {"candidate", candidate}}));
}

// A fresh pair of eyes on the change. True: no veto.
Result<bool> Builder::review(Work& task, const std::string& candidate,
                             const std::string& evidence) {
  std::string diff = TRY(engine_.repo.diff(task.base, task.change));
  AttemptSpec spec;
  spec.task = task.doc.id + "-review";
  spec.number = task.attempts;
  spec.role = Role::kReviewer;
  spec.stage = Stage::kVerify;
  spec.brief = review_brief(task.doc, engine_.spec, diff.substr(0, 40'000), evidence);
  spec.commit = candidate;
  spec.write_globs = {"review.json"};
  CritiqueDoc verdict;
  TRY(run_document(engine_, spec, 1, [&](const AttemptResult& result) -> base::Status {
    verdict = TRY(critique_from_json(TRY(read_document(result, "review.json"))));
    return {};
  }));
  Json findings = Json::array();
  std::string feedback;
  for (const Finding& f : verdict.findings) {
    findings.push(Json::object({{"about", f.about}, {"severity", f.severity}, {"text", f.text}}));
    feedback += "- " + f.severity + ", " + f.about + ": " + f.text + "\n";
  }
  std::string id = task.doc.id + ".r" + std::to_string(task.attempts);
  TRY(engine_.main.emit(
      verdict.veto ? "review.vetoed" : "review.passed",
      Json::object({{"id", id}, {"task", task.doc.id}, {"findings", std::move(findings)}})));
  if (!verdict.veto) return true;
  TRY(bounce(task, "review", "the reviewer vetoed it:\n" + feedback, ""));
  return false;
}

base::Status Builder::merge(const std::vector<std::string>& ids) {
  std::string failure;
  StackResult result = TRY(test_stack(static_cast<int>(ids.size()), [&](int height, bool again) {
    return tip_passes(ids, height, again, failure);
  }));
  for (int i = 0; i < result.good; ++i) {
    Work& task = work(ids[static_cast<size_t>(i)]);
    Json onto = TRY(engine_.main.once(
        {.key = "merge." + task.doc.id,
         .kind = "change.merge",
         .cls = EffectClass::kExternal,
         .request = Json::object({{"onto", engine_.head}, {"change", task.change}})},
        [&]() -> Result<Json> {
          std::string commit = task.change;
          if (task.base != engine_.head) {
            commit = TRY(engine_.repo.merge(engine_.head, task.change, task.doc.id));
          }
          TRY(engine_.repo.move_branch("main", commit));
          return Json::object({{"commit", commit}});
        }));
    engine_.head = onto["commit"].as_string();
    task.state = TaskState::kMerged;
    TRY(engine_.main.emit("task.merged",
                          Json::object({{"id", task.doc.id}, {"commit", engine_.head}})));
  }
  if (result.culprit < 0) return {};
  Work& task = work(ids[static_cast<size_t>(result.culprit)]);
  return bounce(task, "merge", "it breaks the stack it was merged on:\n" + failure, "");
}

// Builds the stack up to `height` and runs the gates of everything in it.
Result<bool> Builder::tip_passes(const std::vector<std::string>& stack, int height, bool again,
                                 std::string& failure) {
  std::string tip = engine_.head;
  std::vector<std::string> gates;
  for (const Work& w : tasks_) {
    if (w.state == TaskState::kMerged)
      gates.insert(gates.end(), w.doc.gates.begin(), w.doc.gates.end());
  }
  for (int i = 0; i < height; ++i) {
    Work& task = work(stack[static_cast<size_t>(i)]);
    gates.insert(gates.end(), task.doc.gates.begin(), task.doc.gates.end());
    if (task.base == tip) {
      tip = task.change;
      continue;
    }
    auto merged = engine_.repo.merge(tip, task.change, task.doc.id);
    if (!merged.ok() && merged.error().code() == ErrorCode::kConflict) {
      failure = merged.error().message() + "\n";
      return false;
    }
    tip = TRY(std::move(merged));
  }
  if (again) engine_.evidence.clear();
  Built built = TRY(build_commit(engine_, tip));
  if (!built.ok) {
    failure = built.evidence.log.substr(0, 4000);
    return false;
  }
  std::sort(gates.begin(), gates.end());
  gates.erase(std::unique(gates.begin(), gates.end()), gates.end());
  for (const Evidence& evidence : TRY(run_gates(engine_, built, gates))) {
    if (evidence.verdict == Verdict::kPass) continue;
    failure = feedback_for_agent(evidence, engine_.gate(evidence.gate)->visibility);
    return false;
  }
  return true;
}

base::Status Builder::bounce(Work& task, const std::string& signature, const std::string& feedback,
                             const std::string& evidence) {
  task.feedback = feedback;
  const Rung rung = next_rung(++task.signatures[signature], task.attempts - task.attempts_before,
                              !task.is_part, {.attempts_max = engine_.config.attempts_max});
  task.rung = static_cast<int>(rung) + 1;
  task.state = TaskState::kBounced;
  TRY(engine_.main.emit("task.bounced", Json::object({{"id", task.doc.id},
                                                      {"reason", feedback.substr(0, 600)},
                                                      {"signature", signature},
                                                      {"evidence", evidence},
                                                      {"rung", task.rung},
                                                      {"step", name_of(rung)}})));
  if (rung == Rung::kSplit) return split(task.doc.id);
  if (rung == Rung::kEscalate) return escalate(task);
  task.state = TaskState::kReady;
  task.waiting_since_us = tick_ * kTickUs;
  return engine_.main.emit("task.ready", Json::object({{"id", task.doc.id}}));
}

base::Status Builder::reopen(const std::string& id, const Evidence& evidence,
                             Visibility visibility) {
  return bounce(work(id), failure_signature(evidence), feedback_for_agent(evidence, visibility),
                evidence.id);
}

base::Status Builder::close_merged() {
  for (Work& w : tasks_) {
    if (w.state != TaskState::kMerged) continue;
    w.state = TaskState::kDone;
    TRY(engine_.main.emit("task.done", Json::object({{"id", w.doc.id}})));
  }
  return {};
}

}  // namespace team
