// Holds a request's tokens to a grammar. The mask of a state is computed once by walking the sorted
// vocabulary, where neighbours share their beginnings, and kept.
#pragma once

#include "llm/engine/engine.h"
#include "llm/engine/grammar.h"
#include "llm/tokenizer/tokenizer.h"

#include <map>
#include <memory>

namespace llm {

// The ordinary tokens of a vocabulary in the order of their bytes. Made once a model.
class SortedVocabulary {
 public:
  explicit SortedVocabulary(const Tokenizer& tokenizer);
  struct Entry {
    std::string_view bytes;
    TokenId id;
    u32 shared;  // bytes in common with the entry before
  };
  const std::vector<Entry>& entries() const { return entries_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  const Tokenizer& tokenizer_;
  std::vector<Entry> entries_;
};

class GrammarRule : public TokenRule {
 public:
  // `vocabulary` outlives the rule; `vocab` is the model's, which may be padded.
  GrammarRule(Grammar grammar, const SortedVocabulary* vocabulary, i32 vocab);
  std::span<const u64> allowed() override;
  void accept(TokenId token) override;
  bool complete() const override;

 private:
  std::vector<u64> mask_of(const GrammarMachine::State& state);
  GrammarMachine machine_;
  const SortedVocabulary& vocabulary_;
  size_t words_;
  GrammarMachine::State state_;
  std::map<GrammarMachine::State, std::vector<u64>> masks_;
};

}  // namespace llm
