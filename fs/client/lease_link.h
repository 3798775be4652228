// The connection of a private mount to its server: kept up, and made anew when it breaks. Questions
// are answered by number; what the server says about the lease goes to a callback. One thread dials
// and receives. Thread-safe.
//
// A question fails with kUnavailable when the connection breaks before its answer: the caller asks
// again, and every question is such that asking twice does no harm.
#pragma once

#include "base/result.h"
#include "fs/wire/connection.h"

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace fs {

class LeaseLink {
 public:
  struct Options {
    std::string server;  // HOST:PORT
    wire::TlsTrust trust;
    wire::Hello hello;
    // On the link's thread; must not ask.
    std::function<void(const wire::LeaseNews&)> news;
  };
  // The first connection, or the reason why there is none.
  static base::Result<std::unique_ptr<LeaseLink>> connect(Options options);
  ~LeaseLink();
  LeaseLink(const LeaseLink&) = delete;
  LeaseLink& operator=(const LeaseLink&) = delete;

  base::Result<std::string> ask(wire::MessageType type, std::string_view payload);
  // Lost when there is no connection.
  void tell(const LeaseMessage& message);
  bool up();
  u64 reconnects();
  // Ends everything; questions that wait fail.
  void stop();

 private:
  explicit LeaseLink(Options options) : options_(std::move(options)) {}
  base::Result<std::shared_ptr<wire::Connection>> dial();
  void run();
  void receive(wire::Connection& connection);
  void fail_all();

  struct Waiter {
    bool done = false;
    bool failed = false;
    std::string payload;
  };
  Options options_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::shared_ptr<wire::Connection> connection_;  // null while there is none
  std::map<u64, Waiter*> waiters_;
  u64 next_id_ = 1;
  u64 connects_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace fs
