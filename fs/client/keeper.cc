// The keeper: a process that does nothing but hold the descriptor of /dev/fuse, so that the
// kernel's connection outlives the daemon behind it. The daemon hands the descriptor over through a
// socket once the connection is up; when the daemon is killed the keeper starts another one, which
// opens the workspace (recovery replays all that was acknowledged) and asks the kernel to send
// again what was not answered.
#include "base/clock.h"
#include "base/log.h"
#include "fs/client/daemon.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <optional>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Status;

namespace {

constexpr u32 kResendMinor = 40;  // the kernel sends unanswered calls again from 7.40 on
constexpr size_t kDeathsMax = 10;
constexpr i64 kDeathsWithinUs = 60'000'000;

void send_takeover(int socket, const Takeover& takeover) {
  Takeover copy = takeover;
  iovec part{&copy.agreement, sizeof(copy.agreement)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &takeover.device, sizeof(int));
  if (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    base::log_warn("client", "the keeper of the mount is gone");
  }
}

std::optional<Takeover> receive_takeover(int socket) {
  Takeover takeover;
  iovec part{&takeover.agreement, sizeof(takeover.agreement)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  const cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return std::nullopt;
  std::memcpy(&takeover.device, CMSG_DATA(header), sizeof(int));
  return takeover;
}

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  return set;
}

class Keeper {
 public:
  Keeper(const MountSpec& spec, const MountHooks& hooks) : spec_(spec), hooks_(hooks) {
    sigset_t set = watched_signals();
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
    signal_fd_ = ::signalfd(-1, &set, SFD_CLOEXEC);
  }
  ~Keeper() { ::close(signal_fd_); }

  Status run() {
    for (;;) {
      if (Status begun = start(); !begun.ok()) return begun;
      int status = wait();
      drain();
      if (WIFEXITED(status)) {
        return WEXITSTATUS(status) == 0
                   ? Status()
                   : Status(Error(ErrorCode::kUnavailable, "the mount ended with an error"));
      }
      base::log_warn("client", "the mount's daemon was killed",
                     {{"signal", WTERMSIG(status)}, {"kept", takeover_.has_value()}});
      if (!takeover_ || takeover_->agreement.minor < kResendMinor || ending_ || too_many_deaths()) {
        if (takeover_) (void)fuse::unmount(spec_.folder, true);
        return Error(ErrorCode::kUnavailable, "the mount's daemon was killed");
      }
    }
  }

 private:
  // The daemon, in a child.
  Status start() {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
      return base::errno_error(errno, "making a socket pair");
    }
    child_ = ::fork();
    if (child_ < 0) return base::errno_error(errno, "starting the mount's daemon");
    if (child_ == 0) {
      ::close(pair[0]);
      ::close(signal_fd_);
      ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
      MountHooks hooks;
      if (!takeover_) {
        hooks.ready = hooks_.ready;
        hooks.started = [&](const Takeover& takeover) { send_takeover(pair[1], takeover); };
      }
      Status ended = run_mount(spec_, hooks, takeover_ ? &*takeover_ : nullptr);
      if (!ended.ok()) {
        base::log_error("client", ended.error().message());
        if (!takeover_ && hooks_.failed) hooks_.failed(ended.error());
      }
      ::_exit(ended.ok() ? 0 : 1);
    }
    ::close(pair[1]);
    if (socket_ >= 0) ::close(socket_);
    socket_ = pair[0];
    // The first child answers for us from here on.
    if (!takeover_ && hooks_.forked) hooks_.forked();
    return {};
  }

  void drain() {
    if (takeover_) return;
    if (auto got = receive_takeover(socket_)) takeover_ = got;
  }

  // The child's status; passes signals that end us on to it.
  int wait() {
    for (;;) {
      int status = 0;
      pid_t ended = ::waitpid(child_, &status, WNOHANG);
      if (ended == child_) return status;
      pollfd events[2] = {{signal_fd_, POLLIN, 0}, {takeover_ ? -1 : socket_, POLLIN, 0}};
      if (::poll(events, 2, -1) < 0) continue;
      if (events[1].revents != 0) {
        drain();
        if (!takeover_) {  // it ended without a word
          ::close(socket_);
          socket_ = -1;
        }
      }
      if (events[0].revents == 0) continue;
      signalfd_siginfo info{};
      if (::read(signal_fd_, &info, sizeof(info)) != sizeof(info)) continue;
      if (info.ssi_signo == SIGCHLD) continue;
      ending_ = true;
      ::kill(child_, static_cast<int>(info.ssi_signo));
    }
  }

  bool too_many_deaths() {
    i64 now = base::system_clock().monotonic_us();
    deaths_.push_back(now);
    while (deaths_.front() < now - kDeathsWithinUs) deaths_.pop_front();
    return deaths_.size() > kDeathsMax;
  }

  const MountSpec& spec_;
  const MountHooks& hooks_;
  sigset_t before_{};
  int signal_fd_ = -1;
  int socket_ = -1;
  pid_t child_ = -1;
  bool ending_ = false;
  std::optional<Takeover> takeover_;
  std::deque<i64> deaths_;
};

}  // namespace

Status keep_mount(const MountSpec& spec, const MountHooks& hooks) {
  return Keeper(spec, hooks).run();
}

}  // namespace fs
