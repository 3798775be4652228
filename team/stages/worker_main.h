// The worker's side: `fleet worker` reads one piece of work from its standard input, a socket to
// the orchestrator, does it and ends. It holds no keys and writes nothing but its workspace.
#pragma once

#include "base/result.h"

namespace team {

// Errors: kInvalidArgument when standard input is no channel: people do not start workers.
base::Status worker_main();

}  // namespace team
