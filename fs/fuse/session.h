// One FUSE connection: reads requests from the device, hands them to a Handler, sends the replies.
//
// One thread serves by default. Measured on two cores, four reader threads halve the throughput:
// the kernel wakes another core for every request. More threads pay when handlers block. Errors of
// the connection end run(); errors of requests are the handler's business.
#pragma once

#include "base/result.h"
#include "fs/fuse/caller_affinity.h"
#include "fs/fuse/mount.h"
#include "fs/fuse/negotiate.h"
#include "fs/fuse/reply.h"
#include "fs/fuse/request.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <vector>

namespace fs::fuse {

enum class Answer {
  kSend,   // the reply is ready
  kNone,   // the opcode has no reply (FORGET)
  kLater,  // the handler keeps reply.copy() and calls Session::send_later()
};

class Handler {
 public:
  virtual ~Handler() = default;
  // Called once, before the first request.
  virtual void started(const Agreement& agreement) = 0;
  // May be called from several threads at once when the session has several.
  virtual Answer handle(const Request& request, Reply& reply) = 0;
};

// Thread-safe: send_later(), notify() and stop().
class Session {
 public:
  struct Options {
    Wishes wishes;
    int threads = 1;
    // How long a thread polls the device after a request before it sleeps; costs CPU, saves a
    // wake-up.
    i64 spin_us = 0;
    bool follow_caller = true;  // fs/fuse/caller_affinity.h
  };
  Session(Device device, Handler& handler, Options options);

  // Waits for the kernel's INIT and answers it. Errors: kUnsupported, kIo.
  base::Status start();
  // For a daemon that takes over a live connection: nothing is negotiated, the kernel is asked to
  // send again what was not answered.
  base::Status resume(const Agreement& agreement);
  // Serves until the folder is unmounted or stop().
  base::Status run();
  // Returns when no thread serves any more. Not from a handler.
  void stop();

  void send_later(base::ByteView reply);
  void send_now(Reply& reply) { send(reply.head(), reply.attached()); }
  // False: the kernel refused it (most often: it does not know the node), or is gone.
  bool notify(base::ByteView notification);

  const Agreement& agreement() const { return agreement_; }
  int fd() const { return device_.fd(); }
  u64 requests_served() const { return served_.load(std::memory_order_relaxed); }

 private:
  base::Status serve();
  // Empty: the connection ended.
  base::Result<base::ByteView> read_request(std::vector<u8>& buffer);
  void answer(base::ByteView bytes, Reply& reply, CallerAffinity& affinity);
  void send(base::ByteView head, base::ByteView tail);

  Device device_;
  Handler& handler_;
  Options options_;
  Agreement agreement_;
  std::atomic<bool> stopping_{false};
  std::atomic<u64> served_{0};
  std::mutex threads_mutex_;
  std::vector<pthread_t> threads_;  // that serve now
};

}  // namespace fs::fuse
