// A wire between a client and a server on this machine that can be cut, stopped and slowed: what
// netem does where the kernel has it. One thread a connection and direction. Thread-safe.
#pragma once

#include "base/types.h"

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fs::testing {

class Proxy {
 public:
  // Listens on a free port of 127.0.0.1 and forwards to `port` there.
  explicit Proxy(int port);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  int port() const { return port_; }
  // Breaks what is connected; new connections work.
  void cut();
  // Nothing gets through, and nobody is told: a partition. New connections hang, too.
  void partition(bool on) { partitioned_ = on; }
  // Each stretch of bytes is this much later.
  void delay_ms(int ms) { delay_ms_ = ms; }
  // Keeps all that goes through from now on.
  void record() { recording_ = true; }
  std::string recorded();

 private:
  struct Pair {
    int client = -1, server = -1;
    std::vector<std::thread> threads;
  };
  void accept_loop();
  void forward(int from, int to);

  int server_port_;
  int port_ = 0;
  int listener_ = -1;
  std::atomic<bool> stopping_{false}, partitioned_{false}, recording_{false};
  std::atomic<int> delay_ms_{0};
  std::mutex mutex_;  // guards what follows
  std::string recorded_;
  std::list<Pair> pairs_;
  std::thread acceptor_;
};

}  // namespace fs::testing
