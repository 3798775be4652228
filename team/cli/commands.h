// The subcommands of fleet, each a function from options to an exit code. Output for people goes to
// standard output; with `json` it is one JSON document there. Problems are one sentence on standard
// error.
//
// Exit codes: 0 met; 2 criteria unmet; 3 budget; 4 needs a person; 5 surroundings unfit (no
// sandbox, no model, no space, bad input); 6 ledger damaged.
#pragma once

#include "base/result.h"

#include <string>
#include <vector>

namespace team {

inline constexpr int kExitMet = 0;
inline constexpr int kExitUnmet = 2;
inline constexpr int kExitBudget = 3;
inline constexpr int kExitPerson = 4;
inline constexpr int kExitUnfit = 5;
inline constexpr int kExitDamaged = 6;

struct CommandOptions {
  std::string run;      // name beneath the runs folder, or a path
  std::string example;  // NAME beneath examples/
  std::string intent;
  std::string id;  // a task, criterion, evidence ... or RUN@SEQ for fork
  std::string by = "role";
  std::string url, model, api = "openai";
  std::string gates;  // folder of gate files
  std::string gate;   // one gate id, or "" for all
  std::string sealed;
  std::string folder = ".";
  std::string script;
  std::string config;          // "": fleet.json here, if there is one
  std::string record, replay;  // cassettes
  bool strict = false;
  bool without = false;
  std::string text;
  int port = 0;
  bool json = false;
  bool quiet = false;
};

using base::Result;

Result<int> command_new(const CommandOptions& options);
Result<int> command_run(const CommandOptions& options);
Result<int> command_replay(const CommandOptions& options);
Result<int> command_worker(const CommandOptions& options);  // not for people
Result<int> command_answer(const CommandOptions& options);
Result<int> command_fork(const CommandOptions& options);
Result<int> command_deploy(const CommandOptions& options);

Result<int> command_status(const CommandOptions& options);
Result<int> command_watch(const CommandOptions& options);
Result<int> command_log(const CommandOptions& options);
Result<int> command_spec(const CommandOptions& options);
Result<int> command_plan(const CommandOptions& options);
Result<int> command_why(const CommandOptions& options);
Result<int> command_evidence(const CommandOptions& options);
Result<int> command_diff(const CommandOptions& options);
Result<int> command_cost(const CommandOptions& options);
Result<int> command_perf(const CommandOptions& options);
Result<int> command_incidents(const CommandOptions& options);
Result<int> command_report(const CommandOptions& options);

Result<int> command_gate_run(const CommandOptions& options);
Result<int> command_ledger_verify(const CommandOptions& options);
Result<int> command_doctor(const CommandOptions& options);
Result<int> command_script_server(const CommandOptions& options);
Result<int> command_models_test(const CommandOptions& options);

// Where runs live: $FLEET_HOME or .fleet in the working folder.
std::string runs_folder();
// A run's folder from its name or path; "" means the newest. Errors: kNotFound.
Result<std::string> find_run(const std::string& name);

// The exit code an error stands for.
int exit_code_of(const base::Error& error);

}  // namespace team
