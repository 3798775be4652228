// Prompt look-up: finds the latest earlier place where the last few tokens stood and guesses that
// what followed there follows again. Costs nothing to speak of and wins on text that copies: edits,
// quotations, code. Keeps no state.
#pragma once

#include "llm/speculation/drafter.h"

namespace llm {

class NgramDrafter : public Drafter {
 public:
  struct Options {
    i32 longest_match = 6;
    i32 shortest_match = 2;
    i32 longest_draft = 7;
    i32 window = 8192;  // tokens of history that are searched
  };
  explicit NgramDrafter(const Options& options) : options_(options) {}
  const char* name() const override { return "ngram"; }
  i32 longest() const override { return options_.longest_draft; }
  void propose(std::span<DraftTask> tasks, const i32* table, i32 pages_per_slot) override;
  void observe(const Step&) override {}

 private:
  Options options_;
};

}  // namespace llm
