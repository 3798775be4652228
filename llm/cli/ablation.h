// The four optimisations of the engine switched off one by one and on one by one, on the same
// loaded model, with proof that the answers stay the same.
#pragma once

#include "llm/cli/commands.h"

namespace llm {

struct AblationOptions {
  std::string prompts_path;  // a JSON string a line; empty: a few built-in questions
  i32 tokens = 128;          // longest answer
  i32 repeats = 7;           // interleaved; medians count
  bool json = false;
  bool cpu = false;  // processor time of this process instead of wall time
};

// Prints a row for each variant. Returns 1 when two variants answered differently.
int run_ablation(const ModelOptions& model, const AblationOptions& options);

// Processor time of all threads of this process so far.
i64 processor_us();

// Allocations of this process so far; 0 for ever under a sanitizer, which has an allocator of its
// own.
u64 allocations();

}  // namespace llm
