#include "team/core/merge_queue.h"

namespace team {

base::Result<StackResult> test_stack(
    int height, const std::function<base::Result<bool>(int height, bool again)>& passes) {
  StackResult result;
  auto ask = [&](int at, bool again) {
    ++result.tests;
    return passes(at, again);
  };
  if (height == 0) return result;
  if (TRY(ask(height, false))) {
    result.good = height;
    return result;
  }
  if (TRY(ask(height, true))) {
    result.good = height;
    result.flaky = true;
    return result;
  }
  int good = 0;
  int bad = height;
  while (bad - good > 1) {
    int middle = good + (bad - good) / 2;
    (TRY(ask(middle, false)) ? good : bad) = middle;
  }
  result.good = good;
  result.culprit = bad - 1;
  return result;
}

}  // namespace team
