// A crew of threads that walk through a step together. run() starts all of them on one function;
// inside it, barrier() separates the phases. Waiting spins for a short while, then parks in the
// kernel, so an idle or overloaded machine is not burned. No allocation after construction.
//
// With a RankGroup the model is split over processes, each with a crew; meet() is a barrier of all
// threads of all of them. Threads of a crew are numbered from 0, processes of a group too.
//
// run() is called by one thread at a time, which takes part as thread 0.
#pragma once

#include "base/types.h"
#include "llm/kernels/ranks.h"

#include <atomic>
#include <thread>
#include <vector>

namespace llm {

class Crew {
 public:
  // `threads` counts the caller; at least 1. `group` may be null and outlives the crew.
  explicit Crew(i32 threads, RankGroup* group = nullptr);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  i32 size() const { return size_; }
  RankGroup* group() const { return group_; }
  i32 rank() const { return group_ == nullptr ? 0 : group_->rank(); }
  i32 ranks() const { return group_ == nullptr ? 1 : group_->ranks(); }

  using Task = void (*)(void* context, i32 rank);
  // Returns when every thread has returned.
  void run(Task task, void* context);
  template <class F>
  void run(F& body) {
    run([](void* context, i32 rank) { (*static_cast<F*>(context))(rank); }, &body);
  }
  // All threads of the running task meet here.
  void barrier() { pass(false); }
  // All threads of all processes do.
  void meet() { pass(group_ != nullptr); }

  struct Counters {
    u64 runs = 0;
    u64 barriers = 0;
    u64 parks = 0;  // waits that went to the kernel
  };
  Counters counters() const;

 private:
  void work(i32 rank);
  void pass(bool everywhere);
  void wait_while(std::atomic<u32>& word, u32 value);
  void publish(std::atomic<u32>& word, u32 value);

  i32 size_;
  RankGroup* group_;
  Task task_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<u32> start_{0};
  alignas(64) std::atomic<u32> arrived_{0};
  alignas(64) std::atomic<u32> phase_{0};
  alignas(64) std::atomic<u32> sleepers_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<u64> parks_{0};
  u64 runs_ = 0;
  u64 barriers_ = 0;
  std::vector<std::thread> threads_;
};

// The part [begin, end) of `total` items that `rank` of `ranks` takes: equal to within one item.
struct Share {
  i32 begin;
  i32 end;
};
inline Share share_of(i32 total, i32 rank, i32 ranks) {
  return {static_cast<i32>(static_cast<i64>(total) * rank / ranks),
          static_cast<i32>(static_cast<i64>(total) * (rank + 1) / ranks)};
}

}  // namespace llm
