#include "team/perf/sampler.h"

#include "base/clock.h"
#include "base/files.h"
#include "team/sandbox/process_tree.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>

namespace team {
namespace {

constexpr i64 kLookForNewUs = 50'000;
constexpr i64 kSettleUs = 2'000;  // an exec under way has no modules yet

// Bubblewrap and the launcher see the same mounts; what they do is not the product's time.
bool is_wrapper(int pid) {
  std::string name = base::read_file("/proc/" + std::to_string(pid) + "/comm").value_or("");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name == "bwrap" || name == "launch" || name == "fleet-launch";
}

}  // namespace

Sampler::Sampler(Options options) : options_(std::move(options)) {
  if (options_.root_pid == 0) options_.root_pid = ::getpid();
  thread_ = std::thread([this] { sample(); });
}

Sampler::~Sampler() {
  (void)stop();
}

Profile Sampler::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  Profile profile = fold(stacks_);
  if (profile.samples == 0) {
    profile.missing = refused_.empty() ? "the program was never seen running" : refused_;
  }
  return profile;
}

std::vector<int> Sampler::targets() const {
  std::vector<int> found;
  for (const int pid : descendants_of(options_.root_pid)) {
    const std::string inside = "/proc/" + std::to_string(pid) + "/root" + options_.marker;
    if (base::is_directory(inside) && !is_wrapper(pid)) found.push_back(pid);
  }
  return found;
}

void Sampler::sample() {
  base::Clock& clock = base::system_clock();
  std::map<int, std::unique_ptr<Unwinder>> known;
  i64 look_us = 0;
  while (!stopping_ && stacks_.size() < options_.stacks_max) {
    const i64 now_us = clock.monotonic_us();
    if (now_us >= look_us) {
      look_us = now_us + kLookForNewUs;
      const std::vector<int> pids = targets();
      std::erase_if(known, [&](const auto& entry) {
        return std::find(pids.begin(), pids.end(), entry.first) == pids.end();
      });
      for (const int pid : pids) {
        if (known.contains(pid)) continue;
        clock.sleep_us(kSettleUs);
        auto attached = Unwinder::attach({.pid = pid});
        if (attached.ok()) {
          known[pid] = std::move(*attached);
        } else if (attached.error().code() == base::ErrorCode::kUnsupported) {
          refused_ = attached.error().message();
        }
      }
    }
    for (auto& [pid, unwinder] : known) {
      for (CallStack& stack : unwinder->all_threads()) stacks_.push_back(std::move(stack));
      if (stacks_.empty()) refused_ = unwinder->problem();
    }
    clock.sleep_us(options_.interval_us);
  }
}

}  // namespace team
