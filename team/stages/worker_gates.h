// Gate runs in worker processes of their own: one that is killed or hangs is run again in a fresh
// one, and what it left behind is removed. Thread-safe.
#pragma once

#include "team/gate/gate_runner.h"
#include "team/worker/worker_process.h"

#include <functional>
#include <string>

namespace team {

class WorkerGateRunner : public GateRunner {
 public:
  // Both outlive the runner. Without a command line for workers, gates run in this process.
  WorkerGateRunner(const Sandbox& sandbox, Options options, const WorkerOptions& workers);
  base::Result<Evidence> run(
      const GateSpec& spec, const GateInput& input,
      const std::function<void(std::string_view)>& on_line = {}) const override;

 private:
  base::Result<Evidence> run_in(WorkerProcess& worker,
                                const std::function<void(std::string_view)>& on_line) const;
  std::string scratch_;
  const WorkerOptions& workers_;
};

}  // namespace team
