#include "fs/fuse/yielding.h"

#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

namespace fs::fuse {
namespace {

bool set_policy(pid_t thread, int policy) {
  sched_param zero{};
  return ::sched_setscheduler(thread, policy, &zero) == 0;
}

// Leaving SCHED_IDLE takes a right that entering does not; asked of a thread that does not matter.
bool may_return() {
  bool may = false;
  std::thread([&] { may = set_policy(0, SCHED_IDLE) && set_policy(0, SCHED_OTHER); }).join();
  return may;
}

// The start of a file of /proc; empty when it is gone.
std::string glance(const std::string& path) {
  char text[512];
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  ssize_t got = ::read(fd, text, sizeof(text));
  ::close(fd);
  return got > 0 ? std::string(text, static_cast<size_t>(got)) : std::string();
}

u64 nanoseconds_run(pid_t thread) {
  return std::strtoull(glance("/proc/self/task/" + std::to_string(thread) + "/schedstat").c_str(),
                       nullptr, 10);
}

bool wants_to_run(pid_t thread) {
  std::string stat = glance("/proc/self/task/" + std::to_string(thread) + "/stat");
  size_t name_end = stat.rfind(')');  // the name may hold anything
  return name_end != std::string::npos && name_end + 2 < stat.size() && stat[name_end + 2] == 'R';
}

}  // namespace

int runnable_threads() {
  std::string text = glance("/proc/loadavg");
  if (text.empty()) return -1;
  const char* at = text.c_str();  // "0.50 0.40 0.30 1/234 5678"
  for (int field = 0; field < 3 && at != nullptr; field++) {
    at = std::strchr(at, ' ');
    if (at != nullptr) at++;
  }
  return at == nullptr ? -1 : std::atoi(at);
}

Yielding::Yielding(int device, const std::atomic<u64>& served)
    : device_(device), served_(served), thread_(::gettid()) {
  if (may_return()) guard_ = std::thread([this] { guard(); });
}

Yielding::~Yielding() {
  if (!guard_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  guard_.join();
  end();
}

void Yielding::yield(bool on) {
  if (on == is_yielding() || !guard_.joinable()) return;
  if (!on) return end();
  if (base::system_clock().monotonic_us() < not_before_us_.load()) return;
  if (!set_policy(thread_, SCHED_IDLE)) return;
  {
    std::lock_guard lock(mutex_);
    yielding_.store(true);
  }
  changed_.notify_one();
}

bool Yielding::stay_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(processor), &set);
  if (::sched_setaffinity(0, sizeof(set), &set) != 0) return false;
  if (guard_.joinable()) ::pthread_setaffinity_np(guard_.native_handle(), sizeof(set), &set);
  return true;
}

void Yielding::end() {
  set_policy(thread_, SCHED_OTHER);
  yielding_.store(false);
}

void Yielding::guard() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait(lock, [&] { return stopping_ || is_yielding(); });
    u64 seen = served_.load();
    u64 ran = 0;
    for (int quiet = 0; !stopping_ && is_yielding();) {
      changed_.wait_for(lock, std::chrono::microseconds(kLookUs));
      u64 now = served_.load();
      quiet = now == seen ? quiet + 1 : 0;
      seen = now;
      if (quiet == 0) continue;
      u64 had = ran;
      ran = nanoseconds_run(thread_);
      pollfd waiting{device_, POLLIN, 0};
      bool starves = ran == had && ::poll(&waiting, 1, 0) > 0 && wants_to_run(thread_);
      if (starves) not_before_us_.store(base::system_clock().monotonic_us() + kRestUs);
      if (starves || quiet >= kQuietLooks) end();
    }
  }
}

}  // namespace fs::fuse
