#include "fs/client/daemon.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/log.h"
#include "fs/client/control.h"
#include "fs/client/invalidator.h"
#include "fs/client/leased_workspace.h"
#include "fs/client/memory_workspace.h"
#include "fs/client/remote_workspace.h"
#include "fs/client/status.h"
#include "fs/fuse/mount.h"
#include "fs/wire/token.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using base::Status;

namespace {

struct Opened {
  std::unique_ptr<Store> store;
  std::unique_ptr<Workspace> workspace;
  RemoteWorkspace* remote = nullptr;  // `workspace`, when a server shares it
  LeasedWorkspace* leased = nullptr;  // `workspace`, when we hold the lease of a server's
  bool is_local() const { return store != nullptr; }
};

// A token that names a certificate asks for TLS: whoever can change packets on the way must not be
// able to talk a mount out of it.
wire::TlsTrust trust_of(const MountSpec& spec, bool tls) {
  wire::TlsTrust trust{tls, spec.tls_fingerprint, spec.tls_ca};
  if (trust.fingerprint.empty() && trust.ca_file.empty()) {
    trust.fingerprint = wire::fingerprint_in(spec.token);
  }
  trust.use = tls || !trust.fingerprint.empty() || !trust.ca_file.empty();
  return trust;
}

Result<Opened> open_spec(const MountSpec& spec, bool adopt) {
  Opened opened;
  if (spec.store.empty()) {
    Serialiser::Options options;
    options.bytes_quota = spec.bytes_quota;
    options.inodes_quota = spec.inodes_quota;
    opened.workspace =
        std::make_unique<MemoryWorkspace>(options, base::system_clock().wall_us() * 1000);
    return opened;
  }
  if (auto address = TRY(parse_remote(spec.store))) {
    address->trust = trust_of(spec, address->trust.use);
    if (spec.private_mount && !spec.read_only) {
      LeasedWorkspace::Options options{*address, spec.token, spec.journal, spec.steal, adopt};
      if (options.journal_folder.empty()) options.journal_folder = default_journal(spec);
      auto leased = TRY(LeasedWorkspace::open(std::move(options)));
      opened.leased = leased.get();
      opened.workspace = std::move(leased);
      return opened;
    }
    auto remote = TRY(RemoteWorkspace::connect(*address, spec.token, spec.read_only));
    opened.remote = remote.get();
    opened.workspace = std::move(remote);
    return opened;
  }
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  StoreOptions store_options;
  store_options.holder = std::string(host) + ":" + std::to_string(::getpid());
  opened.store = TRY(Store::open(spec.store, store_options));
  OpenOptions open_options;
  open_options.steal = spec.steal;
  open_options.adopt = adopt;
  open_options.bytes_quota = spec.bytes_quota;
  open_options.inodes_quota = spec.inodes_quota;
  opened.workspace = TRY(opened.store->open_workspace(spec.workspace, open_options));
  return opened;
}

// Turns SIGTERM and SIGINT into an unmount, on a thread of its own, so that no handler runs code.
class SignalWatch {
 public:
  // REQUIRES: constructed before other threads start, so that all inherit the blocked signals.
  SignalWatch() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    signal_fd_ = ::signalfd(-1, &set, SFD_CLOEXEC);
    stop_fd_ = ::eventfd(0, EFD_CLOEXEC);
  }
  ~SignalWatch() {
    u64 one = 1;
    if (thread_.joinable() && ::write(stop_fd_, &one, sizeof(one)) == sizeof(one)) thread_.join();
    ::close(signal_fd_);
    ::close(stop_fd_);
  }
  void start(std::function<void()> on_signal) {
    thread_ = std::thread([this, on_signal = std::move(on_signal)] {
      pollfd wait[2] = {{signal_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
      while (::poll(wait, 2, -1) < 0 && errno == EINTR) {
      }
      if (wait[1].revents == 0) on_signal();
    });
  }

 private:
  int signal_fd_ = -1;
  int stop_fd_ = -1;
  std::thread thread_;
};

Json failure(const Error& error) {
  return Json::object({{"ok", false}, {"error", error.message()}});
}

// With limits sets them; says what holds, either way.
Json quota_control(const Json& request, Bridge& bridge) {
  return bridge.with_workspace([&](Workspace& workspace) {
    if (request["set"].as_bool()) {
      Quota quota{static_cast<u64>(request["bytes"].as_int()),
                  static_cast<u64>(request["inodes"].as_int())};
      Status done = workspace.set_quota(quota);
      if (!done.ok()) return failure(done.error());
    }
    auto use = workspace.quota();
    if (!use.ok()) return failure(use.error());
    return Json::object({{"ok", true},
                         {"bytes_limit", use->limit.bytes},
                         {"bytes", use->bytes},
                         {"inodes_limit", use->limit.inodes},
                         {"inodes", use->inodes}});
  });
}

Json answer_control(const Json& request, Bridge& bridge, const MountSpec& spec) {
  if (bridge.stopped()) return failure(Error(ErrorCode::kBusy, "the mount is ending"));
  const std::string& command = request["command"].as_string();
  if (command == "status") return mount_status(bridge, spec);
  if (command == "metrics") {
    return Json::object({{"ok", true}, {"text", prometheus_text(bridge, spec)}});
  }
  auto act = [&](auto&& work) {
    Status done = bridge.with_workspace(work);
    return done.ok() ? Json::object({{"ok", true}}) : failure(done.error());
  };
  const std::string& name = request["name"].as_string();
  if (command == "fork") return act([&](Workspace& w) { return w.fork(name); });
  if (command == "snapshot") return act([&](Workspace& w) { return w.snapshot(name); });
  if (command == "quota") return quota_control(request, bridge);
  if (command == "sync") return act([&](Workspace& w) { return w.sync(); });
  return failure(Error(ErrorCode::kUnsupported, "the mount does not know the command '" + command +
                                                    "'; is it an older version?"));
}

}  // namespace

std::string control_path(const std::string& store, const std::string& workspace) {
  return store + "/run/" + workspace + ".sock";
}

std::string default_journal(const MountSpec& spec) {
  const char* home = std::getenv("HOME");
  std::string base = ::geteuid() == 0 || home == nullptr
                         ? "/var/lib/agentfs"
                         : std::string(home) + "/.local/state/agentfs";
  // One server's workspace on one folder: the same journal again after a restart.
  std::string names = spec.store + "\n" + spec.folder;
  return base + "/" + std::to_string(base::xxh3(base::as_bytes(names)));
}

namespace {

fuse::MountOptions mount_options_of(const MountSpec& spec, const Opened& opened) {
  fuse::MountOptions options;
  options.source = opened.is_local() ? spec.store + ":" + spec.workspace
                   : opened.remote != nullptr || opened.leased != nullptr ? spec.store
                                                                          : "agentfs";
  options.read_only = spec.read_only;
  options.no_exec = spec.no_exec;
  options.allow_other = spec.allow_other;
  return options;
}

fuse::Session::Options session_options_of(const MountSpec& spec, bool shared) {
  fuse::Session::Options options;
  // In a shared workspace the end of an open must reach us: locks end with it.
  options.wishes.no_open = !spec.audit_reads && !shared;
  options.wishes.locks = shared;
  options.wishes.write_back = spec.write_back && !shared;
  options.threads = spec.threads;
  options.spin_us = spec.spin_us;
  return options;
}

}  // namespace

Status run_mount(const MountSpec& spec, const MountHooks& hooks, const Takeover* takeover) {
  SignalWatch signals;
  Opened opened = TRY(open_spec(spec, takeover != nullptr));
  bool shared = opened.remote != nullptr;
  Bridge::Options bridge_options;
  bridge_options.durability = spec.durability;
  bridge_options.no_open = !spec.audit_reads && !shared;
  bridge_options.shared = shared;
  if (shared) bridge_options.after_send = [&] { opened.remote->reply_sent(); };
  Bridge bridge(*opened.workspace, base::system_clock(), bridge_options);
  std::unique_ptr<ControlServer> control;
  if (opened.is_local()) {
    TRY(base::make_directories(spec.store + "/run"));
    control = TRY(ControlServer::start(
        control_path(spec.store, spec.workspace),
        [&](const Json& request) { return answer_control(request, bridge, spec); }));
  }
  fuse::Device device;
  if (takeover != nullptr) {
    device = fuse::Device(::fcntl(takeover->device, F_DUPFD_CLOEXEC, 0));
  } else {
    device = TRY(fuse::mount(spec.folder, mount_options_of(spec, opened)));
  }
  fuse::Session session(std::move(device), bridge, session_options_of(spec, shared));
  bridge.attach(session);
  Status started = takeover != nullptr ? session.resume(takeover->agreement) : session.start();
  if (!started.ok()) {
    (void)fuse::unmount(spec.folder, true);
    return started;
  }
  if (hooks.started) hooks.started({session.fd(), session.agreement()});
  Invalidator invalidator(session);
  if (shared) {
    opened.remote->start({[&](const auto& list) { invalidator.drop(list); },
                          [&](u64 request_id) { bridge.granted(request_id); },
                          [&] { invalidator.drop_all(); }});
  }
  if (opened.leased != nullptr) {
    opened.leased->start([&](const std::vector<Ino>& known) {
      invalidator.drop_all();
      std::vector<Invalidation> list;
      for (Ino ino : known) list.push_back({Invalidation::Kind::kData, ino, ""});
      invalidator.drop(list);
    });
  }
  signals.start([&] {
    (void)fuse::unmount(spec.folder, true);
    session.stop();
  });
  if (hooks.ready) hooks.ready();
  Status served = session.run();
  // The socket goes last: who waits for it to go knows that all is stored.
  bridge.stop();
  Status closed = opened.workspace->close();
  control.reset();
  return served.ok() ? std::move(closed) : std::move(served);
}

namespace {

// In the child: detached from the terminal, standard output and error into the log.
void detach_from_caller(const std::string& log_path) {
  ::setsid();
  int null_fd = ::open("/dev/null", O_RDONLY);
  int log_fd = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (null_fd >= 0) ::dup2(null_fd, 0);
  if (log_fd >= 0) {
    ::dup2(log_fd, 1);
    ::dup2(log_fd, 2);
    ::close(log_fd);
  }
  if (null_fd > 2) ::close(null_fd);
  if (::chdir("/") != 0) base::log_warn("client", "cannot leave the working folder");
}

}  // namespace

Status start_mount(const MountSpec& spec, const std::string& log_path) {
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return base::errno_error(errno, "making a pipe");
  pid_t child = ::fork();
  if (child < 0) return base::errno_error(errno, "starting the mount's process");
  if (child == 0) {
    ::close(pipe_fds[0]);
    detach_from_caller(log_path);
    // The pipe's message: empty for ready, else the sentence that says why not.
    MountHooks hooks;
    hooks.ready = [&] {
      if (::write(pipe_fds[1], "\n", 1) != 1) base::log_warn("client", "the caller is gone");
      ::close(pipe_fds[1]);
      pipe_fds[1] = -1;
    };
    auto tell = [&](const Error& why) {
      if (pipe_fds[1] < 0) return;
      const std::string& text = why.message();
      if (::write(pipe_fds[1], text.data(), text.size()) < 0) return;
    };
    hooks.failed = tell;
    hooks.forked = [&] {
      ::close(pipe_fds[1]);
      pipe_fds[1] = -1;
    };
    auto remote = parse_remote(spec.store);
    bool keeps = !spec.store.empty() &&
                 ((remote.ok() && !remote->has_value()) || (spec.private_mount && !spec.read_only));
    Status ended = keeps ? keep_mount(spec, hooks) : run_mount(spec, hooks);
    if (!ended.ok()) {
      base::log_error("client", ended.error().message());
      tell(ended.error());
    }
    ::_exit(ended.ok() ? 0 : 1);
  }
  ::close(pipe_fds[1]);
  std::string message;
  char buffer[512];
  for (;;) {
    ssize_t got = ::read(pipe_fds[0], buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    message.append(buffer, static_cast<size_t>(got));
  }
  ::close(pipe_fds[0]);
  if (message == "\n") return {};
  ::waitpid(child, nullptr, 0);
  if (message.empty()) message = "the mount's process died at once; see " + log_path;
  return Error(ErrorCode::kUnavailable, message);
}

}  // namespace fs
