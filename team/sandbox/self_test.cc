// Tries to break out of the sandbox, one wall after the other, and says in plain words which stood.
#include "base/files.h"
#include "team/sandbox/sandbox.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace team {
namespace {

struct Attempt {
  const char* check;
  std::string script;  // exits 0 when the wall stood
  const char* advice;  // when it did not
};

// A listening socket on the host's loopback that nothing in a sandbox must reach.
class HostPort {
 public:
  HostPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(fd_, 1) == 0 &&
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
      port_ = ntohs(address.sin_port);
    }
  }
  ~HostPort() { ::close(fd_); }
  int port() const { return port_; }

 private:
  int fd_;
  int port_ = 0;
};

std::vector<Attempt> attempts(const std::string& canary, int host_port) {
  const std::string port = std::to_string(host_port);
  return {
      {"reading a file of the host", "! cat " + canary, "private mounts are not in force"},
      {"writing to the system", "! touch /usr/fleet-canary && ! touch /fleet-canary",
       "the system is writable inside"},
      {"reaching the host's network", "! (exec 3<>/dev/tcp/127.0.0.1/" + port + ")",
       "network namespaces are not in force"},
      {"using the loopback of its own", "test -e /sys || grep -q lo /proc/net/dev",
       "the loopback device is missing"},
      {"holding a capability",
       "grep -q 'CapEff:.0000000000000000' /proc/self/status && "
       "grep -q 'CapBnd:.0000000000000000' /proc/self/status",
       "capabilities were not dropped"},
      {"being root", "test \"$(id -u)\" = 65534", "user namespaces are not in force"},
      {"seeing processes of the host", "test \"$(ls -d /proc/[0-9]* | wc -l)\" -lt 12",
       "PID namespaces are not in force"},
      {"gaining rights through set-user-id programs", "grep -q 'NoNewPrivs:.1' /proc/self/status",
       "no_new_privs is not set"},
      {"calls that escapes are made of", "grep -q 'Seccomp:.2' /proc/self/status",
       "no system-call filter is in force; fleet-launch is missing beside the program"},
      {"reading our environment", "! env | grep -q FLEET_CANARY", "the environment leaks"},
  };
}

SandboxFinding try_limit(const Sandbox& sandbox, const char* check, SandboxSpec spec,
                         const char* advice) {
  SandboxFinding finding;
  finding.check = check;
  base::Result<SandboxResult> ran = sandbox.run(spec);
  if (!ran.ok()) {
    finding.detail = ran.error().message();
    return finding;
  }
  finding.held = !ran->ok();
  finding.detail = finding.held ? "held" : advice;
  return finding;
}

void try_limits(const Sandbox& sandbox, std::vector<SandboxFinding>& findings) {
  SandboxSpec memory;
  memory.argv = {"sh", "-c", "head -c 300M /dev/zero | tail -c 250M | wc -c | grep -q 262144000"};
  memory.limits.memory_bytes = i64{64} << 20;
  findings.push_back(try_limit(sandbox, "using more memory than allowed", memory,
                               "memory is not limited; mount a writable cgroup file system"));
  SandboxSpec processes;
  // The POSIX shell gives up on the first fork that fails; bash would wait and try again.
  processes.argv = {"sh", "-c", "for i in $(seq 60); do sleep 3 & done; exit 0"};
  processes.limits.processes = 20;
  findings.push_back(try_limit(sandbox, "starting more processes than allowed", processes,
                               "processes are not limited; mount a writable cgroup file system"));
  SandboxSpec file;
  file.argv = {"sh", "-c", "head -c 4M /dev/zero > /tmp/big"};
  file.limits.file_bytes = 1 << 20;
  findings.push_back(
      try_limit(sandbox, "writing a larger file than allowed", file, "file sizes are not limited"));
  SandboxSpec time;
  time.argv = {"sleep", "20"};
  time.limits.wall_ms = 200;
  findings.push_back(
      try_limit(sandbox, "running longer than allowed", time, "time limits are not in force"));
}

}  // namespace

std::vector<SandboxFinding> Sandbox::self_test(const Options& options) {
  std::vector<SandboxFinding> findings;
  base::Result<std::unique_ptr<Sandbox>> opened = Sandbox::open(options);
  if (!opened.ok()) {
    findings.push_back({"starting at all", false, true, opened.error().message()});
    return findings;
  }
  const Sandbox& sandbox = **opened;
  findings.push_back({"starting at all", true, true, "held"});
  base::TempDir outside("fleet-canary");
  (void)base::write_file(outside / "secret", "canary");
  ::setenv("FLEET_CANARY", "canary", 1);
  const HostPort host;
  for (const Attempt& attempt : attempts(outside / "secret", host.port())) {
    SandboxSpec spec;
    spec.argv = {"bash", "-c", attempt.script};
    spec.limits.wall_ms = 10'000;
    base::Result<SandboxResult> ran = sandbox.run(spec);
    const bool held = ran.ok() && ran->ok();
    findings.push_back({attempt.check, held, true,
                        held       ? "held"
                        : ran.ok() ? attempt.advice
                                   : ran.error().message()});
  }
  ::unsetenv("FLEET_CANARY");
  SandboxSpec nested;
  nested.argv = {"unshare", "--user", "true"};
  SandboxFinding finding =
      try_limit(sandbox, "making a user namespace inside", nested,
                "nested user namespaces work; bubblewrap 0.8 or newer is needed");
  finding.required = options.level == SandboxLevel::kStrict;
  findings.push_back(finding);
  const size_t limits = findings.size();
  try_limits(sandbox, findings);
  for (size_t i = limits; i < findings.size(); ++i) {
    findings[i].required = options.level == SandboxLevel::kStrict;
  }
  return findings;
}

}  // namespace team
