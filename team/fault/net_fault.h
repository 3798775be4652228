// A bad connection between a client and a service: late, lossy, chopped or cut. The engine listens
// on a second socket and carries bytes to the service's own; what a lost packet does to a byte
// stream is what it does here: everything after it waits for the time of a retransmission.
//
// One seed decides which pieces are hit. Thread-safe.
#pragma once

#include "base/random.h"
#include "base/result.h"
#include "base/types.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace team {

struct NetMode {
  i64 delay_ms = 0;            // of every piece, each way
  f64 loss = 0;                // share of pieces that have to be sent again
  i64 retransmit_ms = 200;     // what one loss costs
  size_t piece_bytes = 4'096;  // largest piece; 1 chops commands into bytes
  i64 cut_after_bytes = 0;  // breaks the connection after so many bytes from the client; 0: never
};

// Where one listens: a Unix socket, or, without a path, a port of loopback.
struct NetEnd {
  std::string path;
  int port = 0;
};

class NetFault {
 public:
  // Listens at `here`, port 0 being any free one, and carries to `target`.
  static base::Result<std::unique_ptr<NetFault>> start(const NetEnd& here, const NetEnd& target,
                                                       u64 seed);
  ~NetFault();  // ends all connections
  void set(const NetMode& mode);
  // "delay MS", "loss PERCENT", "chop", "cut BYTES", "ok": one order replaces what was before.
  base::Status obey(std::string_view order);
  int port() const { return here_.port; }  // that it listens on; 0: a Unix socket
  i64 connections() const { return connections_; }
  i64 lost() const { return lost_; }

 private:
  NetFault(int socket, NetEnd here, NetEnd target, u64 seed);
  void serve();
  void carry(int client);
  // False when the other side is gone or the connection is to be cut.
  bool pass(int from, int to, i64& client_bytes, bool from_client);

  int socket_;
  int stop_event_;
  NetEnd here_;
  NetEnd target_;
  std::mutex mutex_;  // guards mode_ and rng_
  NetMode mode_;
  base::Rng rng_;
  std::atomic<i64> connections_{0};
  std::atomic<i64> lost_{0};
  std::thread thread_;
};

}  // namespace team
