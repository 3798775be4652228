#include "base/process.h"

#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

extern char** environ;

namespace base {
namespace {

constexpr i64 kTermToKillMs = 500;

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  static void close(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  void close_both() {
    close(read_end);
    close(write_end);
  }
  ~Pipe() { close_both(); }
};

// Everything the child needs, built before fork: after it only async-signal-safe calls are allowed.
struct Image {
  std::string path;
  std::vector<std::string> env_text;
  std::vector<char*> argv;
  std::vector<char*> env;
};

Result<Image> prepare(const ProcessSpec& spec) {
  if (spec.argv.empty()) return Error(ErrorCode::kInvalidArgument, "no program to start was named");
  Image image;
  std::optional<std::string> path = find_program(spec.argv[0]);
  if (!path) {
    return Error(ErrorCode::kNotFound,
                 "cannot find the program '" + spec.argv[0] + "'; install it or mend PATH");
  }
  image.path = *path;
  for (const std::string& argument : spec.argv)
    image.argv.push_back(const_cast<char*>(argument.c_str()));
  image.argv.push_back(nullptr);
  std::map<std::string, std::string> variables;
  if (spec.env) {
    for (const auto& [name, value] : *spec.env) variables[name] = value;
  } else {
    for (char** at = environ; *at != nullptr; ++at) {
      const char* equals = std::strchr(*at, '=');
      if (equals != nullptr)
        variables[std::string(*at, static_cast<size_t>(equals - *at))] = equals + 1;
    }
  }
  for (const auto& [name, value] : spec.extra_env) variables[name] = value;
  for (const auto& [name, value] : variables) image.env_text.push_back(name + "=" + value);
  for (std::string& text : image.env_text) image.env.push_back(text.data());
  image.env.push_back(nullptr);
  return image;
}

struct ChildSetup {
  int in = -1, out = -1, err = -1;  // -1: inherited
  bool new_session = true;
  bool die_with_parent = true;
  const char* cwd = nullptr;
};

// In the child. Reports errno through `report` when exec does not happen.
[[noreturn]] void become(const Image& image, const ChildSetup& setup, int report, pid_t parent) {
  if (setup.new_session) ::setsid();
  if (setup.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  if (setup.in >= 0) ::dup2(setup.in, STDIN_FILENO);
  if (setup.out >= 0) ::dup2(setup.out, STDOUT_FILENO);
  if (setup.err >= 0) ::dup2(setup.err, STDERR_FILENO);
  if (setup.cwd == nullptr || ::chdir(setup.cwd) == 0) {
    ::execve(image.path.c_str(), image.argv.data(), image.env.data());
  }
  const int error = errno;
  [[maybe_unused]] ssize_t written = ::write(report, &error, sizeof error);
  ::_exit(127);
}

// A parent that ignores SIGCHLD hands that down through exec; then the kernel would bury our
// children itself and their exit statuses with them.
void keep_exit_statuses() {
  struct sigaction now{};
  if (::sigaction(SIGCHLD, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) {
    ::signal(SIGCHLD, SIG_DFL);
  }
}

Result<pid_t> spawn(const ProcessSpec& spec, ChildSetup setup) {
  keep_exit_statuses();
  Image image = TRY(prepare(spec));
  if (!spec.cwd.empty()) setup.cwd = spec.cwd.c_str();
  Pipe report;
  if (!report.open()) return errno_error(errno, "starting " + spec.argv[0]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(errno, "starting " + spec.argv[0]);
  if (pid == 0) become(image, setup, report.write_end, parent);
  Pipe::close(report.write_end);
  int error = 0;
  ssize_t got;
  do {
    got = ::read(report.read_end, &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof error) {
    ::waitpid(pid, nullptr, 0);
    return errno_error(error,
                       "starting " + spec.argv[0] + (spec.cwd.empty() ? "" : " in " + spec.cwd));
  }
  return pid;
}

i64 microseconds(const timeval& time) {
  return i64{time.tv_sec} * 1'000'000 + time.tv_usec;
}

void fill_from_wait(ProcessResult& result, int status, const rusage& usage) {
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
    result.exit_code = 128 + result.signal;
  } else {
    result.exit_code = WEXITSTATUS(status);
  }
  result.cpu_us = microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
  result.rss_max_bytes = i64{usage.ru_maxrss} * 1024;
}

// Keeps the head and the tail of what is too long.
class Collector {
 public:
  explicit Collector(size_t bytes_max) : half_(bytes_max / 2) {}
  void add(std::string_view piece) {
    const size_t room = half_ - std::min(half_, head_.size());
    const size_t to_head = std::min(room, piece.size());
    head_ += piece.substr(0, to_head);
    tail_ += piece.substr(to_head);
    if (tail_.size() > 2 * half_ + 4096) cut_tail();
  }
  std::string finish() {
    if (tail_.size() > half_) cut_tail();
    if (dropped_ == 0) return head_ + tail_;
    return head_ + "\n[" + std::to_string(dropped_) + " bytes cut out]\n" + tail_;
  }

 private:
  void cut_tail() {
    const size_t extra = tail_.size() - half_;
    dropped_ += extra;
    tail_.erase(0, extra);
  }
  size_t half_;
  std::string head_;
  std::string tail_;
  size_t dropped_ = 0;
};

// Moves bytes between us and the child until both output streams end or time runs out.
class Pump {
 public:
  Pump(const ProcessSpec& spec, pid_t pid)
      : spec_(spec), pid_(pid), process_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  ~Pump() {
    if (process_ >= 0) ::close(process_);
  }
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  void run(Pipe& in, Pipe& out, Pipe& err, ProcessResult& result) {
    const i64 start_ms = now_ms();
    const i64 end_ms = spec_.timeout_ms > 0 ? start_ms + spec_.timeout_ms : 0;
    i64 kill_ms = 0;
    Collector out_text(spec_.output_bytes_max), err_text(spec_.output_bytes_max);
    size_t fed = 0;
    if (spec_.input.empty()) Pipe::close(in.write_end);
    while (out.read_end >= 0 || err.read_end >= 0) {
      i64 wait_ms = -1;
      const i64 now = now_ms();
      if (kill_ms > 0 && now >= kill_ms) {
        ::kill(-pid_, SIGKILL);
        kill_ms = now + kTermToKillMs;
        if (++kills_ > 2) break;  // a descendant left the group and holds the pipe: give up on it
      } else if (end_ms > 0 && kill_ms == 0 && now >= end_ms) {
        result.timed_out = true;
        ::kill(-pid_, SIGTERM);
        kill_ms = now + kTermToKillMs;
      }
      if (kill_ms == 0 && was_killed()) {
        // Whoever was to end with it may not: a moment to do so, no more.
        kill_ms = now + kTermToKillMs;
      }
      if (kill_ms > 0) {
        wait_ms = kill_ms - now;
      } else if (end_ms > 0) {
        wait_ms = end_ms - now;
      }
      pollfd polled[4] = {{in.write_end, POLLOUT, 0},
                          {out.read_end, POLLIN, 0},
                          {err.read_end, POLLIN, 0},
                          {ended_ ? -1 : process_, POLLIN, 0}};
      ::poll(polled, 4, static_cast<int>(std::max<i64>(wait_ms, wait_ms < 0 ? -1 : 1)));
      ended_ = ended_ || polled[3].revents != 0;
      if (polled[0].revents != 0) feed(in, fed);
      if (polled[1].revents != 0) drain(out.read_end, out_text);
      if (polled[2].revents != 0) drain(err.read_end, err_text);
    }
    result.out = out_text.finish();
    result.err = err_text.finish();
  }

 private:
  static i64 now_ms() { return system_clock().monotonic_us() / 1'000; }

  void feed(Pipe& in, size_t& fed) {
    ssize_t wrote = ::write(in.write_end, spec_.input.data() + fed, spec_.input.size() - fed);
    if (wrote > 0) fed += static_cast<size_t>(wrote);
    if ((wrote < 0 && errno != EAGAIN && errno != EINTR) || fed == spec_.input.size()) {
      Pipe::close(in.write_end);
    }
  }
  static void drain(int& fd, Collector& text) {
    char buffer[65536];
    ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got > 0) {
      text.add({buffer, static_cast<size_t>(got)});
    } else if (got == 0 || errno != EINTR) {
      Pipe::close(fd);
    }
  }

  // Has a signal ended the process itself, while something that it started holds the streams?
  bool was_killed() {
    if (!ended_ || asked_) return false;
    asked_ = true;
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           (info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED);
  }

  const ProcessSpec& spec_;
  pid_t pid_;
  int process_;  // a pidfd, readable once it has ended; -1 where the kernel has none
  bool ended_ = false;
  bool asked_ = false;
  int kills_ = 0;
};

}  // namespace

Result<ProcessResult> run_process(const ProcessSpec& spec) {
  Pipe in, out, err;
  if (!in.open() || !out.open() || !err.open()) return errno_error(errno, "making a pipe");
  // A child that exits before it has read its input must not take us with it.
  static const bool ignored = [] { return ::signal(SIGPIPE, SIG_IGN) != SIG_ERR; }();
  (void)ignored;
  ::fcntl(in.write_end, F_SETFL, O_NONBLOCK);
  const i64 start_us = system_clock().monotonic_us();
  ChildSetup setup;
  setup.in = in.read_end;
  setup.out = out.write_end;
  setup.err = spec.merge_stderr ? out.write_end : err.write_end;
  const pid_t pid = TRY(spawn(spec, setup));
  Pipe::close(in.read_end);
  Pipe::close(out.write_end);
  Pipe::close(err.write_end);
  ProcessResult result;
  Pump(spec, pid).run(in, out, err, result);
  int status = 0;
  rusage usage{};
  while (::wait4(pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  ::kill(-pid, SIGKILL);  // what it left running
  fill_from_wait(result, status, usage);
  result.wall_us = system_clock().monotonic_us() - start_us;
  return result;
}

Result<Process> Process::start(const ProcessSpec& spec, const Options& options) {
  ChildSetup setup;
  setup.new_session = options.new_session;
  setup.die_with_parent = options.die_with_parent;
  int opened[3] = {-1, -1, -1};
  const auto open_log = [](const std::string& path) {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  };
  opened[0] = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (!options.stdout_path.empty()) opened[1] = open_log(options.stdout_path);
  if (!options.stderr_path.empty()) opened[2] = open_log(options.stderr_path);
  setup.in = options.stdin_fd >= 0 ? options.stdin_fd : opened[0];
  setup.out = options.stdout_fd >= 0 ? options.stdout_fd : opened[1];
  setup.err = opened[2];
  Result<pid_t> pid = spawn(spec, setup);
  for (int fd : opened) {
    if (fd >= 0) ::close(fd);
  }
  if (!pid.ok()) return std::move(pid).error();
  Process process(pid.value());
  process.started_us_ = system_clock().monotonic_us();
  return process;
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      started_us_(other.started_us_),
      ended_(std::move(other.ended_)) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(started_us_, other.started_us_);
  std::swap(ended_, other.ended_);
  return *this;
}

Process::~Process() {
  if (pid_ < 0 || ended_) return;
  kill(SIGKILL);
  (void)wait(-1);
}

std::optional<ProcessResult> Process::poll() {
  if (ended_ || pid_ < 0) return ended_;
  int status = 0;
  rusage usage{};
  if (::wait4(pid_, &status, WNOHANG, &usage) != pid_) return std::nullopt;
  ProcessResult result;
  fill_from_wait(result, status, usage);
  result.wall_us = system_clock().monotonic_us() - started_us_;
  ended_ = std::move(result);
  return ended_;
}

std::optional<ProcessResult> Process::wait(i64 timeout_ms) {
  const i64 end_us = system_clock().monotonic_us() + timeout_ms * 1'000;
  i64 pause_us = 200;
  while (true) {
    if (std::optional<ProcessResult> result = poll(); result || pid_ < 0) return result;
    if (timeout_ms >= 0 && system_clock().monotonic_us() >= end_us) return std::nullopt;
    system_clock().sleep_us(pause_us);
    pause_us = std::min<i64>(pause_us * 2, 10'000);
  }
}

void Process::kill(int signal) {
  if (pid_ <= 0 || ended_) return;
  if (::kill(-pid_, signal) != 0) ::kill(pid_, signal);
}

int Process::release() {
  return std::exchange(pid_, -1);
}

std::optional<std::string> find_program(std::string_view name) {
  if (name.find('/') != std::string_view::npos) {
    std::string path(name);
    if (::access(path.c_str(), X_OK) == 0) return path;
    return std::nullopt;
  }
  const char* path = std::getenv("PATH");
  std::string_view left = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!left.empty()) {
    const size_t colon = left.find(':');
    std::string candidate = std::string(left.substr(0, colon)) + "/" + std::string(name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    if (colon == std::string_view::npos) break;
    left.remove_prefix(colon + 1);
  }
  return std::nullopt;
}

}  // namespace base
