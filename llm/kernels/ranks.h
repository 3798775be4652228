// A model split over processes of one machine: the processes, the memory they share and the place
// where they meet.
//
// Rank 0 is the process that was there first; start() forks the others. All of them run the same
// code on their own part of the weights. Memory from share() lies at the same address in every
// process, because every rank asks for the same sizes in the same order. meet() returns once every
// rank has called it and makes visible all that was written before. Waiting spins for about 50 us
// and then parks in the kernel.
//
// A rank that dies takes the others with it: rank 0 says which one and why and exits with status 1;
// when rank 0 itself dies, one of the others says so.
//
// Threads: meet(), send() and receive() are called by one thread of a process at a time.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace llm {

class RankGroup {
 public:
  static constexpr i32 kRanksMax = 4;
  static constexpr u64 kMessageBytes = 256;

  // REQUIRES: 2 <= ranks <= kRanksMax and a process with one thread. Returns in every rank.
  // `program` begins the sentence that tells of a death.
  static base::Result<std::unique_ptr<RankGroup>> start(i32 ranks, std::string program);
  // Rank 0 dismisses the others and waits for them.
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  i32 rank() const { return rank_; }
  i32 ranks() const { return ranks_; }
  // Zeroed, aligned to a cache line, until the group ends. Same order of calls in every rank.
  u8* share(u64 bytes);
  // Rank 0 alone: such memory that the others learn of by a message.
  u8* share_alone(u64 bytes);
  bool owns(const void* at) const;

  void meet();
  // From rank 0 to all others, which must have received the one before.
  void send(const void* message, u64 bytes);
  // False: the group is dismissed.
  bool receive(void* message, u64 bytes);

  struct Counters {
    u64 meetings = 0;
    u64 parks = 0;
  };
  Counters counters() const { return {meetings_, parks_.load()}; }
  i32 process(i32 rank) const { return processes_[static_cast<size_t>(rank)]; }

 private:
  struct Word;
  struct Control;
  RankGroup(i32 ranks, std::string program) : ranks_(ranks), program_(std::move(program)) {}
  base::Status map();
  void become(i32 rank, i32 parent);
  void watch(i32 rank);
  void publish(Word& word, u32 value);
  void wait_for(Word& word, u32 value);

  i32 ranks_;
  i32 rank_ = 0;
  std::string program_;
  u8* memory_ = nullptr;
  u64 bottom_ = 0;  // used by share()
  u64 top_ = 0;     // and from here on by share_alone()
  Control* control_ = nullptr;
  u32 epoch_ = 0;
  u32 messages_ = 0;
  u64 meetings_ = 0;
  std::atomic<u64> parks_{0};
  std::vector<i32> processes_;
  std::vector<std::thread> watchers_;
};

}  // namespace llm
