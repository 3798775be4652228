#include "team/agent/stuck.h"

#include "base/hash.h"

namespace team {
namespace {

constexpr size_t kCallsKept = 12;
constexpr size_t kSameCallMax = 4;      // cycles of one
constexpr size_t kCycleRepeatsMax = 3;  // cycles of two and three
constexpr size_t kSwingTrees = 5;       // A B A B A
constexpr int kIdleEditsMax = 5;

// The last `period * repeats` entries repeat with that period.
bool cycles(const std::vector<std::string>& items, size_t period, size_t repeats) {
  const size_t needed = period * repeats;
  if (items.size() < needed) return false;
  const size_t begin = items.size() - needed;
  for (size_t i = begin + period; i < items.size(); ++i) {
    if (items[i] != items[i - period]) return false;
  }
  return true;
}

bool is_edit(const std::string& tool) {
  return tool == "patch" || tool == "write";
}

}  // namespace

void note_call(AgentState& state, const ToolCall& call, const ToolResult& result) {
  if (is_edit(call.name)) {
    const bool changed = !result.is_error && !state.recent_trees.empty()
                             ? result.tree_hash != state.recent_trees.back()
                             : !result.is_error;
    state.mutations_without_change = changed ? 0 : state.mutations_without_change + 1;
  }
  if (call.name == "poll") return;  // waiting is no circle
  const std::string text = call.name + "\n" + call.arguments + "\n" + result.text;
  state.recent_calls.push_back(call.name + ":" + base::sha256_hex(text).substr(0, 12));
  if (state.recent_calls.size() > kCallsKept) state.recent_calls.erase(state.recent_calls.begin());
}

std::string describe_loop(const AgentState& state) {
  const std::vector<std::string>& calls = state.recent_calls;
  if (cycles(calls, 1, kSameCallMax)) {
    const std::string tool = calls.back().substr(0, calls.back().find(':'));
    return "the same " + tool + " call gave the same result " + std::to_string(kSameCallMax) +
           " times";
  }
  for (size_t period = 2; period <= 3; ++period) {
    if (cycles(calls, period, kCycleRepeatsMax)) {
      return "the same " + std::to_string(period) + " calls were repeated " +
             std::to_string(kCycleRepeatsMax) + " times";
    }
  }
  const std::vector<std::string>& trees = state.recent_trees;
  if (trees.size() >= kSwingTrees) {
    const size_t n = trees.size();
    bool swings = trees[n - 1] != trees[n - 2];
    for (size_t i = n - kSwingTrees + 2; swings && i < n; ++i) swings = trees[i] == trees[i - 2];
    if (swings) return "the files swing between two states";
  }
  if (state.mutations_without_change >= kIdleEditsMax) {
    return "the last " + std::to_string(kIdleEditsMax) + " edits changed nothing";
  }
  return "";
}

void forget_loop(AgentState& state) {
  state.recent_calls.clear();
  state.recent_trees.clear();
  state.mutations_without_change = 0;
}

}  // namespace team
