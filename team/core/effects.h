// The seam through which anything that touches the world is done durably: intent recorded before,
// result recorded after, and a result that is already recorded is returned instead of doing it
// again.
//
// That makes resuming simple: code that reaches the world only through `once` and is otherwise
// deterministic can be run again from its start. It passes what was done without doing it, and
// carries on where it stopped. The agent's loop, the stages and the gates are all written so.
//
//   base::Json result = TRY(effects.once({.key = "t4", .kind = "tool.run", .cls =
//   EffectClass::kWorkspace,
//                                         .request = call.arguments},
//                                        [&] { return run_tool(call); }));
//
// Threads: one Effects object is one strand of work, used by one thread.
#pragma once

#include "base/json.h"
#include "base/result.h"

#include <functional>
#include <string>

namespace team {

// What to do when the intent is recorded but the result is not (we died in between).
enum class EffectClass {
  kPure,       // run it again
  kWorkspace,  // put the workspace back as it was before, then run it again
  kPaid,       // book the old one as ambiguous spend, then run it again
  kExternal,   // look first whether it happened (the action itself must check), then run it
};
const char* name_of(EffectClass cls);

struct EffectIntent {
  std::string key;   // unique within the strand and the same on every run: "c7", "c7.t1"
  std::string kind;  // "model.call", "tool.patch", "gate.run"
  EffectClass cls = EffectClass::kPure;
  base::Json request;    // what is about to be done; its hash is kept and checked on a replay
  i64 reserve_nusd = 0;  // kPaid: the most it can cost
  // kWorkspace: puts things back as they were before; called when an earlier try may be half done.
  std::function<base::Status()> undo = {};
};

class Effects {
 public:
  virtual ~Effects() = default;
  // Errors of `act` come back unchanged and are recorded as failures of that attempt; calling again
  // with the same key after a failure runs it again. kConflict: the strand diverged from its
  // record. kLimit: the budget has no room for the reservation (nothing was done).
  virtual base::Result<base::Json> once(const EffectIntent& intent,
                                        const std::function<base::Result<base::Json>()>& act) = 0;
};

// Does everything and records nothing: for tests and one-off commands.
class DirectEffects : public Effects {
 public:
  base::Result<base::Json> once(const EffectIntent&,
                                const std::function<base::Result<base::Json>()>& act) override {
    return act();
  }
};

}  // namespace team
