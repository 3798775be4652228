// Instructions that this process has executed in user space, all threads, from the processor's own
// counter: a figure that other load on the machine does not change. Many virtual machines have
// none.
#pragma once

#include "base/types.h"

namespace bench {

class InstructionCounter {
 public:
  InstructionCounter();
  ~InstructionCounter();
  InstructionCounter(const InstructionCounter&) = delete;
  InstructionCounter& operator=(const InstructionCounter&) = delete;

  bool works() const { return fd_ >= 0; }
  // Since the counter was made; 0 when it does not work.
  u64 now() const;

 private:
  int fd_ = -1;
};

}  // namespace bench
