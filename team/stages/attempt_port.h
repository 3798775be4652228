// What an attempt needs of the orchestrator: its strand, the model, the visible gates, the screen.
// In the orchestrator's own process that is a LocalPort over the ledger; in a worker process it is
// a RemotePort that asks through a channel (worker_main.h), and AttemptHost answers from a
// LocalPort. So the same attempt code runs in both, and only the orchestrator writes.
// Single-threaded.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "team/core/effects.h"
#include "team/model/model.h"
#include "team/sandbox/sandbox.h"
#include "team/stages/attempt.h"
#include "team/stages/product_repo.h"

#include <functional>
#include <string>

namespace team {

class AttemptPort : public Effects {
 public:
  virtual base::Status emit(std::string type, base::Json body) = 0;
  // One model call, recorded and booked. `key` is the effect's.
  virtual base::Result<CallResult> infer(const std::string& key, const ModelRequest& request) = 0;
  // A visible gate on the attempt's workspace; text for the agent.
  virtual base::Result<std::string> check(const std::string& gate) = 0;
  virtual void activity(const std::string& what) = 0;
};

// Where an attempt works.
struct AttemptPlace {
  std::string folder;  // of the run
  std::string model;   // name sent to the back end
  const Sandbox& sandbox;
  const ProductRepo& repo;
};

// Steps the agent's machine to its end.
base::Result<AttemptResult> step_attempt(const AttemptPlace& place, const AttemptSpec& spec,
                                         AttemptPort& port);

}  // namespace team
