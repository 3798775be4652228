#include "llm/engine/grammar_rule.h"

#include <algorithm>

namespace llm {

SortedVocabulary::SortedVocabulary(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  for (size_t i = 0; i < tokenizer.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string_view bytes = tokenizer.bytes_of(id);
    if (!bytes.empty() && !tokenizer.is_special(id)) entries_.push_back({bytes, id, 0});
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.bytes < b.bytes; });
  for (size_t i = 1; i < entries_.size(); ++i) {
    const std::string_view a = entries_[i - 1].bytes;
    const std::string_view b = entries_[i].bytes;
    const auto [end, unused] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    entries_[i].shared = static_cast<u32>(end - a.begin());
  }
}

GrammarRule::GrammarRule(Grammar grammar, const SortedVocabulary* vocabulary, i32 vocab)
    : machine_(std::move(grammar)),
      vocabulary_(*vocabulary),
      words_((static_cast<size_t>(vocab) + 63) / 64),
      state_(machine_.start()) {}

std::vector<u64> GrammarRule::mask_of(const GrammarMachine::State& state) {
  std::vector<u64> mask(words_, 0);
  auto allow = [&](TokenId id) { mask[static_cast<size_t>(id) / 64] |= u64{1} << (id % 64); };
  // states[n] is the state after the first n bytes of the current entry; the first empty one ends
  // it.
  std::vector<GrammarMachine::State> states{state};
  for (const SortedVocabulary::Entry& entry : vocabulary_.entries()) {
    const size_t keep = std::min<size_t>(entry.shared + 1, states.size());
    states.resize(keep);
    while (!states.back().empty() && states.size() <= entry.bytes.size()) {
      states.push_back(
          machine_.advance(states.back(), static_cast<u8>(entry.bytes[states.size() - 1])));
    }
    if (states.size() == entry.bytes.size() + 1 && !states.back().empty()) allow(entry.id);
  }
  if (std::binary_search(state.begin(), state.end(), GrammarMachine::kDone)) {
    for (TokenId id : vocabulary_.tokenizer().stops()) allow(id);
  }
  return mask;
}

std::span<const u64> GrammarRule::allowed() {
  const auto it = masks_.find(state_);
  if (it != masks_.end()) return it->second;
  return masks_.emplace(state_, mask_of(state_)).first->second;
}

void GrammarRule::accept(TokenId token) {
  for (char byte : vocabulary_.tokenizer().bytes_of(token)) {
    state_ = machine_.advance(state_, static_cast<u8>(byte));
  }
}

bool GrammarRule::complete() const {
  return state_.empty() || (state_.size() == 1 && state_[0] == GrammarMachine::kDone);
}

}  // namespace llm
