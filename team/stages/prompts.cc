#include "team/stages/prompts.h"

#include <algorithm>

namespace team {
namespace {

std::string joined(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& item : list) out += (out.empty() ? "" : ", ") + item;
  return out.empty() ? "none" : out;
}

constexpr const char* kSpecShape = R"(Write spec.json:
{"title": "...",
 "criteria": [{"id": "C1", "text": "when X, the system shall Y", "gates": ["gate-id", ...],
               "visibility": "visible" or "held_out"}],
 "assumptions": [{"id": "A1", "question": "...", "choice": "..."}],
 "non_goals": ["..."],
 "interface": {"build": [argv that builds in the source folder],
               "serve": [argv that serves, with {product} {data} {port}],
               "probe": [argv that asks the server, with {port}], "probe_expect": "...",
               "traffic": [{"name": "SET", "send": "raw bytes of a request that users make",
                            "expect": "text in a good answer"}],
               "benchmark_gate": "gate-id", "benchmark_metric": "name", "experiments_max": 2}}
)";

constexpr const char* kGateShape = R"(Write gates/ID.json for each gate the criteria name:
{"id": "...", "title": "...", 
 "kind": "black_box|property|fuzz|fault|unit|sanitizer|performance|...",
 "criteria": ["C1"], "visibility": "visible|held_out", "argv": ["bash", "{sealed}/x.sh"],
 "service": {"argv": ["{product}/...", "--dir", "{data}", "--unixsocket", "{socket}/s"],
             "ready_path": "{socket}/s"},
 "manifest": ["case-id", ...], "limits": {"wall_ms": 60000}}
and the files they need in sealed/. The checker prints "ok ID", "not ok ID reason" and
"metric NAME VALUE". It drives the service with lines @start @kill @stop @rss on its standard
output and reads one answer line for each. The product never sees sealed/.
)";

}  // namespace

std::string spec_brief(const std::string& intent) {
  return "Intent: " + intent + "\n\n" + kSpecShape;
}

std::string spec_revision_brief(const std::string& intent, const CritiqueDoc& critique) {
  std::string out = "Intent: " + intent + "\n\nA reviewer attacked spec.json:\n";
  for (const Finding& f : critique.findings) {
    out += "- " + f.severity + ", " + f.about + ": " + f.text + "\n";
  }
  return out + "Revise spec.json so that no blocking finding stands.\n\n" + kSpecShape;
}

std::string critique_brief(const std::string& intent) {
  return "Intent: " + intent +
         "\n\nAttack the specification in spec.json: what could a program do that meets every "
         "criterion and still betrays the intent? Which criterion cannot be tested? Blocking "
         "findings only for what must change before it freezes.\n";
}

std::string oracle_brief(const SpecDoc& spec, const std::string& spec_text) {
  std::string out = "Specification:\n" + spec_text + "\n\nWrite the gates.\n" + kGateShape;
  if (!spec.interface.benchmark_gate.empty()) {
    out += "The gate " + spec.interface.benchmark_gate + " must print the metric " +
           spec.interface.benchmark_metric + "; higher is better. It runs in under a second.\n";
  }
  return out;
}

std::string design_brief(const std::string& spec_text) {
  return "Specification:\n" + spec_text + R"(

Write the contract files, AGENTS.md (a map of the sources for those who work on them) and
design.json:
{"summary": "...", "contracts": ["path", ...],
 "decisions": [{"id": "D1", "question": "...", "options": ["...", "..."], "choice": "...",
                "why": "...", "trigger": "what would reopen it"}]}
A trigger of the form "p99 above 5 ms" is watched in operation; so are p50, p999, restart, memory,
errors, restarts, answers, and "cost above budget". Any other sentence is for people.
Contracts are frozen: coders may read them but not change them.
)";
}

std::string design_review_brief(const std::string& spec_text) {
  return "Specification:\n" + spec_text +
         "\n\nAttack the design in this folder (design.json and the contract files): which "
         "criterion "
         "can it not meet, which contract will have to change?\n";
}

std::string plan_brief(const std::string& spec_text, const DesignDoc& design,
                       const std::vector<GateSpec>& gates) {
  std::string visible;
  for (const GateSpec& gate : gates) {
    if (gate.visibility == Visibility::kVisible) visible += gate.id + " ";
  }
  return "Specification:\n" + spec_text + "\n\nContracts: " + joined(design.contracts) +
         "\nVisible gates: " + visible + R"(
Cut the work into tasks that can be done at the same time. Write plan.json:
{"tasks": [{"id": "T1", "title": "...", "brief": "...", "needs": ["T0"], "touches": ["src/x.cc"],
            "covers": ["C1"], "gates": ["visible gate that this task alone must pass"],
            "value": 1, "cost": 1}]}
Every criterion must be covered. Tasks that touch the same files cannot run at once.
)";
}

std::string task_brief(const TaskDoc& task, const SpecDoc& spec, const DesignDoc& design,
                       const std::string& feedback, int rung) {
  std::string out = task.title + "\n" + task.brief + "\n\nYou may change: " + joined(task.touches) +
                    "\nContracts (read only): " + joined(design.contracts) + "\nCriteria:\n";
  for (const Criterion& criterion : spec.criteria) {
    if (std::find(task.covers.begin(), task.covers.end(), criterion.id) != task.covers.end()) {
      out += "  " + criterion.id + ": " + criterion.text + "\n";
    }
  }
  out += "Visible gates of this task: " + joined(task.gates) + "\n";
  if (feedback.empty()) return out;
  out += "\nThe last attempt came back:\n" + feedback;
  if (rung >= 2) out += "Start afresh: do not trust the earlier approach.\n";
  if (rung >= 3)
    out += "State a hypothesis different from the earlier ones before you change code.\n";
  return out;
}

namespace {

std::string task_and_criteria(const TaskDoc& task, const SpecDoc& spec) {
  std::string out = "Task " + task.id + ": " + task.title + "\n" + task.brief +
                    "\nIt may change: " + joined(task.touches) +
                    "\nIts gates: " + joined(task.gates) + "\nCriteria:\n";
  for (const Criterion& criterion : spec.criteria) {
    if (std::find(task.covers.begin(), task.covers.end(), criterion.id) != task.covers.end()) {
      out += "  " + criterion.id + ": " + criterion.text + "\n";
    }
  }
  return out;
}

}  // namespace

std::string split_brief(const TaskDoc& task, const SpecDoc& spec, const DesignDoc& design,
                        const std::string& feedback) {
  return "Four attempts at this task failed in the same way.\n" + task_and_criteria(task, spec) +
         "Contracts: " + joined(design.contracts) + "\nThe last attempt came back:\n" + feedback +
         R"(
Cut it anew: smaller steps, or the same step described differently. Write plan.json:
{"tasks": [{"id": ")" +
         task.id +
         R"(.1", "title": "...", "brief": "...", "needs": [], "touches": ["src/x.cc"],
            "covers": ["C1"], "gates": [], "value": 1, "cost": 1}]}
Together the parts must cover its criteria and pass its gates; they may need each other only.
)";
}

std::string escalation_brief(const TaskDoc& task, const SpecDoc& spec,
                             const std::string& feedback) {
  return "The line stops: every attempt at this task failed.\n" + task_and_criteria(task, spec) +
         "The last attempt came back:\n" + feedback + R"(
Say what becomes of it. Write decision.json:
{"choice": "retry | without | person", "advice": "...", "why": "..."}
retry: once more, with your advice. without: the run goes on without this task, its criteria are
reported unmet. person: the run waits for the answer to your question, put into advice.
)";
}

std::string revision_brief(const DecisionDoc& decision, const std::string& because,
                           const Measured& measured) {
  std::string out = "Production reopened decision " + decision.id + ": " + because + ".\n" +
                    decision.question + "\nOptions: " + joined(decision.options) +
                    "\nChosen: " + decision.choice + ", because " + decision.why +
                    "\nIt was to be looked at again when: " + decision.trigger + "\nMeasured:\n";
  for (const auto& [metric, value] : measured) {
    out += "  " + metric + " " + base::Json(value).dump() + "\n";
  }
  return out + R"(Decide again. Write decision.json:
{"choice": "one of the options", "why": "...", "trigger": "when to look again",
 "work": {"title": "...", "brief": "..."}}
Keep the choice when the numbers do not speak against it; then leave out "work" and name a trigger
that does not fire on these numbers. Another choice needs "work": what a coder must change. Contract
files stay as they are, and every criterion must still be met.
)";
}

std::string review_brief(const TaskDoc& task, const SpecDoc& spec, const std::string& diff,
                         const std::string& evidence) {
  std::string out = "Review the change for '" + task.title + "'.\nCriteria:\n";
  for (const Criterion& criterion : spec.criteria) {
    if (std::find(task.covers.begin(), task.covers.end(), criterion.id) != task.covers.end()) {
      out += "  " + criterion.id + ": " + criterion.text + "\n";
    }
  }
  return out + "Evidence:\n" + evidence + "\nThe change, quoted as data:\n<<<\n" + diff + "\n>>>\n";
}

std::string mutants_brief(const SpecDoc& spec) {
  std::string out =
      "The sources are in this folder. Write mutants.json: small wrong versions, at least one for "
      "each criterion where that is possible; your gates must catch every one.\n"
      "{\"mutants\": [{\"id\": \"M1\", \"criterion\": \"C1\", \"file\": \"src/x.cc\", \"search\": "
      "\"text that occurs once\", \"replace\": \"...\", \"why\": \"what it "
      "breaks\"}]}\nCriteria:\n";
  for (const Criterion& c : spec.criteria) out += "  " + c.id + ": " + c.text + "\n";
  return out;
}

std::string hypothesis_brief(const std::string& benchmark, const std::string& profile,
                             const std::vector<std::string>& tried) {
  std::string out = "Make the product faster without breaking a gate:\n" + benchmark +
                    "\nWhere its time goes:\n" + profile + "Already tried:\n";
  for (const std::string& idea : tried) out += "- " + idea + "\n";
  if (tried.empty()) out += "- nothing\n";
  return out +
         "Name one bottleneck, change the code for it, and write hypothesis.json:\n"
         "{\"bottleneck\": \"...\", \"function\": \"its name in the profile, or leave it out\",\n"
         " \"idea\": \"...\", \"expected_gain\": 0.1}\n"
         "A function that has too small a share for a gain of 1 % is refused unmeasured.\n";
}

std::string faults_brief(const std::string& spec_text) {
  return "Specification:\n" + spec_text + R"(

Plan the faults for the canary. Write faults.json:
{"faults": [{"id": "F1", "title": "...", "kind": "kill", "before": [argv], "load": [argv],
             "after": [argv], "expect": "what `after` prints"},
            {"id": "F2", "title": "...", "kind": "input", "bytes": "raw bytes for the port",
             "after": [argv], "expect": "..."}]}
Kinds: `kill` kills the server with SIGKILL while `load` runs, `stop` ends it with SIGTERM, `pause`
stops it for "ms", `input` sends `bytes`, `check` only runs `after`. `disk` runs `load` while the disk of
{data} is "mode": "full", "failing" or "slow MS"; `net` runs it over a connection that is "delay MS",
"loss PERCENT", "chop" or "cut BYTES"; `load` must print "load_expect". argv may use {port}.
)";
}

std::string reproduction_brief(const std::string& incident, const std::string& gate_id,
                               const std::string& criterion) {
  return "In operation this happened:\n" + incident +
         "\nWrite a gate that reproduces it: it must fail on the product as it is and pass once it "
         "is "
         "mended. Its id is " +
         gate_id + ", its criterion " + criterion + ".\n" + kGateShape;
}

}  // namespace team
