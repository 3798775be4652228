// Context-free grammars over bytes and a machine that follows them: which bytes may come next, and
// is the text complete. Used to hold a model to a JSON schema.
//
// The machine keeps the set of all stacks of symbols that could still derive the rest. Stacks share
// their tails and are interned, so a state is a short list of numbers and equal states compare
// equal. A rule may lead back to itself before it takes a byte, which adds nothing, but must not
// do so with something behind it. Single-threaded.
#pragma once

#include "base/types.h"

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace llm {

class Grammar {
 public:
  using Symbol = i32;  // >= 0: a rule; < 0: a class of bytes
  using Sequence = std::vector<Symbol>;

  // A class of bytes as one symbol.
  Symbol bytes(std::string_view members);
  Symbol range(u8 low, u8 high);
  // One symbol for each byte.
  Sequence literal(std::string_view text);
  // A rule to be filled with alternatives; may be used before it is.
  Symbol rule();
  Symbol rule(std::vector<Sequence> alternatives);
  void add(Symbol rule, Sequence alternative) {
    rules_[static_cast<size_t>(rule)].push_back(std::move(alternative));
  }
  // From `least` to `most` times; most < 0: any number of times.
  Symbol repeat(Symbol item, i32 least, i32 most);

  void set_root(Symbol root) { root_ = root; }
  // Drops alternatives that no text can ever complete, so that following the grammar cannot lead
  // into a dead end. False: nothing is left of the root.
  bool prune();
  Symbol root() const { return root_; }
  size_t rule_count() const { return rules_.size(); }
  const std::vector<Sequence>& alternatives(Symbol rule) const {
    return rules_[static_cast<size_t>(rule)];
  }
  bool contains(Symbol byte_class, u8 byte) const {
    return classes_[static_cast<size_t>(-1 - byte_class)][byte];
  }

 private:
  using ByteSet = std::array<bool, 256>;
  Symbol intern(const ByteSet& set);
  std::vector<std::vector<Sequence>> rules_;
  std::vector<ByteSet> classes_;
  std::map<ByteSet, Symbol> interned_;
  Symbol root_ = 0;
};

class GrammarMachine {
 public:
  // Stacks by number, sorted; kDone is the empty stack.
  using State = std::vector<i32>;
  static constexpr i32 kDone = -1;

  explicit GrammarMachine(Grammar grammar);
  State start();
  // The state after `byte`; empty when it may not come.
  State advance(const State& state, u8 byte);

 private:
  struct Node {
    Grammar::Symbol top;
    i32 below;
  };
  i32 push(Grammar::Symbol top, i32 below);
  // Replaces rules on top until every stack has a byte class on top or is empty.
  const State& expand(i32 node);
  State expansion_of(i32 node);

  Grammar grammar_;
  std::vector<Node> nodes_;
  std::unordered_map<u64, i32> interned_;
  std::unordered_map<i32, State> expanded_;
};

}  // namespace llm
