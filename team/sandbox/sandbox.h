// Runs one program where it can hurt nobody: bubblewrap with all namespaces unshared, every
// capability dropped, no nested user namespaces, user 65534, a read-only system, a private /tmp, an
// empty environment, no network but loopback, and limits on time, memory, processes and file sizes.
// It fails closed: without a working sandbox nothing runs, unless the weak level is asked for by
// name, and then every result says so.
//
// Inside, the world is: /usr (and /bin, /lib, ...) read-only, /proc, a minimal /dev, /tmp, and the
// mounts of the spec. Two sandboxes see each other only through a Network they share: a gate's
// checker reaches the product's port and nothing else of it, neither its processes nor its files.
//
// Errors: kUnsupported when the level cannot be had here (the sentence says what is missing),
// kNotFound for a program that is not there, kInvalidArgument for a bad mount, kCancelled when the
// sandbox itself was killed from outside, so that nothing is known about the program. Thread-safe.
#pragma once

#include "base/process.h"
#include "base/result.h"
#include "base/types.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace team {

struct SandboxMount {
  std::string host;    // an existing path
  std::string inside;  // absolute, e.g. "/work"
  bool writable = false;
};

struct SandboxLimits {
  i64 wall_ms = 60'000;  // 0: none
  i64 memory_bytes =
      i64{2} << 30;  // of all processes together where cgroups can be had, else of each
  int processes = 256;
  i64 file_bytes = i64{1} << 30;  // size of any file it writes
  i64 tmp_bytes = i64{256} << 20;
  int open_files = 1024;
  size_t output_bytes_max = 1 << 20;  // per stream; the middle is cut out beyond it
};

// A network namespace of its own with loopback up, that several sandboxes may join. It ends with
// the object.
class SandboxNetwork {
 public:
  ~SandboxNetwork();
  SandboxNetwork(const SandboxNetwork&) = delete;
  int pid() const { return holder_->pid(); }
  bool lost() { return holder_->poll().has_value(); }

 private:
  friend class Sandbox;
  explicit SandboxNetwork(std::unique_ptr<base::Process> holder);
  std::unique_ptr<base::Process> holder_;
};

struct SandboxSpec {
  std::vector<std::string> argv;
  std::string cwd = "/";  // inside
  std::vector<SandboxMount> mounts;
  std::vector<std::pair<std::string, std::string>> env;  // on top of PATH, HOME=/tmp, LANG=C.UTF-8
  std::string input;
  SandboxLimits limits;
  bool merge_stderr = false;
  // null: a loopback of its own.
  const SandboxNetwork* network = nullptr;
  // A Unix socket of the host on which the engine answers for the program's file writes
  // (team/fault/disk_fault.h); "": nobody is asked.
  std::string notify_socket;
  // The host's network: for a deployed artefact that must be reached, never for agents or gates.
  bool host_network = false;
};

enum class SandboxLevel {
  kStrict,
  // Namespaces, no capabilities and no network as above, but the limits on memory and processes and
  // the ban on nested user namespaces only where they can be had. By explicit configuration only;
  // evidence says so.
  kWeak,
};
const char* name_of(SandboxLevel level);

// One attempt to break out, or one ability that is needed.
struct SandboxFinding {
  std::string check;  // "writing outside the workspace"
  bool held = false;  // the wall stood
  bool required = true;
  std::string detail;  // in plain words, with what to install or allow when it did not hold
};

struct SandboxResult : base::ProcessResult {
  i64 out_of_memory_kills = 0;
};

class SandboxProcess;
class Cgroup;

class Sandbox {
 public:
  struct Options {
    SandboxLevel level = SandboxLevel::kStrict;
    std::string bwrap = "bwrap";  // a name on PATH or a path
    std::string launcher;         // fleet-launch; "": beside the running program
    bool proven = false;          // somebody has opened this level here already
  };
  // Proves that the level can be had with one tiny run before it returns, unless it is proven.
  static base::Result<std::unique_ptr<Sandbox>> open(const Options& options);
  ~Sandbox();

  // Runs to the end. A program that fails, or is killed for a limit, is a result, not an error.
  base::Result<SandboxResult> run(const SandboxSpec& spec) const;
  // Starts a program that lives on. Killing it ends all it started.
  // Output of both streams goes to `output_path` unless file descriptors are given for input and
  // output.
  struct Streams {
    std::string output_path;
    int stdin_fd = -1;
    int stdout_fd = -1;
  };
  base::Result<SandboxProcess> start(const SandboxSpec& spec, const Streams& streams) const;
  base::Result<std::unique_ptr<SandboxNetwork>> make_network() const;

  SandboxLevel level() const { return options_.level; }
  // SHA-256 of the recipe; evidence carries it.
  const std::string& profile_hash() const { return profile_hash_; }

  // Tries to break out. All required findings held: the level is real.
  static std::vector<SandboxFinding> self_test(const Options& options);

 private:
  explicit Sandbox(Options options);
  // The whole command line, from the shell that sets limits and joins the control group to the
  // program.
  base::Result<std::vector<std::string>> command(const SandboxSpec& spec,
                                                 const Cgroup* cgroup) const;
  Options options_;
  std::string profile_hash_;
};

// Single-threaded. The program and all its descendants end with the object.
class SandboxProcess {
 public:
  SandboxProcess(SandboxProcess&&) noexcept;
  SandboxProcess& operator=(SandboxProcess&&) noexcept;
  ~SandboxProcess();
  int pid() const { return process_.pid(); }  // of the outermost process, on the host
  std::optional<base::ProcessResult> poll() { return process_.poll(); }
  std::optional<base::ProcessResult> wait(i64 timeout_ms) { return process_.wait(timeout_ms); }
  // A signal to the program itself (not to bubblewrap around it).
  void signal(int number);
  // Asks the program to end (SIGTERM), then kills after grace_ms.
  std::optional<base::ProcessResult> stop(i64 grace_ms);
  // kill -9, to all of it at once.
  std::optional<base::ProcessResult> kill();
  // Resident bytes of the program and its descendants.
  i64 rss_bytes() const;
  i64 out_of_memory_kills() const;
  // It was ended by a signal that did not come from us: nothing is known about the program.
  bool lost();

 private:
  friend class Sandbox;
  SandboxProcess(base::Process process, std::unique_ptr<Cgroup> cgroup);
  base::Process process_;
  std::unique_ptr<Cgroup> cgroup_;
  bool killed_ = false;  // by us
};

}  // namespace team
