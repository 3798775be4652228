#include "llm/engine/grammar.h"

#include <algorithm>
#include <unordered_set>

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

bool Grammar::prune() {
  // A rule ends when one alternative has no symbol that does not; found by counting the symbols
  // still in doubt in each alternative.
  struct Place {
    size_t rule, alternative;
  };
  std::vector<std::vector<Place>> users(rules_.size());
  std::vector<std::vector<size_t>> doubts(rules_.size());
  std::vector<bool> ends(rules_.size(), false);
  std::vector<size_t> open;
  const auto settle = [&](size_t rule) {
    if (!ends[rule]) open.push_back(rule);
    ends[rule] = true;
  };
  for (size_t r = 0; r < rules_.size(); ++r) {
    for (size_t a = 0; a < rules_[r].size(); ++a) {
      size_t rules = 0;
      for (Symbol symbol : rules_[r][a]) {
        if (symbol < 0) continue;
        users[static_cast<size_t>(symbol)].push_back({r, a});
        ++rules;
      }
      doubts[r].push_back(rules);
      if (rules == 0) settle(r);
    }
  }
  while (!open.empty()) {
    const size_t known = open.back();
    open.pop_back();
    for (const Place& user : users[known]) {
      if (--doubts[user.rule][user.alternative] == 0) settle(user.rule);
    }
  }
  for (size_t r = 0; r < rules_.size(); ++r) {
    std::vector<Sequence> kept;
    for (size_t a = 0; a < rules_[r].size(); ++a) {
      if (doubts[r][a] == 0) kept.push_back(std::move(rules_[r][a]));
    }
    rules_[r] = std::move(kept);
  }
  return ends[static_cast<size_t>(root_)];
}

GrammarMachine::GrammarMachine(Grammar grammar) : grammar_(std::move(grammar)) {}

i32 GrammarMachine::push(Grammar::Symbol top, i32 below) {
  const u64 key = static_cast<u64>(static_cast<u32>(top)) << 32 | static_cast<u32>(below);
  const auto [it, added] = interned_.emplace(key, static_cast<i32>(nodes_.size()));
  if (added) nodes_.push_back({top, below});
  return it->second;
}

GrammarMachine::State GrammarMachine::expansion_of(i32 node) {
  constexpr size_t kMost = 1 << 20;  // more would be left recursion
  State out;
  std::vector<i32> open{node};
  std::unordered_set<i32> seen{node};
  while (!open.empty() && seen.size() < kMost) {
    const i32 next = open.back();
    open.pop_back();
    if (next == kDone || nodes_[static_cast<size_t>(next)].top < 0) {
      out.push_back(next);
      continue;
    }
    const Node at = nodes_[static_cast<size_t>(next)];
    for (const Grammar::Sequence& alternative : grammar_.alternatives(at.top)) {
      i32 stack = at.below;
      for (size_t i = alternative.size(); i > 0; --i) stack = push(alternative[i - 1], stack);
      if (seen.insert(stack).second) open.push_back(stack);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

const GrammarMachine::State& GrammarMachine::expand(i32 node) {
  const auto [it, added] = expanded_.emplace(node, State());
  if (added) it->second = expansion_of(node);
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
