#include "team/stages/worker_gates.h"

#include "base/files.h"
#include "team/stages/attempt_json.h"

#include <memory>
#include <utility>

namespace team {

using base::Error;
using base::ErrorCode;
using base::Json;

WorkerGateRunner::WorkerGateRunner(const Sandbox& sandbox, Options options,
                                   const WorkerOptions& workers)
    : GateRunner(sandbox, options), scratch_(options.scratch_root), workers_(workers) {}

base::Result<Evidence> WorkerGateRunner::run_in(
    WorkerProcess& worker, const std::function<void(std::string_view)>& on_line) const {
  if (workers_.on_work) workers_.on_work("gate", worker.pid());
  for (;;) {
    Frame frame = TRY(worker.next());
    const std::string& say = frame.head["say"].as_string();
    if (say == "line") {
      if (on_line) on_line(frame.head["line"].as_string());
    } else if (say == "failed") {
      return error_from_json(frame.head);
    } else {
      Evidence evidence = evidence_from_json(frame.head["evidence"]);
      evidence.log = std::move(frame.bytes);
      return evidence;
    }
  }
}

base::Result<Evidence> WorkerGateRunner::run(
    const GateSpec& spec, const GateInput& input,
    const std::function<void(std::string_view)>& on_line) const {
  if (workers_.argv.empty()) return GateRunner::run(spec, input, on_line);
  constexpr int kTries = 3;
  for (int i = 1;; ++i) {
    auto worker = TRY(WorkerProcess::start(workers_, Json::object({{"do", "gate"},
                                                                   {"gate", to_json(spec)},
                                                                   {"product", input.product},
                                                                   {"sealed", input.sealed},
                                                                   {"keep_at", input.keep_at},
                                                                   {"scratch", scratch_}})));
    auto evidence = run_in(*worker, on_line);
    if (worker->why().empty()) return evidence;
    // The folders of the run that was cut off: gate_runner.cc names them after its process.
    const std::string prefix = "gate-" + std::to_string(worker->pid()) + "-";
    for (const std::string& name : base::list_directory(scratch_).value_or({})) {
      if (name.starts_with(prefix)) TRY(base::remove_tree(scratch_ + "/" + name));
    }
    if (i == kTries) {
      return Error(ErrorCode::kUnavailable, "gate " + spec.id + " ended its worker three times (" +
                                                worker->why() + "); see workers.log in the run's " +
                                                "folder, then resume");
    }
  }
}

}  // namespace team
