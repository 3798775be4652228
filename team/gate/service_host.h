// Keeps the service of a gate: starts it in its own sandbox, waits until it is ready, kills it, and
// obeys the checker's control lines. The checker's side of the conversation is in core/gate_spec.h;
// beyond that:
//   @pause / @resume      SIGSTOP and SIGCONT to the service: a machine that hangs
//   @signal NUMBER        any other signal
//   @disk full | failing | slow MS | ok     what the service's disk does from now on
//   (disk_fault.h). The
//                         first one must come before the @start of the service it is for.
//   @net delay MS | loss PERCENT | chop | cut BYTES | ok
//                         what happens to bytes on {socket}/faulty, a second way to the service
//                         beside its ready_path (net_fault.h)
// Single-threaded.
#pragma once

#include "team/core/gate_spec.h"
#include "team/fault/disk_fault.h"
#include "team/fault/net_fault.h"
#include "team/sandbox/sandbox.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace team {

class ServiceHost {
 public:
  struct Setup {
    GateService service;        // argv and ready_path as seen inside
    SandboxSpec spec;           // mounts, limits, network; argv is taken from `service`
    std::string socket_folder;  // of the host, mounted at /socket
    std::string log_path;
    std::string notify_socket;  // where to listen for the service's file calls
  };
  // `sandbox` outlives the host.
  ServiceHost(const Sandbox& sandbox, Setup setup);
  ~ServiceHost();

  // Errors: kDeadline when it did not get ready, kUnavailable when it ended instead; the sentence
  // has the end of its log.
  base::Status start();
  void kill();
  void stop();
  bool running();
  // Obeys one "@..." line; the answer is "ok ..." or "error ...".
  std::string obey(std::string_view line);

  i64 rss_max_bytes() const { return rss_max_bytes_; }
  i64 cpu_us() const { return cpu_us_; }
  int starts() const { return starts_; }
  int kills() const { return kills_; }
  // Its sandbox was killed from outside: what the gate saw of the service says nothing.
  bool lost() const { return lost_; }
  int crashes() const { return crashes_; }  // ends that nobody asked for
  // It ended with the status of SIGKILL, which nobody here sent: perhaps its sandbox was killed.
  bool suspect() const { return suspect_; }
  const DiskFault* disk() const { return disk_.get(); }
  const NetFault* net() const { return net_.get(); }

 private:
  bool accepts() const;
  void note_end(const base::ProcessResult& ended);
  void reap(const std::optional<base::ProcessResult>& ended);
  std::string log_tail() const;
  std::string obey_disk(std::string_view order);
  std::string obey_net(std::string_view order);
  std::string ready_socket() const;  // on the host; "" for TCP

  const Sandbox& sandbox_;
  Setup setup_;
  std::unique_ptr<DiskFault> disk_;
  std::unique_ptr<NetFault> net_;
  std::optional<SandboxProcess> process_;
  i64 rss_max_bytes_ = 0;
  i64 cpu_us_ = 0;
  int starts_ = 0;
  int kills_ = 0;
  int crashes_ = 0;
  bool signalled_ = false;
  bool lost_ = false;
  bool suspect_ = false;
};

}  // namespace team
