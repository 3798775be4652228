#include "team/cli/crash_hooks.h"

#include "base/clock.h"
#include "base/files.h"

#include <signal.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

namespace team {
namespace {

struct Blow {
  std::string whom;  // worker | sandbox | a kind of effect: gate, tool.run
  i64 at = 0;
  std::string how;  // "" | stop | init | thrice
  i64 after_ms = 0;
};

Blow blow_from_environment() {
  Blow blow;
  const char* text = std::getenv("FLEET_KILL");
  if (text == nullptr) return blow;
  std::istringstream in(text);
  std::string at;
  std::getline(in, blow.whom, ':');
  std::getline(in, at, ':');
  std::getline(in, blow.how, ':');
  blow.at = std::atoll(at.c_str());
  if (const char* after = std::getenv("FLEET_KILL_AFTER_MS")) blow.after_ms = std::atoll(after);
  return blow;
}

std::vector<int> children_of(int pid) {
  std::vector<int> out;
  const std::string at = "/proc/" + std::to_string(pid) + "/task";
  for (const std::string& thread : base::list_directory(at).value_or({})) {
    std::istringstream in(base::read_file(at + "/" + thread + "/children").value_or(""));
    for (int child = 0; in >> child;) out.push_back(child);
  }
  return out;
}

// The bubblewrap processes beneath `pid`, outermost first.
void find_bwrap(int pid, std::vector<int>& out) {
  for (const int child : children_of(pid)) {
    if (base::read_file("/proc/" + std::to_string(child) + "/comm").value_or("") == "bwrap\n") {
      out.push_back(child);
    }
    find_bwrap(child, out);
  }
}

// Waits for a sandbox beneath `pid`; gives up when the process has gone or the time is up.
int wait_for_bwrap(int pid, size_t which) {
  constexpr int kTries = 4'000;
  for (int i = 0; i < kTries && ::kill(pid, 0) == 0; ++i) {
    std::vector<int> found;
    find_bwrap(pid, found);
    if (found.size() > which) return found[which];
    base::system_clock().sleep_us(500);
  }
  return -1;
}

}  // namespace

std::function<void(i64, bool)> commit_hook() {
  const char* text = std::getenv("FLEET_CRASH_AT");
  if (text == nullptr) return {};
  const std::string spec = text;
  const i64 at = std::atoll(spec.c_str());
  const bool after = spec.find("after") != std::string::npos;
  return [at, after, commits = i64{0}](i64, bool is_after) mutable {
    commits += !is_after;
    if (commits == at && is_after == after) ::raise(SIGKILL);
  };
}

namespace {

// Deals the one blow from a thread, because whoever calls must go on.
class Hitter {
 public:
  explicit Hitter(Blow blow) : blow_(std::move(blow)) {}
  ~Hitter() {
    if (thread_.joinable()) thread_.join();
  }
  Hitter(const Hitter&) = delete;

  void on_work(const std::string& what, int pid) {
    const bool sandbox = blow_.whom == "sandbox";
    const bool counts = sandbox ? what == "gate" || what == "tool.run"
                                : blow_.whom == what || (blow_.whom == "worker" && what != "gate");
    if (!counts) return;
    const i64 blows = blow_.how == "thrice" ? 3 : 1;
    const i64 nth = ++seen_ - blow_.at;
    if (nth < 0 || nth >= blows) return;
    if (thread_.joinable()) thread_.join();
    thread_ = std::thread([this, sandbox, pid] {
      base::system_clock().sleep_us(blow_.after_ms * 1'000);
      const int whom = sandbox ? wait_for_bwrap(pid, blow_.how == "init" ? 1 : 0) : pid;
      if (whom <= 0) return;
      ::kill(whom, blow_.how == "stop" ? SIGSTOP : SIGKILL);
      std::fprintf(stderr, "crash test: hit %d\n", whom);
    });
  }

 private:
  Blow blow_;
  std::atomic<i64> seen_ = 0;
  std::thread thread_;
};

}  // namespace

std::function<void(const std::string&, int)> work_hook() {
  Blow blow = blow_from_environment();
  if (blow.at == 0) return {};
  auto hitter = std::make_shared<Hitter>(std::move(blow));
  return [hitter](const std::string& what, int pid) { hitter->on_work(what, pid); };
}

}  // namespace team
