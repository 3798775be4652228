// What all stages share: the run's ledger and main strand, the model, the sandbox, the product's
// history, and what earlier stages have settled. Stages are functions over it, in the order of the
// files converge, design, plan, build, verify, tune, operate; run.cc calls them.
//
// A Result error from a stage means the surroundings failed (no model, no space, a diverged
// record): the run halts and can be resumed. Unmet criteria are not errors; they are what the run
// is about. Threads: stages run on one thread, attempts may run on others (attempt.h).
#pragma once

#include "team/core/evidence.h"
#include "team/core/scheduler.h"
#include "team/core/usage.h"
#include "team/gate/gate_runner.h"
#include "team/ledger/strand.h"
#include "team/model/model.h"
#include "team/sandbox/sandbox.h"
#include "team/stages/documents.h"
#include "team/stages/product_repo.h"
#include "team/worker/worker_process.h"

#include <map>
#include <string>
#include <vector>

namespace team {

struct EngineConfig {
  std::string run;
  std::string intent;
  std::string folder;                   // of the run
  std::string model;                    // name sent to the back end
  std::string backend;                  // for usage rows: "recorded", "openai"
  bool recorded = false;                // the model's words come from a script; the report says so
  Price price;                          // of `model`, and of any other without an entry below
  std::map<std::string, Price> prices;  // by model
  i64 budget_nusd = 350'000'000'000;
  PlanCapacity capacity;
  u64 seed = 1;
  int attempts_max = 8;     // of a task before it is escalated, whatever it failed for
  std::string other_model;  // for the ladder's third rung; "": there is only one
  int port = 7379;          // where the product serves

  const Price& price_of(const std::string& name) const {
    auto at = prices.find(name);
    return at == prices.end() ? price : at->second;
  }
};

// Hears what goes on, for the live view. Calls may come from several threads.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void activity(const std::string& who, const std::string& what) = 0;
};

// A built commit: the folder with sources and build outputs, and what the build gate saw.
struct Built {
  std::string commit, tree, folder;
  bool ok = false;
  Evidence evidence;
};

struct Engine {
  const EngineConfig& config;
  Ledger& ledger;
  Strand& main;
  Model& model;
  const Sandbox& sandbox;
  const GateRunner& runner;
  const ProductRepo& repo;
  Watcher& watcher;
  const WorkerOptions& workers;

  SpecDoc spec;
  std::vector<GateSpec> gates;  // sealed at the freeze; grows by reproductions of incidents
  DesignDoc design;
  PlanDoc plan;
  std::string head;  // commit that everything merged so far adds up to

  std::map<std::string, Built> built;        // by tree
  std::map<std::string, Evidence> evidence;  // by gate id + tree: a tree is never gated twice
  int evidence_count = 0;
  std::map<std::string, std::string> judged;  // criterion to passing | failing | regressed

  std::string path(const std::string& name) const { return config.folder + "/" + name; }
  std::string sealed() const { return path("sealed"); }
  const GateSpec* gate(const std::string& id) const;
  // Records what evidence says about a criterion, as passing, failing or regressed.
  base::Status judge(const std::string& criterion, bool pass, const Evidence& by);
};

}  // namespace team
