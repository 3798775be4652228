#include "team/ops/crash_watch.h"

#include "base/files.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace team {
namespace {

constexpr std::array kDeadly = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP};
constexpr std::array kStops = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};

template <size_t N>
bool contains(const std::array<int, N>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The process a thread belongs to.
int process_of(int tid) {
  const std::string text = base::read_file("/proc/" + std::to_string(tid) + "/status").value_or("");
  const size_t at = text.find("\nTgid:");
  return at == std::string::npos ? tid : std::atoi(text.c_str() + at + 6);
}

}  // namespace

CallStack own_frames(const CallStack& stack) {
  constexpr std::array<std::string_view, 12> kMachinery = {
      "pthread_kill",   "raise",       "abort",       "gsignal",
      "std::terminate", "cxa_throw",   "cxa_rethrow", "verbose_terminate_handler",
      "std::__throw",   "assert_fail", "[libc.so",    "[libstdc++"};
  CallStack own = stack;
  const auto first = std::find_if(own.begin(), own.end(), [&](const std::string& frame) {
    if (frame.starts_with("std::") || frame.starts_with("__gnu_cxx::")) return false;
    return std::none_of(kMachinery.begin(), kMachinery.end(), [&](std::string_view name) {
      return frame.find(name) != std::string::npos;
    });
  });
  if (first != own.end()) own.erase(own.begin(), first);
  auto outermost = std::find(own.begin(), own.end(), "main");
  if (outermost != own.end()) own.erase(outermost + 1, own.end());
  return own;
}

CrashWatch::CrashWatch(std::vector<int> pids) {
  thread_ = std::thread([this, pids = std::move(pids)] { follow(pids); });
}

CrashWatch::~CrashWatch() {
  if (thread_.joinable()) thread_.join();
}

CrashWatch::Seen CrashWatch::seen() const {
  std::lock_guard lock(mutex_);
  return seen_;
}

void CrashWatch::look(int tid, int signal) {
  Seen seen;
  seen.signal = signal;
  auto unwinder = Unwinder::attach({.pid = process_of(tid), .stopped = true});
  if (unwinder.ok()) {
    seen.stack = (*unwinder)->thread(tid);
    if (seen.stack.empty()) seen.problem = (*unwinder)->problem();
  } else {
    seen.problem = unwinder.error().message();
  }
  std::lock_guard lock(mutex_);
  seen_ = std::move(seen);
}

void CrashWatch::follow(const std::vector<int>& pids) {
  for (const int pid : pids) {
    const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
    for (const std::string& name : base::list_directory(tasks).value_or({})) {
      if (::ptrace(PTRACE_SEIZE, std::atoi(name.c_str()), nullptr, PTRACE_O_TRACECLONE) == 0) {
        continue;
      }
      std::lock_guard lock(mutex_);
      seen_.problem = std::string("the program may not be traced: ") + std::strerror(errno);
    }
  }
  for (;;) {
    int status = 0;
    // Only what this thread traces; children of others are theirs to wait for.
    const int tid = ::waitpid(-1, &status, __WALL | __WNOTHREAD);
    if (tid < 0 && errno == EINTR) continue;
    if (tid < 0) return;  // all gone
    if (!WIFSTOPPED(status)) continue;
    const int signal = WSTOPSIG(status);
    const int event = status >> 16;
    if (event == PTRACE_EVENT_STOP && contains(kStops, signal)) {
      ::ptrace(PTRACE_LISTEN, tid, nullptr, nullptr);  // stopped by somebody: it stays so
    } else if (event != 0) {
      ::ptrace(PTRACE_CONT, tid, nullptr, 0);
    } else {
      if (contains(kDeadly, signal)) look(tid, signal);
      ::ptrace(PTRACE_CONT, tid, nullptr, static_cast<long>(signal));
    }
  }
}

}  // namespace team
