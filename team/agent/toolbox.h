// The hands of an agent: read, list, search, symbols, patch, write, run, start, poll, stop, check,
// note, ask, submit, give_up, all inside one workspace and one sandbox. No tool reaches a gate,
// evidence, the spec or the ledger. Results are cut to head and tail; the full text goes to
// ToolResult::full_log. Single-threaded.
#pragma once

#include "team/agent/machine.h"
#include "team/sandbox/sandbox.h"
#include "team/sandbox/workspace.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace team {

// Decides how a half-done call is recovered after a crash.
enum class ToolClass {
  kPure,       // run again
  kWorkspace,  // restore the snapshot, run again
};

struct ToolboxOptions {
  std::vector<std::string> tools;            // names this role may use; order is the prefix's order
  std::vector<std::string> write_globs;      // files it may change; empty: all
  std::vector<std::string> read_only_globs;  // contract files: may be read, not changed
  std::vector<SandboxMount> mounts;          // on top of the workspace at /work
  SandboxLimits run_limits;
  size_t result_bytes_max = 12'000;
  // The visible gates of the task; text for the model. Absent: the tool says there is none.
  std::function<base::Result<std::string>(const std::string& gate)> check;
  // Puts a question to the decider; the text is what the agent is told at once.
  std::function<base::Result<std::string>(const std::string& question)> ask;
};

class Toolbox {
 public:
  // Both outlive the toolbox.
  Toolbox(const Workspace& workspace, const Sandbox& sandbox, ToolboxOptions options);
  ~Toolbox();

  const std::vector<ToolSpec>& specs() const;
  static ToolClass class_of(const std::string& tool);
  // Never fails: a bad call is a result with is_error set that tells the model what to do.
  ToolResult run(const ToolCall& call);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace team
