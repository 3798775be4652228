// How fast this machine reads memory, as a yardstick for steps of a model.
//
// A processor with a large last-level cache keeps part of a model from one step to the next, so a
// step may read faster than memory alone can give. There are therefore two limits: what the crew
// reads of a buffer as large as what a step reads, again and again like the steps of a decode; and
// what it reads of one that no cache holds.
#pragma once

#include "llm/kernels/aligned.h"
#include "llm/kernels/crew.h"

#include <vector>

namespace llm {

// A buffer that the crew reads, each thread its share from begin to end. Single-threaded.
class MemoryReader {
 public:
  // `crew` outlives it.
  MemoryReader(Crew* crew, u64 bytes);
  // GB/s of one pass.
  f64 read_gb_per_s();

 private:
  Crew& crew_;
  u64 share_;
  AlignedBytes buffer_;
  std::vector<u64> seen_;
};

// Several times the last-level cache, so that next to nothing of it is there on the next pass.
u64 uncached_bytes();

}  // namespace llm
