#include "team/worker/worker_process.h"

#include "base/clock.h"
#include "team/sandbox/cgroup.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <thread>
#include <utility>

namespace team {

using base::Error;
using base::ErrorCode;
using base::Json;

namespace {

constexpr i64 kLeaveMs = 2'000;  // for a worker that has said all to end by itself
constexpr i64 kBeatsPerLease = 4;

// Workers run tools for models: no keys of ours may lie in their environment.
std::vector<std::pair<std::string, std::string>> worker_environment() {
  std::vector<std::pair<std::string, std::string>> env;
  for (const char* name : {"PATH", "HOME", "TMPDIR", "LANG", "LSAN_OPTIONS", "ASAN_OPTIONS",
                           "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) env.emplace_back(name, value);
  }
  return env;
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkerOptions& options, base::Process process, int fd)
    : options_(options), process_(std::move(process)), channel_(fd), pid_(process_.pid()) {}

base::Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const WorkerOptions& options,
                                                                  Json work) {
  auto [ours, theirs] = TRY(Channel::make_pair());
  base::ProcessSpec spec;
  spec.argv = options.argv;
  spec.env = worker_environment();
  auto process = base::Process::start(
      spec, {.stdout_path = options.log, .stderr_path = options.log, .stdin_fd = theirs});
  ::close(theirs);
  if (!process.ok()) {
    ::close(ours);
    return std::move(process).error();
  }
  std::unique_ptr<WorkerProcess> worker(
      new WorkerProcess(options, std::move(process).value(), ours));
  work.set("lease_ms", options.lease_ms);
  // A worker that is dead already shows at the first next().
  (void)worker->channel_.send(work);
  return worker;
}

WorkerProcess::~WorkerProcess() {
  channel_.close();
  if (!process_.wait(why_.empty() ? kLeaveMs : 0)) bury();
}

void WorkerProcess::bury() {
  channel_.close();
  process_.kill(SIGKILL);
  (void)process_.wait(-1);
  // Its sandboxes die with it; whatever is still on its way is killed before anybody else goes on.
  Cgroup::sweep(pid_);
}

Error WorkerProcess::lost(std::string why) {
  if (auto ended = process_.wait(0); ended && ended->signal != 0) {
    why = "it was ended by signal " + std::to_string(ended->signal);
  } else if (ended) {
    why = "it ended with status " + std::to_string(ended->exit_code);
  }
  why_ = std::move(why);
  bury();
  return Error(ErrorCode::kCancelled, "worker " + std::to_string(pid_) + " was lost: " + why_);
}

base::Status WorkerProcess::send(const Json& head) {
  if (!why_.empty()) return Error(ErrorCode::kCancelled, "this worker was lost: " + why_);
  if (channel_.send(head).ok()) return {};
  (void)process_.wait(kLeaveMs);
  return lost("it closed its channel");
}

base::Result<Frame> WorkerProcess::next() {
  if (!why_.empty()) return Error(ErrorCode::kCancelled, "this worker was lost: " + why_);
  for (;;) {
    auto frame = channel_.receive(options_.lease_ms);
    if (frame.ok() && frame->head["say"].as_string() == "beat") continue;
    if (frame.ok()) return frame;
    if (frame.error().code() == ErrorCode::kDeadline) {
      return lost("it gave no sign of life for " + std::to_string(options_.lease_ms) + " ms");
    }
    if (frame.error().code() != ErrorCode::kUnavailable) return lost(frame.error().message());
    (void)process_.wait(kLeaveMs);
    return lost("it closed its channel");
  }
}

struct Heartbeat::Impl {
  std::mutex mutex;
  std::condition_variable wake;
  bool stop = false;
  std::atomic<i64> since_us;
  std::thread thread;
};

Heartbeat::Heartbeat(Channel& channel, i64 lease_ms, i64 busy_ms_max) : impl_(new Impl) {
  work();
  const auto pause = std::chrono::milliseconds(std::max<i64>(1, lease_ms / kBeatsPerLease));
  impl_->thread = std::thread([impl = impl_.get(), &channel, pause, busy_ms_max] {
    std::unique_lock lock(impl->mutex);
    while (!impl->wake.wait_for(lock, pause, [&] { return impl->stop; })) {
      const i64 busy_us = base::system_clock().monotonic_us() - impl->since_us.load();
      if (busy_us > busy_ms_max * 1'000) continue;
      if (!channel.send(Json::object({{"say", "beat"}})).ok()) ::_exit(1);
    }
  });
}

Heartbeat::~Heartbeat() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->wake.notify_all();
  impl_->thread.join();
}

void Heartbeat::work() {
  impl_->since_us.store(base::system_clock().monotonic_us());
}

}  // namespace team
