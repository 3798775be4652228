#include "team/core/machine.h"

namespace team {
namespace {

constexpr Move kRun[] = {{"", "started"},          {"started", "met"},      {"started", "unmet"},
                         {"started", "halted"},    {"halted", "started"},   {"started", "started"},
                         {"started", "escalated"}, {"escalated", "started"}};
constexpr Move kStage[] = {
    {"", "started"}, {"started", "done"}, {"started", "failed"}, {"done", "started"}};
constexpr Move kIntent[] = {{"", "received"},         {"received", "clarifying"},
                            {"clarifying", "frozen"}, {"received", "frozen"},
                            {"frozen", "superseded"}, {"frozen", "withdrawn"}};
constexpr Move kSpec[] = {{"", "draft"},           {"draft", "critiqued"}, {"critiqued", "draft"},
                          {"critiqued", "frozen"}, {"frozen", "amended"},  {"amended", "frozen"},
                          {"frozen", "retired"}};
constexpr Move kCriterion[] = {{"", "unbound"},
                               {"unbound", "bound"},
                               {"bound", "validated"},
                               {"bound", "unbound"},
                               {"validated", "failing"},
                               {"validated", "passing"},
                               {"failing", "passing"},
                               {"passing", "passing"},
                               {"failing", "failing"},
                               {"passing", "regressed"},
                               {"regressed", "passing"},
                               {"regressed", "failing"},
                               {"regressed", "regressed"},
                               {"validated", "waived"},
                               {"failing", "waived"}};
constexpr Move kAssumption[] = {{"", "made"}, {"made", "revised"}};
constexpr Move kDecision[] = {
    {"", "open"}, {"open", "decided"}, {"decided", "revisited"}, {"revisited", "decided"}};
constexpr Move kDesign[] = {
    {"", "draft"}, {"draft", "reviewed"}, {"reviewed", "frozen"}, {"frozen", "superseded"}};
constexpr Move kTask[] = {
    {"", "proposed"},          {"proposed", "ready"},      {"proposed", "blocked"},
    {"blocked", "ready"},      {"ready", "leased"},        {"leased", "submitted"},
    {"leased", "bounced"},     {"leased", "ready"},        {"submitted", "gating"},
    {"gating", "queued"},      {"gating", "bounced"},      {"queued", "merged"},
    {"queued", "bounced"},     {"bounced", "ready"},       {"bounced", "escalated"},
    {"bounced", "split"},      {"merged", "done"},         {"merged", "bounced"},
    {"proposed", "abandoned"}, {"ready", "abandoned"},     {"blocked", "abandoned"},
    {"bounced", "abandoned"},  {"escalated", "abandoned"}, {"escalated", "ready"}};
constexpr Move kAttempt[] = {{"", "created"},           {"created", "running"},
                             {"running", "submitted"},  {"running", "gave_up"},
                             {"running", "stalled"},    {"running", "bad_format"},
                             {"running", "turn_limit"}, {"running", "budget_out"},
                             {"running", "refused"},    {"running", "model_failed"},
                             {"running", "cancelled"}};
// Granted again without being lost: the orchestrator died and gives the work out anew.
constexpr Move kLease[] = {{"", "granted"},
                           {"granted", "lost"},
                           {"lost", "granted"},
                           {"granted", "granted"},
                           {"granted", "released"}};
constexpr Move kAnswer[] = {{"", "given"}};
constexpr Move kEvidence[] = {{"", "recorded"}};
constexpr Move kReview[] = {{"", "passed"}, {"", "vetoed"}};
constexpr Move kArtifact[] = {{"", "building"},        {"building", "sealed"},
                              {"building", "broken"},  {"sealed", "released"},
                              {"released", "retired"}, {"sealed", "retired"}};
constexpr Move kExperiment[] = {
    {"", "hypothesis"},    {"hypothesis", "built"},   {"hypothesis", "rejected"},
    {"built", "correct"},  {"built", "rejected"},     {"correct", "measuring"},
    {"measuring", "kept"}, {"measuring", "rejected"}, {"measuring", "inconclusive"}};
constexpr Move kDeployment[] = {{"", "planned"},
                                {"planned", "starting"},
                                {"starting", "probing"},
                                {"starting", "rolled_back"},
                                {"probing", "serving"},
                                {"probing", "rolled_back"},
                                {"serving", "degraded"},
                                {"degraded", "serving"},
                                {"degraded", "rolled_back"},
                                {"serving", "retired"},
                                {"degraded", "retired"}};
constexpr Move kMutant[] = {
    {"", "seeded"}, {"seeded", "killed"}, {"seeded", "survived"}, {"seeded", "unusable"}};
constexpr Move kFault[] = {{"", "injected"}, {"injected", "survived"}, {"injected", "broke"}};
constexpr Move kIncident[] = {{"", "open"},
                              {"open", "triaged"},
                              {"triaged", "task_filed"},
                              {"task_filed", "resolved"},
                              {"resolved", "open"}};

constexpr Machine kMachines[] = {{"run", kRun},
                                 {"stage", kStage},
                                 {"intent", kIntent},
                                 {"spec", kSpec},
                                 {"criterion", kCriterion},
                                 {"assumption", kAssumption},
                                 {"decision", kDecision},
                                 {"design", kDesign},
                                 {"task", kTask},
                                 {"attempt", kAttempt},
                                 {"lease", kLease},
                                 {"answer", kAnswer},
                                 {"evidence", kEvidence},
                                 {"review", kReview},
                                 {"artifact", kArtifact},
                                 {"experiment", kExperiment},
                                 {"deployment", kDeployment},
                                 {"mutant", kMutant},
                                 {"fault", kFault},
                                 {"incident", kIncident}};

}  // namespace

bool Machine::allows(std::string_view from, std::string_view to) const {
  for (const Move& move : moves) {
    if (move.from == from && move.to == to) return true;
  }
  return false;
}

bool Machine::is_terminal(std::string_view state) const {
  for (const Move& move : moves) {
    if (move.from == state) return false;
  }
  return true;
}

const Machine* machine_of(std::string_view kind) {
  for (const Machine& machine : kMachines) {
    if (machine.kind == kind) return &machine;
  }
  return nullptr;
}

std::span<const Machine> all_machines() {
  return kMachines;
}

}  // namespace team
