// The merge queue's search, without a model: changes are stacked in order, the tip is tested once;
// when it fails it is tested once more (flaky?), then the first change that makes it fail is found
// by bisection. What stands before the culprit can be merged. Testing is a function of the stack's
// height, so the search is pure and is tested on its own.
#pragma once

#include "base/result.h"

#include <functional>

namespace team {

struct StackResult {
  int good = 0;        // the first `good` changes pass together
  int culprit = -1;    // index of the change that breaks the stack, or -1
  bool flaky = false;  // the tip failed once and passed when tested again
  int tests = 0;       // how often `passes` was asked
};

// `passes(height, again)`: do the first `height` changes together pass? `again` asks for a fresh
// run. Height 0 is known to pass. Errors of `passes` end the search.
base::Result<StackResult> test_stack(
    int height, const std::function<base::Result<bool>(int height, bool again)>& passes);

}  // namespace team
