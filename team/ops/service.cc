#include "team/ops/service.h"

#include "base/clock.h"
#include "base/files.h"
#include "team/fault/disk_fault.h"
#include "team/sandbox/process_tree.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr i64 kProbePauseUs = 20'000;

std::string replaced(std::string text, std::string_view what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string tail_of_file(const std::string& path, size_t bytes_max) {
  std::string text = base::read_file(path).value_or("");
  return text.size() <= bytes_max ? text : text.substr(text.size() - bytes_max);
}

}  // namespace

Service::~Service() {
  stop();
}

std::vector<std::string> Service::expand(const std::vector<std::string>& argv, int port) const {
  const std::string number = std::to_string(port > 0 ? port : options_.port);
  std::vector<std::string> out;
  for (std::string word : argv) {
    word = replaced(std::move(word), "{product}", "/product");
    word = replaced(std::move(word), "{data}", "/data");
    out.push_back(replaced(std::move(word), "{port}", number));
  }
  return out;
}

base::Status Service::spawn() {
  SandboxSpec spec;
  spec.argv = expand(options_.spec.serve);
  spec.cwd = "/data";
  spec.mounts = {{.host = options_.artifact, .inside = "/product", .writable = false},
                 {.host = options_.data, .inside = "/data", .writable = true}};
  spec.host_network = true;
  spec.notify_socket = disk_socket_;
  spec.limits.wall_ms = 0;
  TRY(base::make_directories(options_.data));
  process_.emplace(TRY(sandbox_.start(spec, {.output_path = options_.log})));
  killed_ = false;
  return {};
}

// From the moment the program itself runs: until then it is the sandbox that still sets itself up.
void Service::follow() {
  std::vector<int> pids = program_pids(process_->pid());
  for (const int pid : pids) {
    const std::string name =
        base::read_file("/proc/" + std::to_string(pid) + "/comm").value_or("bwrap");
    if (name.starts_with("bwrap") || name.starts_with("launch") || name.starts_with("fleet-launch"))
      return;
  }
  if (!pids.empty()) watch_ = std::make_unique<CrashWatch>(std::move(pids));
}

base::Status Service::wait_ready() {
  base::Clock& clock = base::system_clock();
  i64 started = clock.monotonic_us();
  i64 deadline = started + options_.ready_timeout_ms * 1000;
  while (clock.monotonic_us() < deadline) {
    if (process_->poll()) {
      std::optional<Crash> crash = reap();
      return Error(ErrorCode::kUnavailable,
                   "it ended at once: " + (crash ? crash->what() : std::string()) + "; " +
                       tail_of_file(options_.log, 300));
    }
    if (watch_ == nullptr) follow();
    // A cheap look before the real probe: is the port open?
    if (send("", 0).ok()) {
      auto probe = client(options_.spec.probe, 2'000);
      if (probe.ok() && probe->out.find(options_.spec.probe_expect) != std::string::npos) {
        ready_us_ = clock.monotonic_us();
        ready_ms_ = (ready_us_ - started) / 1000;
        return {};
      }
    }
    clock.sleep_us(kProbePauseUs);
  }
  return Error(ErrorCode::kUnavailable,
               "the probe did not answer in " + std::to_string(options_.ready_timeout_ms) + " ms");
}

base::Status Service::start() {
  TRY(spawn());
  return wait_ready();
}

std::optional<Crash> Service::reap() {
  if (!process_) return std::nullopt;
  auto ended = process_->poll();
  if (!ended) return std::nullopt;
  Crash crash;
  // The sandbox hands a signal of the program on as exit status 128 + signal.
  crash.signal = ended->signal != 0       ? ended->signal
                 : ended->exit_code > 128 ? ended->exit_code - 128
                                          : 0;
  crash.exit_code = ended->exit_code;
  crash.last_words = tail_of_file(options_.log, 400);
  process_.reset();
  if (watch_ != nullptr) {
    CrashWatch::Seen seen = watch_->seen();
    crash.stack = own_frames(seen.stack);
    crash.stack_problem = seen.problem;
    watch_.reset();
  }
  return crash;
}

Result<std::optional<Crash>> Service::tend() {
  std::optional<Crash> crash = reap();
  if (process_) return crash;
  const bool ours = killed_;
  base::Clock& clock = base::system_clock();
  backoff_.served(ready_us_ == 0 ? 0 : clock.monotonic_us() - ready_us_);
  while (true) {
    const std::optional<i64> pause_us = backoff_.next_us();
    if (!pause_us) {
      return Error(ErrorCode::kUnavailable, "it died " + std::to_string(backoff_.in_a_row()) +
                                                " times in a row: a crash loop" +
                                                (crash ? "; the last one: " + crash->what() : ""));
    }
    clock.sleep_us(*pause_us);
    ++restarts_;
    TRY(spawn());
    if (wait_ready().ok()) break;
    stop();
  }
  if (ours) return std::optional<Crash>();
  return crash;
}

void Service::kill_hard() {
  if (!process_) return;
  killed_ = true;
  process_->kill();
  process_.reset();
  watch_.reset();
}

void Service::signal(int number) {
  if (process_) process_->signal(number);
}

void Service::stop() {
  if (!process_) return;
  killed_ = true;
  process_->stop(1'000);
  process_.reset();
  watch_.reset();
}

base::Status Service::restart_with(DiskFault* disk) {
  stop();
  disk_socket_ = disk == nullptr ? "" : disk->socket_path();
  return start();
}

i64 Service::cpu_us() const {
  i64 total = 0;
  if (!process_) return total;
  for (const int pid : program_pids(process_->pid())) total += cpu_us_of_tree(pid);
  return total;
}

std::optional<i64> Backoff::next_us() {
  if (++in_a_row_ > kMax) {
    --in_a_row_;
    return std::nullopt;
  }
  return std::min(kCapUs, kFirstUs << (in_a_row_ - 1));
}

void Backoff::served(i64 us) {
  if (us >= kGoodUs) in_a_row_ = 0;
}

std::string Crash::what() const {
  std::string out =
      signal != 0 ? "signal " + std::to_string(signal) : "status " + std::to_string(exit_code);
  if (!stack.empty()) out += " in " + stack.front();
  return out;
}

Result<base::ProcessResult> Service::client(const std::vector<std::string>& argv, i64 timeout_ms,
                                            int port) const {
  SandboxSpec spec;
  spec.argv = expand(argv, port);
  spec.host_network = true;
  spec.limits.wall_ms = timeout_ms;
  spec.merge_stderr = true;
  SandboxResult result = TRY(sandbox_.run(spec));
  return base::ProcessResult(std::move(result));
}

Result<std::string> Service::send(const std::string& bytes, i64 wait_ms) const {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return base::errno_error(errno, "opening a socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<u16>(options_.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string reply;
  bool connected = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  if (connected && !bytes.empty()) {
    // A product that closes early is its right; the reply tells.
    (void)::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    pollfd waiting{fd, POLLIN, 0};
    char piece[4096];
    while (poll(&waiting, 1, static_cast<int>(wait_ms)) > 0) {
      ssize_t got = read(fd, piece, sizeof piece);
      if (got <= 0) break;
      reply.append(piece, static_cast<size_t>(got));
    }
  }
  close(fd);
  if (!connected) return Error(ErrorCode::kUnavailable, "nobody listens on the port");
  return reply;
}

}  // namespace team
