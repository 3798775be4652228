// A whole run: opens everything in a run folder, does the six stages, says how it ended. Calling it
// again on the same folder resumes; on a finished run it replays the record and does nothing.
//
// The folder:  run.json (what was asked), ledger.db, product.git, sealed/, workspaces/, trees/,
// artifacts/, data/, report.html. Errors: the surroundings failed, the run can be resumed.
#pragma once

#include "base/result.h"
#include "team/ledger/ledger.h"
#include "team/model/model.h"
#include "team/stages/engine.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace team {

// What a run was asked to do; kept in run.json.
struct RunRequest {
  std::string id;
  std::string intent;
  std::string script;  // recorded team, absolute path; "" when a live model is used
  std::string model = "recorded";
  std::string backend = "recorded";
  std::string url;  // live only; keys come from the environment
  i64 budget_nusd = 350'000'000'000;
  Price price;
  std::map<std::string, Price> prices;  // of other models, by name
  std::string other_model;              // the ladder's third rung; "": there is only one
  std::string cassette;                 // absolute path; "": none
  std::string cassette_mode;            // record | replay | strict
  int agents = 2;
  u64 seed = 1;
  int port = 7379;
  i64 lease_ms = 20'000;       // a worker silent for this long is replaced
  std::string api = "openai";  // openai | anthropic
  base::Json started;  // what run.started says; kept by forks, whatever model they go on with

  // The model's words come from a file, not from a model.
  bool is_recorded() const {
    return !script.empty() || cassette_mode == "replay" || cassette_mode == "strict";
  }

  base::Json to_json() const;
  static base::Result<RunRequest> from_json(const base::Json& json);
  static base::Json to_json(const Price& price);
  static Price price_from_json(const base::Json& json);
};

enum class RunEnd { kMet, kUnmet };

struct RunOutcome {
  RunEnd end = RunEnd::kUnmet;
  std::vector<std::string> unmet;     // criteria shown to fail
  std::vector<std::string> unjudged;  // criteria the run did not get to
};

struct RunOptions {
  std::string folder;
  bool replay_only = false;  // checks that the record and the code agree; does nothing
  std::function<void(i64 seq, bool after)> on_commit = {};
  std::function<void(const Event&, const RunState&)> on_event = {};
  WorkerOptions workers = {};  // without a command line, all work is done in this process
};

base::Result<RunOutcome> execute_run(const RunRequest& request, const RunOptions& options,
                                     Model& model, Watcher& watcher);

// Creates the folder with run.json. Errors: kExists.
base::Status create_run(const std::string& folder, const RunRequest& request);
base::Result<RunRequest> load_run(const std::string& folder);
// A person's answer to an open decision of a run that waits; the next `fleet run` goes on with it.
// Errors: kInvalidArgument when nothing waits for it, kExists, kBusy while the run is under way.
base::Status give_answer(const std::string& folder, const std::string& decision,
                         const std::string& text, bool without);
// A new run in `target` that shares the record of `folder` up to `seq` and goes on with `request`.
// Workspaces are not part of the record, so the cut is made at the last event up to `seq` at which
// no attempt is under way. Returns that event's number.
base::Result<i64> fork_run(const std::string& folder, i64 seq, const std::string& target,
                           const RunRequest& request);

}  // namespace team
