#include "llm/speculation/ngram.h"

#include <algorithm>

namespace llm {
namespace {

// How many tokens before `at` equal those before the end, up to `limit`.
i64 match_length(std::span<const i32> history, i64 at, i64 limit) {
  const i64 end = static_cast<i64>(history.size());
  i64 n = 0;
  while (n < limit && n < at &&
         history[static_cast<size_t>(at - 1 - n)] == history[static_cast<size_t>(end - 1 - n)]) {
    ++n;
  }
  return n;
}

}  // namespace

void NgramDrafter::propose(std::span<DraftTask> tasks, const i32*, i32) {
  for (DraftTask& task : tasks) {
    task.count = 0;
    const i64 end = static_cast<i64>(task.history.size());
    const i64 from = std::max<i64>(options_.shortest_match, end - options_.window);
    i64 best_at = 0;
    i64 best_match = options_.shortest_match - 1;
    for (i64 at = end - 1; at >= from && best_match < options_.longest_match; --at) {
      const i64 n = match_length(task.history, at, options_.longest_match);
      if (n > best_match) {
        best_match = n;
        best_at = at;
      }
    }
    if (best_at == 0) continue;
    const i64 count = std::min<i64>({task.limit, options_.longest_draft, end - best_at});
    for (i64 i = 0; i < count; ++i) task.tokens[i] = task.history[static_cast<size_t>(best_at + i)];
    task.count = static_cast<i32>(count);
  }
}

}  // namespace llm
