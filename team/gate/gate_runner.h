// Runs gates (core/gate_spec.h) out of process and writes evidence. Only the engine's own reading
// of exit statuses, outputs and times goes into it; nothing the product or an agent says about
// itself does.
//
// Where things are inside: {product} = /product, {sealed} = /sealed, {data} = /data, {socket} =
// /socket. The product never sees /sealed, the checker never sees /data; each runs in a sandbox of
// its own. A gate with a service may also use TCP: both sandboxes share one loopback that nobody
// else is on.
//
// Errors are for misuse only (no such folder); everything that can happen while running is a
// verdict. Thread-safe.
#pragma once

#include "base/result.h"
#include "team/core/evidence.h"
#include "team/core/gate_spec.h"
#include "team/sandbox/sandbox.h"

#include <functional>
#include <string>

namespace team {

struct GateInput {
  std::string product;  // folder, copied before use; a .git at its top is left out
  std::string sealed;   // folder with the gate's sealed files, or ""
  std::string
      keep_at;  // where to leave the copy of a writable gate (a build's output), or "": removed
};

class GateRunner {
 public:
  struct Options {
    std::string scratch_root;  // copies are made and removed here
  };
  // `sandbox` outlives the runner.
  GateRunner(const Sandbox& sandbox, Options options);
  virtual ~GateRunner() = default;
  // A sandbox that is killed from outside says nothing about the product: the gate is run again,
  // and only when that happens three times is it the verdict kError. `on_line` sees the checker's
  // result lines as they come, for progress displays.
  virtual base::Result<Evidence> run(
      const GateSpec& spec, const GateInput& input,
      const std::function<void(std::string_view)>& on_line = {}) const;

 private:
  struct Once;
  base::Result<Once> run_once(const GateSpec& spec, const GateInput& input,
                              const std::function<void(std::string_view)>& on_line) const;
  const Sandbox& sandbox_;
  Options options_;
};

// SHA-256 of the gate's canonical JSON and of every sealed file's path and content.
base::Result<std::string> gate_command_hash(const GateSpec& spec, const std::string& sealed);

// Equal for the same failure on different trees: gate, verdict and failing ids with numbers,
// addresses and paths taken out. Drives the bounce ladder. "" for a pass.
std::string failure_signature(const Evidence& evidence);

}  // namespace team
