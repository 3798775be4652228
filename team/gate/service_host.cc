#include "team/gate/service_host.h"

#include "base/clock.h"
#include "base/files.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace team {
namespace {

constexpr i64 kStopGraceMs = 5'000;
constexpr size_t kLogTailBytes = 600;
constexpr std::string_view kTcp = "tcp:";

bool unix_socket_accepts(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool connected = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return connected;
}

}  // namespace

ServiceHost::ServiceHost(const Sandbox& sandbox, Setup setup)
    : sandbox_(sandbox), setup_(std::move(setup)) {
  setup_.spec.argv = setup_.service.argv;
}

ServiceHost::~ServiceHost() {
  if (running()) kill();
}

bool ServiceHost::accepts() const {
  const std::string& ready = setup_.service.ready_path;
  if (ready.empty()) return true;
  if (ready.starts_with(kTcp)) {
    // Only from inside its network can the port be tried.
    SandboxSpec probe;
    probe.argv = {"bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/" + ready.substr(kTcp.size())};
    probe.network = setup_.spec.network;
    base::Result<SandboxResult> ran = sandbox_.run(probe);
    return ran.ok() && ran->ok();
  }
  return unix_socket_accepts(ready_socket());
}

std::string ServiceHost::ready_socket() const {
  const std::string& ready = setup_.service.ready_path;
  if (ready.empty() || ready.starts_with(kTcp)) return "";
  return setup_.socket_folder + "/" + ready.substr(ready.rfind('/') + 1);
}

base::Status ServiceHost::start() {
  if (running()) return base::Error(base::ErrorCode::kExists, "the service is running already");
  process_.emplace(TRY(sandbox_.start(setup_.spec, {.output_path = setup_.log_path})));
  ++starts_;
  base::Clock& clock = base::system_clock();
  const i64 end_us = clock.monotonic_us() + setup_.service.ready_timeout_ms * 1'000;
  i64 pause_us = 1'000;
  while (!accepts()) {
    if (std::optional<base::ProcessResult> ended = process_->poll()) {
      note_end(*ended);
      const std::string how = std::to_string(ended->exit_code);
      reap(ended);
      return base::Error(base::ErrorCode::kUnavailable, "the service ended with status " + how +
                                                            " before it was ready" + log_tail());
    }
    if (clock.monotonic_us() >= end_us) {
      kill();
      return base::Error(base::ErrorCode::kDeadline,
                         "the service was not ready within " +
                             std::to_string(setup_.service.ready_timeout_ms) + " ms" + log_tail());
    }
    clock.sleep_us(pause_us);
    pause_us = std::min<i64>(pause_us * 2, 20'000);
  }
  return {};
}

void ServiceHost::reap(const std::optional<base::ProcessResult>& ended) {
  if (ended) {
    cpu_us_ += ended->cpu_us;
    rss_max_bytes_ = std::max(rss_max_bytes_, ended->rss_max_bytes);
  }
  process_.reset();
}

void ServiceHost::note_end(const base::ProcessResult& ended) {
  ++crashes_;
  if (process_->lost()) lost_ = true;
  const bool killed = ended.exit_code == 128 + SIGKILL && ended.signal == 0;
  if (killed && !signalled_ && process_->out_of_memory_kills() == 0) suspect_ = true;
}

bool ServiceHost::running() {
  if (!process_) return false;
  std::optional<base::ProcessResult> ended = process_->poll();
  if (!ended) return true;
  note_end(*ended);
  reap(ended);
  return false;
}

void ServiceHost::kill() {
  if (!process_) return;
  ++kills_;
  reap(process_->kill());
}

void ServiceHost::stop() {
  if (!running()) return;  // notes a crash that nobody has noticed yet
  reap(process_->stop(kStopGraceMs));
}

std::string ServiceHost::log_tail() const {
  std::string log = base::read_file(setup_.log_path).value_or("");
  if (log.size() > kLogTailBytes) log.erase(0, log.size() - kLogTailBytes);
  return log.empty() ? "" : "; its last words: " + log;
}

std::string ServiceHost::obey_disk(std::string_view order) {
  // Every watched call waits for us, which slows a service down; so only those that ask are
  // watched.
  if (disk_ == nullptr) {
    base::Result<std::unique_ptr<DiskFault>> made = DiskFault::start(setup_.notify_socket, "/data");
    if (!made.ok()) return "error " + made.error().message();
    disk_ = std::move(made).value();
    setup_.spec.notify_socket = setup_.notify_socket;
    if (running())
      return "error the disk is watched from the next @start on; @stop and @start first";
  }
  const base::Status done = disk_->obey(order);
  return done.ok() ? "ok" : "error " + done.error().message();
}

std::string ServiceHost::obey_net(std::string_view order) {
  if (net_ == nullptr) {
    const std::string target = ready_socket();
    if (target.empty()) return "error @net needs a service whose ready_path is a Unix socket";
    constexpr u64 kSeed = 1;
    base::Result<std::unique_ptr<NetFault>> made =
        NetFault::start({.path = setup_.socket_folder + "/faulty"}, {.path = target}, kSeed);
    if (!made.ok()) return "error " + made.error().message();
    net_ = std::move(made).value();
  }
  const base::Status done = net_->obey(order);
  return done.ok() ? "ok" : "error " + done.error().message();
}

std::string ServiceHost::obey(std::string_view line) {
  if (line.starts_with("@net ")) return obey_net(line.substr(5));
  if (line.starts_with("@disk ")) return obey_disk(line.substr(6));
  if (line == "@start") {
    base::Status started = start();
    if (started.ok()) return "ok";
    std::string text = "error " + started.error().message();
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }
  if (!running()) return "error the service is not running";
  if (line == "@kill") {
    kill();
  } else if (line == "@stop") {
    stop();
  } else if (line == "@pause") {
    process_->signal(SIGSTOP);
  } else if (line == "@resume") {
    process_->signal(SIGCONT);
  } else if (line == "@rss") {
    const i64 rss = process_->rss_bytes();
    rss_max_bytes_ = std::max(rss_max_bytes_, rss);
    return "ok " + std::to_string(rss);
  } else if (line.starts_with("@signal ")) {
    int number = 0;
    std::from_chars(line.data() + 8, line.data() + line.size(), number);
    if (number <= 0) return "error @signal needs a number";
    signalled_ = true;
    process_->signal(number);
  } else {
    return "error unknown control line " + std::string(line);
  }
  return "ok";
}

}  // namespace team
