#include "llm/kernels/crew.h"

#include "base/check.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace llm {
namespace {

// About 50 us of pauses: longer than any phase is out of balance, shorter than anybody notices.
constexpr int kSpins = 1000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void futex(std::atomic<u32>& word, int operation, u32 value) {
  ::syscall(SYS_futex, reinterpret_cast<u32*>(&word), operation, value, nullptr, nullptr, 0);
}

}  // namespace

Crew::Crew(i32 threads, RankGroup* group) : size_(threads), group_(group) {
  CHECK(threads >= 1);
  for (i32 rank = 1; rank < threads; ++rank) {
    threads_.emplace_back([this, rank] { work(rank); });
    ::pthread_setname_np(threads_.back().native_handle(), "llm-crew");
  }
}

Crew::~Crew() {
  stopping_ = true;
  publish(start_, start_.load() + 1);
  for (std::thread& thread : threads_) thread.join();
}

void Crew::wait_while(std::atomic<u32>& word, u32 value) {
  for (int i = 0; i < kSpins; ++i) {
    if (word.load(std::memory_order_acquire) != value) return;
    relax();
  }
  sleepers_.fetch_add(1);
  while (word.load() == value) {
    parks_.fetch_add(1, std::memory_order_relaxed);
    futex(word, FUTEX_WAIT_PRIVATE, value);
  }
  sleepers_.fetch_sub(1);
}

void Crew::publish(std::atomic<u32>& word, u32 value) {
  word.store(value);
  if (sleepers_.load() != 0) futex(word, FUTEX_WAKE_PRIVATE, 0x7fffffff);
}

void Crew::run(Task task, void* context) {
  ++runs_;
  task_ = task;
  context_ = context;
  if (size_ > 1) publish(start_, start_.load() + 1);
  task(context, 0);
  barrier();  // nobody is still inside
}

void Crew::work(i32 rank) {
  u32 seen = 0;
  while (true) {
    wait_while(start_, seen);
    seen = start_.load();
    if (stopping_) return;
    task_(context_, rank);
    barrier();
  }
}

// The last thread to arrive meets the other processes while its own crew waits for it.
void Crew::pass(bool everywhere) {
  if (size_ == 1) {
    ++barriers_;
    if (everywhere) group_->meet();
    return;
  }
  const u32 phase = phase_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1) + 1 == static_cast<u32>(size_)) {
    ++barriers_;  // only the last to arrive writes it
    arrived_.store(0);
    if (everywhere) group_->meet();
    publish(phase_, phase + 1);
    return;
  }
  wait_while(phase_, phase);
}

Crew::Counters Crew::counters() const {
  return {runs_, barriers_, parks_.load()};
}

}  // namespace llm
