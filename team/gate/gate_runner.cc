#include "team/gate/gate_runner.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "team/gate/service_host.h"
#include "team/gate/tally.h"
#include "team/sandbox/beneath.h"
#include "team/sandbox/workspace.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <csignal>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;

constexpr size_t kLogBytesMax = 64 << 10;
constexpr size_t kOutputBytesMax = 32 << 20;
constexpr size_t kLineBytesMax = 1 << 20;

struct Place {
  const char* name;    // in gate files
  const char* inside;  // in sandboxes
};
constexpr Place kPlaces[] = {{"{product}", "/product"},
                             {"{sealed}", "/sealed"},
                             {"{data}", "/data"},
                             {"{socket}", "/socket"}};

std::string filled(std::string text) {
  for (const Place& place : kPlaces) {
    const std::string name = place.name;
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      text.replace(at, name.size(), place.inside);
    }
  }
  return text;
}

std::vector<std::string> filled(std::vector<std::string> words) {
  for (std::string& word : words) word = filled(std::move(word));
  return words;
}

std::string host_description() {
  utsname name{};
  ::uname(&name);
  std::string text = std::string(name.sysname) + " " + name.release;
  const std::string cpus = base::read_file("/proc/cpuinfo").value_or("");
  const size_t at = cpus.find("model name");
  const size_t colon = cpus.find(':', at);
  if (at != std::string::npos && colon != std::string::npos) {
    text += "," + cpus.substr(colon + 1, cpus.find('\n', colon) - colon - 1);
  }
  return text;
}

std::string cut_middle(std::string text) {
  if (text.size() <= kLogBytesMax) return text;
  const size_t half = kLogBytesMax / 2;
  return text.substr(0, half) + "\n[" + std::to_string(text.size() - 2 * half) +
         " bytes cut out]\n" + text.substr(text.size() - half);
}

std::string ending(const base::ProcessResult& ran, i64 out_of_memory_kills) {
  if (out_of_memory_kills > 0) return "it ran out of memory";
  if (ran.signal != 0) return "it was ended by signal " + std::to_string(ran.signal);
  return ran.exit_code == 0 ? "" : "it ended with status " + std::to_string(ran.exit_code);
}

bool is_killed(const base::ProcessResult& ran, bool timed_out, i64 out_of_memory_kills) {
  return ran.exit_code == 128 + SIGKILL && !timed_out && out_of_memory_kills == 0;
}

// The folders of one run of a gate, removed with it.
class Scratch {
 public:
  static base::Result<Scratch> make(const std::string& root, const GateInput& input) {
    static std::atomic<int> next{0};
    Scratch scratch;
    scratch.root_ = root + "/gate-" + std::to_string(::getpid()) + "-" + std::to_string(next++);
    TRY(base::remove_tree(scratch.root_));
    for (const char* name : {"data", "socket"}) {
      TRY(base::make_directories(scratch.root_ + "/" + name));
    }
    TRY(Workspace::fork_directory(input.product, scratch.product()));
    return scratch;
  }
  Scratch(Scratch&& other) noexcept : root_(std::exchange(other.root_, "")) {}
  ~Scratch() {
    if (!root_.empty()) (void)base::remove_tree(root_);
  }
  std::string product() const { return root_ + "/product"; }
  std::string data() const { return root_ + "/data"; }
  std::string socket() const { return root_ + "/socket"; }
  std::string service_log() const { return root_ + "/service.log"; }
  std::string notify() const { return root_ + "/notify"; }
  std::string checker_log() const { return root_ + "/checker.log"; }

 private:
  Scratch() = default;
  std::string root_;
};

SandboxLimits sandbox_limits(const GateLimits& limits) {
  SandboxLimits out;
  out.wall_ms = limits.wall_ms;
  out.memory_bytes = limits.memory_bytes;
  out.processes = static_cast<int>(limits.processes);
  out.file_bytes = limits.file_bytes;
  out.output_bytes_max = kOutputBytesMax;
  return out;
}

// Splits bytes into lines; a line over the limit is cut, so that a mad checker cannot fill our
// memory.
class Lines {
 public:
  template <class Sink>
  void feed(std::string_view piece, const Sink& sink) {
    for (const char c : piece) {
      if (c == '\n') {
        sink(std::string_view(line_));
        line_.clear();
      } else if (line_.size() < kLineBytesMax) {
        line_ += c;
      }
    }
  }
  template <class Sink>
  void end(const Sink& sink) {
    if (!line_.empty()) sink(std::string_view(line_));
    line_.clear();
  }

 private:
  std::string line_;
};

// One run of one gate.
class Run {
 public:
  Run(const Sandbox& sandbox, const GateSpec& spec, const GateInput& input, const Scratch& scratch,
      const std::function<void(std::string_view)>& on_line)
      : sandbox_(sandbox),
        spec_(spec),
        input_(input),
        scratch_(scratch),
        on_line_(on_line),
        tally_(spec) {}

  // Errors of it are the gate's, not the product's.
  base::Status command(Evidence& evidence) {
    SandboxSpec sandboxed = checker_spec();
    sandboxed.mounts.push_back({scratch_.product(), "/product", spec_.writable});
    sandboxed.mounts.push_back({scratch_.data(), "/data", true});
    sandboxed.cwd = spec_.cwd.empty() ? "/product" : filled(spec_.cwd);
    const SandboxResult ran = TRY(sandbox_.run(sandboxed));
    Lines lines;
    const auto sink = [this](std::string_view line) { take(line); };
    lines.feed(ran.out, sink);
    lines.end(sink);
    TRY(own_tool_there(ran.err));
    suspect_ = is_killed(ran, ran.timed_out, ran.out_of_memory_kills);
    tally_.finish(ran.exit_code, ran.timed_out, ending(ran, ran.out_of_memory_kills));
    tally_.write_to(evidence);
    evidence.log = cut_middle(ran.out + ran.err);
    evidence.cpu_us = ran.cpu_us;
    evidence.rss_max_bytes = ran.rss_max_bytes;
    return {};
  }

  base::Status with_service(Evidence& evidence) {
    const std::unique_ptr<SandboxNetwork> network = TRY(sandbox_.make_network());
    ServiceHost host(sandbox_, service_setup(*network));
    if (!spec_.service.manual_start) {
      if (base::Status started = host.start(); !started.ok()) {
        if (host.lost() || network->lost()) return lost();
        if (started.error().code() == ErrorCode::kUnsupported) return started;
        suspect_ = host.suspect();
        tally_.finish(1, false, started.error().message());
        tally_.write_to(evidence);
        evidence.why = started.error().message();
        evidence.log = service_log();
        return {};
      }
    }
    const base::Status conversed = converse(*network, host, evidence);
    host.stop();
    if (host.lost() || network->lost()) return lost();
    TRY(conversed);
    suspect_ = suspect_ || host.suspect();
    evidence.cpu_us += host.cpu_us();
    evidence.rss_max_bytes = std::max(evidence.rss_max_bytes, host.rss_max_bytes());
    evidence.metrics.emplace_back("service_starts", host.starts());
    evidence.metrics.emplace_back("service_kills", host.kills());
    evidence.metrics.emplace_back("service_crashes", host.crashes());
    if (const DiskFault* disk = host.disk()) {
      evidence.metrics.emplace_back("disk_calls", static_cast<f64>(disk->seen()));
      evidence.metrics.emplace_back("disk_refused", static_cast<f64>(disk->refused()));
      evidence.metrics.emplace_back("disk_delayed", static_cast<f64>(disk->delayed()));
    }
    if (const NetFault* net = host.net()) {
      evidence.metrics.emplace_back("net_connections", static_cast<f64>(net->connections()));
      evidence.metrics.emplace_back("net_lost", static_cast<f64>(net->lost()));
    }
    evidence.log = cut_middle(output_ + base::read_file(scratch_.checker_log()).value_or("") +
                              "\n--- service\n" + service_log());
    return {};
  }

  // A kill -9 that nobody here sent hit the program, or bubblewrap's init around it.
  bool suspect() const { return suspect_; }

 private:
  static Error lost() {
    return Error(ErrorCode::kCancelled, "a sandbox of the gate was killed from outside");
  }

  SandboxSpec checker_spec() const {
    SandboxSpec sandboxed;
    sandboxed.argv = filled(spec_.argv);
    sandboxed.limits = sandbox_limits(spec_.limits);
    if (!input_.sealed.empty()) sandboxed.mounts.push_back({input_.sealed, "/sealed", false});
    return sandboxed;
  }

  ServiceHost::Setup service_setup(const SandboxNetwork& network) const {
    ServiceHost::Setup setup;
    setup.service = spec_.service;
    setup.service.argv = filled(setup.service.argv);
    setup.service.ready_path = filled(setup.service.ready_path);
    setup.spec.limits = sandbox_limits(spec_.limits);
    setup.spec.limits.wall_ms = 0;
    setup.spec.network = &network;
    setup.spec.cwd = "/data";
    setup.spec.mounts = {{scratch_.product(), "/product", spec_.writable},
                         {scratch_.data(), "/data", true},
                         {scratch_.socket(), "/socket", true}};
    setup.socket_folder = scratch_.socket();
    setup.log_path = scratch_.service_log();
    setup.notify_socket = scratch_.notify();
    return setup;
  }

  std::string service_log() const { return base::read_file(scratch_.service_log()).value_or(""); }

  void take(std::string_view line) {
    tally_.take_line(line);
    if (on_line_) on_line_(line);
  }

  // A checker that could not even be started says nothing about the product.
  base::Status own_tool_there(std::string_view errors) const {
    const std::string& tool = spec_.argv[0];
    if (tool.starts_with("{product}") || errors.find("bwrap: execvp " + tool) != 0) return {};
    return Error(ErrorCode::kUnsupported,
                 "the gate's own tool '" + tool + "' is not installed or not where sandboxes look");
  }

  base::Status converse(const SandboxNetwork& network, ServiceHost& host, Evidence& evidence) {
    int to_checker[2];
    int from_checker[2];
    if (::pipe2(to_checker, O_CLOEXEC) != 0) return base::errno_error(errno, "making a pipe");
    Fd their_in(to_checker[0]), our_out(to_checker[1]);
    if (::pipe2(from_checker, O_CLOEXEC) != 0) return base::errno_error(errno, "making a pipe");
    Fd our_in(from_checker[0]), their_out(from_checker[1]);
    SandboxSpec sandboxed = checker_spec();
    sandboxed.network = &network;
    sandboxed.mounts.push_back({scratch_.socket(), "/socket", true});
    sandboxed.cwd = !spec_.cwd.empty()      ? filled(spec_.cwd)
                    : input_.sealed.empty() ? "/tmp"
                                            : "/sealed";
    SandboxProcess checker = TRY(sandbox_.start(sandboxed, {.output_path = scratch_.checker_log(),
                                                            .stdin_fd = their_in.get(),
                                                            .stdout_fd = their_out.get()}));
    their_in = Fd();
    their_out = Fd();
    const bool timed_out = !pump(our_in, our_out, host);
    const std::optional<base::ProcessResult> ended =
        timed_out ? checker.kill() : checker.wait(kGraceMs);
    if (checker.lost()) return lost();
    const base::ProcessResult ran = ended ? *ended : *checker.kill();
    suspect_ = ended && is_killed(ran, timed_out, checker.out_of_memory_kills());
    TRY(own_tool_there(base::read_file(scratch_.checker_log()).value_or("")));
    tally_.finish(ran.exit_code, timed_out, ending(ran, checker.out_of_memory_kills()));
    tally_.write_to(evidence);
    evidence.cpu_us = ran.cpu_us;
    return {};
  }

  // Reads the checker until it closes its output; answers its control lines. False: time ran out.
  bool pump(const Fd& in, const Fd& out, ServiceHost& host) {
    base::Clock& clock = base::system_clock();
    const i64 end_us = clock.monotonic_us() + spec_.limits.wall_ms * 1'000;
    Lines lines;
    const auto sink = [&](std::string_view line) {
      if (!line.starts_with("@")) return take(line);
      const std::string answer = host.obey(line) + "\n";
      // A checker that is gone does not read; what it reported so far still counts.
      [[maybe_unused]] const ssize_t sent = ::write(out.get(), answer.data(), answer.size());
    };
    char buffer[16'384];
    for (;;) {
      const i64 left_ms = (end_us - clock.monotonic_us()) / 1'000;
      if (left_ms <= 0) return false;
      pollfd polled{in.get(), POLLIN, 0};
      const int ready = ::poll(&polled, 1, static_cast<int>(std::min<i64>(left_ms, 1'000'000)));
      if (ready < 0 && errno != EINTR) return false;
      if (ready <= 0) continue;
      const ssize_t got = ::read(in.get(), buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      const std::string_view piece(buffer, static_cast<size_t>(got));
      if (output_.size() < kLogBytesMax) output_ += piece;
      lines.feed(piece, sink);
    }
    lines.end(sink);
    return true;
  }

  static constexpr i64 kGraceMs = 2'000;

  const Sandbox& sandbox_;
  const GateSpec& spec_;
  const GateInput& input_;
  const Scratch& scratch_;
  const std::function<void(std::string_view)>& on_line_;
  Tally tally_;
  std::string output_;
  bool suspect_ = false;
};

}  // namespace

GateRunner::GateRunner(const Sandbox& sandbox, Options options)
    : sandbox_(sandbox), options_(std::move(options)) {}

struct GateRunner::Once {
  Evidence evidence;
  bool lost = false;     // a sandbox was killed from outside
  bool suspect = false;  // perhaps one was
};

base::Result<Evidence> GateRunner::run(const GateSpec& spec, const GateInput& input,
                                       const std::function<void(std::string_view)>& on_line) const {
  constexpr int kTries = 3;
  for (int i = 1;; ++i) {
    Once once = TRY(run_once(spec, input, on_line));
    // A program that kills itself does so the second time too, and is then believed.
    const bool again = once.lost ? i < kTries : once.suspect && i == 1;
    if (!again) return std::move(once.evidence);
  }
}

base::Result<GateRunner::Once> GateRunner::run_once(
    const GateSpec& spec, const GateInput& input,
    const std::function<void(std::string_view)>& on_line) const {
  if (spec.argv.empty()) {
    return Error(ErrorCode::kInvalidArgument, "gate '" + spec.id + "' has no command");
  }
  const Workspace product = TRY(Workspace::open(input.product));
  if (!input.sealed.empty()) TRY(Workspace::open(input.sealed));
  Evidence evidence;
  evidence.gate = spec.id;
  evidence.tree = TRY(product.tree_hash());
  evidence.command_hash = TRY(gate_command_hash(spec, input.sealed));
  evidence.profile_hash = sandbox_.profile_hash();
  evidence.host = host_description();
  TRY(base::make_directories(options_.scratch_root));
  const Scratch scratch = TRY(Scratch::make(options_.scratch_root, input));
  const i64 begin_us = base::system_clock().monotonic_us();
  Run run(sandbox_, spec, input, scratch, on_line);
  const base::Status ran =
      spec.service.argv.empty() ? run.command(evidence) : run.with_service(evidence);
  evidence.wall_us = base::system_clock().monotonic_us() - begin_us;
  Once once;
  once.suspect = run.suspect();
  if (!ran.ok()) {
    once.lost = ran.error().code() == ErrorCode::kCancelled;
    evidence.verdict = Verdict::kError;
    evidence.why = ran.error().message();
    evidence.denominator = static_cast<i64>(std::max<size_t>(1, spec.manifest.size()));
  }
  if (!input.keep_at.empty()) {
    TRY(base::remove_tree(input.keep_at));
    TRY(Workspace::fork_directory(scratch.product(), input.keep_at));
  }
  once.evidence = std::move(evidence);
  return once;
}

base::Result<std::string> gate_command_hash(const GateSpec& spec, const std::string& sealed) {
  std::string text = to_json(spec).dump_canonical() + "\n";
  if (!sealed.empty()) {
    const Workspace files = TRY(Workspace::open(sealed));
    text += TRY(files.tree_hash());
  }
  return base::sha256_hex(text);
}

std::string failure_signature(const Evidence& evidence) {
  if (evidence.verdict == Verdict::kPass) return "";
  std::string text = evidence.gate + "|" + name_of(evidence.verdict);
  std::vector<std::string> failing;
  for (const CaseResult& one : evidence.cases) {
    if (!one.pass) failing.push_back(one.id);
  }
  std::sort(failing.begin(), failing.end());
  for (const std::string& id : failing) text += "|" + id;
  if (failing.empty()) {
    // Numbers (ports, sizes, times, addresses) change from run to run; the words do not.
    for (const char c : evidence.why) {
      if (std::isdigit(static_cast<unsigned char>(c)) == 0) text += c;
    }
  }
  return base::sha256_hex(text).substr(0, 16);
}

}  // namespace team
