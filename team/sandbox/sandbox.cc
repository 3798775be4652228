#include "team/sandbox/sandbox.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "team/sandbox/cgroup.h"
#include "team/sandbox/process_tree.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;

constexpr const char* kLauncherInside = "/fleet/launch";
constexpr const char* kNotifyInside = "/fleet/notify";
constexpr i64 kUlimitFileUnit = 512;  // bytes, of POSIX ulimit -f

// Sets what only rlimits can, joins the control groups named before "--", then becomes the command.
// $1 file size in 512-byte units, $2 open files, $3 address space in kB or "unlimited", $4
// processes.
constexpr const char* kEnterScript =
    "ulimit -c 0; ulimit -f \"$1\"; ulimit -n \"$2\"; ulimit -v \"$3\"; "
    "case $4 in unlimited) ;; *) ulimit -p \"$4\" 2>/dev/null || ulimit -u \"$4\";; esac; shift 4; "
    "while [ \"$1\" != -- ]; do echo $$ > \"$1\" || exit 125; shift; done; shift; exec \"$@\"";

void append(std::vector<std::string>& to, std::initializer_list<std::string> words) {
  to.insert(to.end(), words);
}

void bind_system(std::vector<std::string>& argv) {
  append(argv, {"--ro-bind", "/usr", "/usr"});
  for (const char* name : {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}) {
    const std::string path = std::string("/") + name;
    std::array<char, 256> target{};
    const ssize_t size = ::readlink(path.c_str(), target.data(), target.size() - 1);
    if (size > 0) {
      append(argv, {"--symlink", std::string(target.data(), static_cast<size_t>(size)), path});
    } else if (base::is_directory(path)) {
      append(argv, {"--ro-bind", path, path});
    }
  }
  for (const char* path : {"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf",
                           "/etc/ld.so.conf.d", "/etc/localtime"}) {
    append(argv, {"--ro-bind-try", path, path});
  }
}

base::Status bind_mounts(const std::vector<SandboxMount>& mounts, std::vector<std::string>& argv) {
  for (const SandboxMount& mount : mounts) {
    if (!mount.inside.starts_with("/") || mount.inside.size() < 2 ||
        mount.inside.find("..") != std::string::npos) {
      return Error(ErrorCode::kInvalidArgument,
                   "a sandbox mount needs an absolute path inside, not '" + mount.inside + "'");
    }
    if (::access(mount.host.c_str(), F_OK) != 0) {
      return Error(ErrorCode::kInvalidArgument,
                   "cannot mount " + mount.host + " in the sandbox: it is not there");
    }
    append(argv, {mount.writable ? "--bind" : "--ro-bind", mount.host, mount.inside});
  }
  return {};
}

std::string launcher_beside_us() {
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  const std::string self(path.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
  const std::string launcher = self.substr(0, self.rfind('/') + 1) + "fleet-launch";
  return ::access(launcher.c_str(), X_OK) == 0 ? launcher : "";
}

std::string file_hash(const std::string& path) {
  return base::sha256_hex(base::read_file(path).value_or(""));
}

// The process inside a network's holder whose namespaces others join.
int network_member(const SandboxNetwork& network) {
  const std::vector<int> children = children_of(network.pid());
  return children.empty() ? -1 : children.front();
}

}  // namespace

const char* name_of(SandboxLevel level) {
  return level == SandboxLevel::kStrict ? "strict" : "weak";
}

SandboxNetwork::SandboxNetwork(std::unique_ptr<base::Process> holder)
    : holder_(std::move(holder)) {}
SandboxNetwork::~SandboxNetwork() = default;

Sandbox::Sandbox(Options options) : options_(std::move(options)) {
  if (options_.launcher.empty()) options_.launcher = launcher_beside_us();
  SandboxSpec empty;
  base::Result<std::vector<std::string>> recipe = command(empty, nullptr);
  std::string text = name_of(options_.level);
  if (recipe.ok()) {
    for (const std::string& word : *recipe) {
      // Where the launcher lies is no part of the recipe; what it does is.
      text += "\n" + (word == options_.launcher ? file_hash(word) : word);
    }
  }
  profile_hash_ = base::sha256_hex(text);
}

Sandbox::~Sandbox() = default;

base::Result<std::vector<std::string>> Sandbox::command(const SandboxSpec& spec,
                                                        const Cgroup* cgroup) const {
  const SandboxLimits& limits = spec.limits;
  // Root's processes are not counted by rlimits; only the control group holds them.
  const bool count_processes = cgroup == nullptr && ::geteuid() != 0;
  std::vector<std::string> argv = {
      "/bin/sh",
      "-c",
      kEnterScript,
      "sandbox",
      std::to_string(std::max<i64>(1, limits.file_bytes / kUlimitFileUnit)),
      std::to_string(limits.open_files),
      cgroup == nullptr ? std::to_string(limits.memory_bytes / 1'024) : "unlimited",
      count_processes ? std::to_string(limits.processes) : "unlimited"};
  if (cgroup != nullptr) {
    for (const std::string& file : cgroup->join_files()) argv.push_back(file);
  }
  argv.push_back("--");
  if (spec.network != nullptr) {
    const int member = network_member(*spec.network);
    if (member < 0) return Error(ErrorCode::kUnsupported, "the sandbox's network has ended");
    const std::string ns = "/proc/" + std::to_string(member) + "/ns/";
    append(argv,
           {"nsenter", "--preserve-credentials", "--user=" + ns + "user", "--net=" + ns + "net"});
  }
  append(argv, {options_.bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
                "--unshare-cgroup-try", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL",
                "--die-with-parent", "--new-session", "--clearenv"});
  if (options_.level == SandboxLevel::kStrict) argv.push_back("--disable-userns");
  if (spec.network == nullptr && !spec.host_network) argv.push_back("--unshare-net");
  bind_system(argv);
  append(argv, {"--proc", "/proc", "--dev", "/dev", "--size", std::to_string(limits.tmp_bytes),
                "--tmpfs", "/tmp", "--hostname", "sandbox"});
  TRY(bind_mounts(spec.mounts, argv));
  if (!options_.launcher.empty()) append(argv, {"--ro-bind", options_.launcher, kLauncherInside});
  if (!spec.notify_socket.empty()) {
    append(argv, {"--ro-bind", spec.notify_socket, kNotifyInside});
  }
  append(argv, {"--remount-ro", "/", "--chdir", spec.cwd});
  append(argv, {"--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--setenv", "HOME", "/tmp",
                "--setenv", "LANG", "C.UTF-8"});
  for (const auto& [name, value] : spec.env) append(argv, {"--setenv", name, value});
  argv.push_back("--");
  if (!options_.launcher.empty()) {
    argv.push_back(kLauncherInside);
    if (!spec.notify_socket.empty()) append(argv, {"--notify", kNotifyInside});
    argv.push_back("--");
  }
  argv.insert(argv.end(), spec.argv.begin(), spec.argv.end());
  return argv;
}

base::Result<std::unique_ptr<Sandbox>> Sandbox::open(const Options& options) {
  if (!base::find_program(options.bwrap)) {
    return Error(
        ErrorCode::kUnsupported,
        "there is no sandbox here: install bubblewrap (Debian: apt-get install bubblewrap)");
  }
  auto sandbox = std::unique_ptr<Sandbox>(new Sandbox(options));
  if (sandbox->options_.launcher.empty() && options.level == SandboxLevel::kStrict) {
    return Error(
        ErrorCode::kUnsupported,
        "fleet-launch, which filters system calls in sandboxes, is not beside this program; "
        "install the two together");
  }
  if (options.proven) return sandbox;
  Cgroup::sweep();
  SandboxSpec probe;
  probe.argv = {"true"};
  probe.limits.wall_ms = 10'000;
  const SandboxResult ran = TRY(sandbox->run(probe));
  if (!ran.ok()) {
    return Error(ErrorCode::kUnsupported,
                 "the sandbox does not start here, so nothing will be run: " + ran.err +
                     (ran.err.ends_with("\n") ? "" : "\n") +
                     "Run 'fleet doctor' to see what this machine must allow.");
  }
  return sandbox;
}

base::Result<SandboxResult> Sandbox::run(const SandboxSpec& spec) const {
  if (spec.argv.empty())
    return Error(ErrorCode::kInvalidArgument, "no program to sandbox was named");
  const std::unique_ptr<Cgroup> cgroup =
      Cgroup::make(spec.limits.memory_bytes, spec.limits.processes);
  if (cgroup == nullptr && options_.level == SandboxLevel::kStrict && ::geteuid() == 0) {
    return Error(ErrorCode::kUnsupported,
                 "the number of processes cannot be limited here: as root that needs a writable "
                 "cgroup file system (pids and memory); run as another user or mount it");
  }
  base::ProcessSpec process;
  process.argv = TRY(command(spec, cgroup.get()));
  process.env.emplace();
  process.env->emplace_back("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  process.input = spec.input;
  process.timeout_ms = spec.limits.wall_ms;
  process.output_bytes_max = spec.limits.output_bytes_max;
  process.merge_stderr = spec.merge_stderr;
  SandboxResult result;
  static_cast<base::ProcessResult&>(result) = TRY(base::run_process(process));
  if (cgroup != nullptr) result.out_of_memory_kills = cgroup->out_of_memory_kills();
  // A program's own death reaches us as bubblewrap's exit status, so a signal hit bubblewrap.
  if (result.signal != 0 && !result.timed_out && result.out_of_memory_kills == 0) {
    return Error(ErrorCode::kCancelled, "the sandbox was killed from outside (signal " +
                                            std::to_string(result.signal) + ")");
  }
  return result;
}

base::Result<SandboxProcess> Sandbox::start(const SandboxSpec& spec, const Streams& streams) const {
  if (spec.argv.empty())
    return Error(ErrorCode::kInvalidArgument, "no program to sandbox was named");
  std::unique_ptr<Cgroup> cgroup = Cgroup::make(spec.limits.memory_bytes, spec.limits.processes);
  if (cgroup == nullptr && options_.level == SandboxLevel::kStrict && ::geteuid() == 0) {
    return Error(ErrorCode::kUnsupported,
                 "the number of processes cannot be limited here: as root that needs a writable "
                 "cgroup file system (pids and memory); run as another user or mount it");
  }
  base::ProcessSpec process;
  process.argv = TRY(command(spec, cgroup.get()));
  process.env.emplace();
  process.env->emplace_back("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  base::Process::Options options;
  options.stdout_path = streams.output_path;
  options.stderr_path = streams.output_path;
  options.stdin_fd = streams.stdin_fd;
  options.stdout_fd = streams.stdout_fd;
  return SandboxProcess(TRY(base::Process::start(process, options)), std::move(cgroup));
}

base::Result<std::unique_ptr<SandboxNetwork>> Sandbox::make_network() const {
  base::ProcessSpec spec;
  // Bubblewrap brings the loopback up; a program that only sleeps keeps the namespace alive.
  spec.argv = {options_.bwrap,
               "--unshare-user",
               "--unshare-net",
               "--unshare-pid",
               "--uid",
               "0",
               "--gid",
               "0",
               "--die-with-parent",
               "--ro-bind",
               "/",
               "/",
               "--proc",
               "/proc",
               "sleep",
               "infinity"};
  base::Process::Options options;
  options.stdout_path = options.stderr_path = "/dev/null";
  auto holder = std::make_unique<base::Process>(TRY(base::Process::start(spec, options)));
  std::unique_ptr<SandboxNetwork> network(new SandboxNetwork(std::move(holder)));
  // Ready when the sleeper runs: bubblewrap sets the network up before it starts it.
  constexpr int kTries = 500;
  for (int i = 0; i < kTries; ++i) {
    const int member = network_member(*network);
    if (member > 0 && !children_of(member).empty()) return network;
    if (const std::optional<base::ProcessResult> ended = network->holder_->poll()) {
      // A kill -9 of bubblewrap, or of its init, which it reports as a status.
      if (ended->exit_code == 128 + SIGKILL) {
        return Error(ErrorCode::kCancelled, "the sandbox was killed from outside");
      }
      break;
    }
    base::system_clock().sleep_us(2'000);
  }
  return Error(ErrorCode::kUnsupported, "a private network for the gate does not start here");
}

SandboxProcess::SandboxProcess(base::Process process, std::unique_ptr<Cgroup> cgroup)
    : process_(std::move(process)), cgroup_(std::move(cgroup)) {}
SandboxProcess::SandboxProcess(SandboxProcess&&) noexcept = default;
SandboxProcess& SandboxProcess::operator=(SandboxProcess&&) noexcept = default;
SandboxProcess::~SandboxProcess() {
  if (process_.pid() > 0) (void)kill();
}

void SandboxProcess::signal(int number) {
  if (process_.poll()) return;
  for (const int pid : program_pids(process_.pid())) ::kill(pid, number);
}

std::optional<base::ProcessResult> SandboxProcess::stop(i64 grace_ms) {
  signal(SIGTERM);
  if (std::optional<base::ProcessResult> ended = process_.wait(grace_ms)) return ended;
  return kill();
}

std::optional<base::ProcessResult> SandboxProcess::kill() {
  if (process_.poll()) return process_.poll();
  killed_ = true;
  // The init of the inner PID namespace takes everything in it along, at once.
  for (const int init : children_of(process_.pid())) ::kill(init, SIGKILL);
  process_.kill(SIGKILL);
  return process_.wait(-1);
}

i64 SandboxProcess::rss_bytes() const {
  i64 total = 0;
  for (const int pid : program_pids(process_.pid())) total += rss_of_tree(pid);
  return total;
}

bool SandboxProcess::lost() {
  const std::optional<base::ProcessResult> ended = process_.poll();
  return ended && ended->signal != 0 && !killed_ && out_of_memory_kills() == 0;
}

i64 SandboxProcess::out_of_memory_kills() const {
  return cgroup_ != nullptr ? cgroup_->out_of_memory_kills() : 0;
}

}  // namespace team
