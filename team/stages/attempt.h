// One attempt of an agent at a task: a workspace forked for it, the agent's machine stepped with
// every model call and tool call as a recorded effect of the attempt's own strand ("T2.a1"), and
// the attempt's single end. Running the same attempt again after a crash passes what is on record
// and carries on; a tool call that was cut off finds its workspace as it was before.
//
// The model's text is kept as text. What an attempt is worth is for the gates to say.
// Thread-safe: attempts may run at once, each on one thread.
#pragma once

#include "team/agent/toolbox.h"
#include "team/core/attempt_end.h"
#include "team/stages/engine.h"

#include <functional>
#include <string>
#include <vector>

namespace team {

struct AttemptSpec {
  std::string id;    // "T2.a1"
  std::string task;  // "T2"; documents have tasks too: "spec", "design"
  int number = 1;
  Role role = Role::kCoder;
  Stage stage = Stage::kBuild;
  std::string model;   // "": the run's
  std::string brief;   // what to do: goes under the task line of the pinned block
  std::string commit;  // files to start from; "" for an empty folder
  std::string folder;  // or a folder to start from
  std::vector<std::string> write_globs;
  std::vector<std::string> read_only_globs;
  std::vector<SandboxMount> mounts;
  i64 fence = 0;
  // Goes on with the transcript of an earlier attempt instead of a fresh context.
  base::Json continue_from;  // AgentState, or null
  std::function<base::Result<std::string>(const std::string& gate)> check;
};

struct AttemptResult {
  AttemptEnd end = AttemptEnd::kCancelled;
  std::string text;       // what was submitted, or why it ended: a claim
  std::string workspace;  // folder
  base::Json state;       // AgentState, to go on from
  int turns = 0;
};

base::Result<AttemptResult> run_attempt(Engine& engine, const AttemptSpec& spec);

// Reads a document the attempt left in its workspace and parses it; an error is meant for its
// author.
base::Result<base::Json> read_document(const AttemptResult& result, const std::string& name);

// Runs attempts at a document until `accept` takes what was left, telling the author each time what
// was wrong. Errors: kConflict when the last attempt was not accepted either.
base::Result<AttemptResult> run_document(
    Engine& engine, AttemptSpec spec, int attempts_max,
    const std::function<base::Status(const AttemptResult&)>& accept);

}  // namespace team
