// Seams for crash tests, set by environment variables; absent in normal life.
//   FLEET_CRASH_AT=17:before|after   kill -9 of this process around the 17th commit of its ledger
//   FLEET_KILL=worker:5              kill -9 of the worker at the 5th effect workers act on
//   FLEET_KILL=worker:5:stop         it hangs (SIGSTOP) instead
//   FLEET_KILL=gate:2                kill -9 of the worker of the 2nd gate run
//   FLEET_KILL=tool.run:1:thrice     kill -9 of the worker of the 1st such effect and of the two
//                                    that try it again
//   FLEET_KILL=sandbox:3             kill -9 of the bubblewrap beneath the 3rd gate or tool run
//   FLEET_KILL=sandbox:3:init        of the one inside
// FLEET_KILL_AFTER_MS delays the blow. Thread-safe.
#pragma once

#include "base/types.h"

#include <functional>
#include <string>

namespace team {

std::function<void(i64 seq, bool after)> commit_hook();
std::function<void(const std::string& what, int pid)> work_hook();

}  // namespace team
