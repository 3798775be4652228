#include "llm/kernels/ranks.h"

#include "base/check.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <new>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

constexpr int kSpins = 1000;  // about 50 us
// Address space, not memory: pages are taken when they are touched.
constexpr u64 kArenaBytes = 16ull << 30;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void futex(std::atomic<u32>& word, int operation, u32 value) {
  ::syscall(SYS_futex, reinterpret_cast<u32*>(&word), operation, value, nullptr, nullptr, 0);
}

// What the handler of a bereaved rank may touch.
std::atomic<u32>* g_told = nullptr;
char g_sentence[160];
size_t g_sentence_bytes = 0;

void on_bereaved(int) {
  if (g_told->exchange(1) == 0) {
    const ssize_t written = ::write(STDERR_FILENO, g_sentence, g_sentence_bytes);
    (void)written;
  }
  ::_exit(1);
}

}  // namespace

struct alignas(64) RankGroup::Word {
  std::atomic<u32> value{0};
};

struct RankGroup::Control {
  Word arrived[kRanksMax];
  Word message_count;
  Word sleepers;
  std::atomic<u32> told{0};  // the end is expected, or somebody has told of it
  bool dismissed = false;
  alignas(64) u8 message[kMessageBytes] = {};
};

Status RankGroup::map() {
  void* at = ::mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    return Error(ErrorCode::kLimit, std::string("cannot map memory for ranks to share: ") +
                                        ::strerror(errno) +
                                        "; allow more address space or use --ranks 1");
  }
  memory_ = static_cast<u8*>(at);
  top_ = kArenaBytes;
  control_ = new (share(sizeof(Control))) Control();
  return {};
}

Result<std::unique_ptr<RankGroup>> RankGroup::start(i32 ranks, std::string program) {
  CHECK(ranks >= 2 && ranks <= kRanksMax);
  std::unique_ptr<RankGroup> group(new RankGroup(ranks, std::move(program)));
  TRY(group->map());
  const i32 parent = ::getpid();
  group->processes_.push_back(parent);
  for (i32 rank = 1; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child < 0) {
      return Error(ErrorCode::kLimit, std::string("cannot start a rank: ") + ::strerror(errno));
    }
    if (child == 0) {
      group->become(rank, parent);
      return group;
    }
    group->processes_.push_back(child);
  }
  for (i32 rank = 1; rank < ranks; ++rank) {
    group->watchers_.emplace_back([raw = group.get(), rank] { raw->watch(rank); });
  }
  return group;
}

void RankGroup::become(i32 rank, i32 parent) {
  rank_ = rank;
  processes_.clear();
  g_told = &control_->told;
  g_sentence_bytes = static_cast<size_t>(
      std::snprintf(g_sentence, sizeof(g_sentence),
                    "%.60s: rank 0 (process %d) has died, so the other ranks of the model stop\n",
                    program_.c_str(), parent));
  struct sigaction action{};
  action.sa_handler = on_bereaved;
  ::sigaction(SIGUSR1, &action, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGUSR1);
  // Whoever asks the program to end talks to rank 0, which lets its answers finish first.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_IGN);
  if (::getppid() != parent) on_bereaved(SIGUSR1);
}

void RankGroup::watch(i32 rank) {
  int status = 0;
  const pid_t child = processes_[static_cast<size_t>(rank)];
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (control_->told.exchange(1) != 0) return;
  const std::string how = WIFSIGNALED(status)
                              ? "was killed by signal " + std::to_string(WTERMSIG(status))
                              : "ended with status " + std::to_string(WEXITSTATUS(status));
  std::fprintf(stderr, "%s: rank %d (process %d) %s, so the other ranks of the model stop\n",
               program_.c_str(), rank, static_cast<int>(child), how.c_str());
  std::fflush(nullptr);
  ::_exit(1);
}

RankGroup::~RankGroup() {
  if (memory_ == nullptr) return;
  if (rank_ == 0) {  // the others are about to exit and may still be told of a death
    control_->told = 1;
    control_->dismissed = true;
    publish(control_->message_count, messages_ + 1);
    for (std::thread& watcher : watchers_) watcher.join();
    ::munmap(memory_, kArenaBytes);
  }
}

u8* RankGroup::share(u64 bytes) {
  const u64 at = bottom_;
  bottom_ += (bytes + 63) / 64 * 64;
  CHECK(bottom_ <= top_);
  return memory_ + at;
}

u8* RankGroup::share_alone(u64 bytes) {
  top_ -= (bytes + 63) / 64 * 64;
  CHECK(bottom_ <= top_);
  return memory_ + top_;
}

bool RankGroup::owns(const void* at) const {
  const u8* byte = static_cast<const u8*>(at);
  return byte >= memory_ && byte < memory_ + kArenaBytes;
}

void RankGroup::publish(Word& word, u32 value) {
  word.value.store(value);
  if (control_->sleepers.value.load() != 0) futex(word.value, FUTEX_WAKE, 0x7fffffff);
}

// Until the word has reached `value`, around the end of 32 bits too.
void RankGroup::wait_for(Word& word, u32 value) {
  const auto behind = [&](u32 seen) { return static_cast<i32>(seen - value) < 0; };
  for (int i = 0; i < kSpins; ++i) {
    if (!behind(word.value.load(std::memory_order_acquire))) return;
    relax();
  }
  control_->sleepers.value.fetch_add(1);
  for (u32 seen = word.value.load(); behind(seen); seen = word.value.load()) {
    parks_.fetch_add(1, std::memory_order_relaxed);
    futex(word.value, FUTEX_WAIT, seen);
  }
  control_->sleepers.value.fetch_sub(1);
}

void RankGroup::meet() {
  ++meetings_;
  ++epoch_;
  publish(control_->arrived[rank_], epoch_);
  for (i32 other = 0; other < ranks_; ++other) {
    if (other != rank_) wait_for(control_->arrived[other], epoch_);
  }
}

void RankGroup::send(const void* message, u64 bytes) {
  CHECK(rank_ == 0 && bytes <= kMessageBytes);
  ::memcpy(control_->message, message, bytes);
  publish(control_->message_count, ++messages_);
}

bool RankGroup::receive(void* message, u64 bytes) {
  CHECK(rank_ != 0 && bytes <= kMessageBytes);
  wait_for(control_->message_count, ++messages_);
  if (control_->dismissed) return false;
  ::memcpy(message, control_->message, bytes);
  return true;
}

}  // namespace llm
