#include "llm/engine/grammar.h"

#include <algorithm>

namespace llm {

Grammar::Symbol Grammar::intern(const ByteSet& set) {
  const auto [it, added] = interned_.emplace(set, 0);
  if (added) {
    classes_.push_back(set);
    it->second = -static_cast<Symbol>(classes_.size());
  }
  return it->second;
}

Grammar::Symbol Grammar::bytes(std::string_view members) {
  ByteSet set{};
  for (char c : members) set[static_cast<u8>(c)] = true;
  return intern(set);
}

Grammar::Symbol Grammar::range(u8 low, u8 high) {
  ByteSet set{};
  for (u32 b = low; b <= high; ++b) set[b] = true;
  return intern(set);
}

Grammar::Sequence Grammar::literal(std::string_view text) {
  Sequence out;
  for (char c : text) out.push_back(bytes({&c, 1}));
  return out;
}

Grammar::Symbol Grammar::rule() {
  rules_.emplace_back();
  return static_cast<Symbol>(rules_.size()) - 1;
}

Grammar::Symbol Grammar::rule(std::vector<Sequence> alternatives) {
  const Symbol symbol = rule();
  rules_.back() = std::move(alternatives);
  return symbol;
}

Grammar::Symbol Grammar::repeat(Symbol item, i32 least, i32 most) {
  Symbol tail;
  if (most < 0) {
    tail = rule();
    add(tail, {});
    add(tail, {item, tail});
  } else {
    tail = rule({{}});
    for (i32 i = least; i < most; ++i) tail = rule({{}, {item, tail}});
  }
  Sequence all(static_cast<size_t>(least), item);
  all.push_back(tail);
  return rule({std::move(all)});
}

GrammarMachine::GrammarMachine(Grammar grammar) : grammar_(std::move(grammar)) {}

i32 GrammarMachine::push(Grammar::Symbol top, i32 below) {
  const u64 key = static_cast<u64>(static_cast<u32>(top)) << 32 | static_cast<u32>(below);
  const auto [it, added] = interned_.emplace(key, static_cast<i32>(nodes_.size()));
  if (added) nodes_.push_back({top, below});
  return it->second;
}

void GrammarMachine::expand_into(i32 node, i32 depth, State* out) {
  constexpr i32 kDeepest = 200;  // more would be left recursion
  if (depth > kDeepest) return;
  if (node == kDone || nodes_[static_cast<size_t>(node)].top < 0) {
    out->push_back(node);
    return;
  }
  const Node at = nodes_[static_cast<size_t>(node)];
  for (const Grammar::Sequence& alternative : grammar_.alternatives(at.top)) {
    i32 stack = at.below;
    for (size_t i = alternative.size(); i > 0; --i) stack = push(alternative[i - 1], stack);
    expand_into(stack, depth + 1, out);
  }
}

const GrammarMachine::State& GrammarMachine::expand(i32 node) {
  const auto [it, added] = expanded_.emplace(node, State());
  if (added) {
    State found;
    expand_into(node, 0, &found);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    it->second = std::move(found);
  }
  return it->second;
}

GrammarMachine::State GrammarMachine::start() {
  return expand(push(grammar_.root(), kDone));
}

GrammarMachine::State GrammarMachine::advance(const State& state, u8 byte) {
  State next;
  for (i32 stack : state) {
    if (stack == kDone) continue;
    const Node node = nodes_[static_cast<size_t>(stack)];
    if (!grammar_.contains(node.top, byte)) continue;
    const State& after = expand(node.below);
    next.insert(next.end(), after.begin(), after.end());
  }
  std::sort(next.begin(), next.end());
  next.erase(std::unique(next.begin(), next.end()), next.end());
  return next;
}

}  // namespace llm
