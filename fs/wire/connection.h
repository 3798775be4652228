// Frames over TCP: one reader thread, any number of senders. A peer that is silent for kDeadAfterMs
// is gone (TCP's own keep-alive probes and unacknowledged data count). Errors: kUnavailable,
// kDeadline, kCorruption for bytes that are no frame.
#pragma once

#include "base/result.h"
#include "fs/wire/message.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace fs::wire {

inline constexpr int kDeadAfterMs = 15'000;
inline constexpr size_t kBacklogBytesMax = 64u << 20;

struct Frame {
  Header header;
  std::string payload;
};

class Connection {
 public:
  // Takes the descriptor.
  explicit Connection(int fd);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  // HOST:PORT, or several of them with commas between: the first that can be reached.
  static base::Result<std::unique_ptr<Connection>> dial(const std::string& addresses);

  // Thread-safe.
  base::Status send(MessageType type, u64 id, std::string_view payload);
  // As send(), but never waits for the peer: what it does not take at once goes out, in order, from
  // a thread of our own. A peer that takes nothing for kExpelAfterMs, or lets kBacklogBytesMax pile
  // up, loses the connection.
  void post(MessageType type, u64 id, std::string_view payload);
  // One thread at a time.
  base::Result<Frame> receive();
  // Ends a receive() that waits, for good. Thread-safe.
  void shutdown();

 private:
  static base::Result<std::unique_ptr<Connection>> dial_one(const std::string& address);
  base::Status read_exactly(char* out, size_t length);
  void drain();
  int fd_;
  std::mutex send_mutex_;  // guards what follows, and the order of what is sent
  std::string backlog_;    // posted and not taken yet
  bool closing_ = false;
  std::condition_variable backlog_changed_;
  std::thread drainer_;  // started by the first backlog

  std::string buffer_;  // received and not used yet
  size_t used_ = 0;
};

// Accepts connections until stop().
class Listener {
 public:
  // `address` is HOST:PORT; port 0 takes a free one. Errors: kBusy when it is taken.
  static base::Result<std::unique_ptr<Listener>> open(const std::string& address);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int port() const { return port_; }
  // Null after stop().
  std::unique_ptr<Connection> accept();
  void stop();  // thread-safe

 private:
  Listener(int fd, int stop_fd, int port) : fd_(fd), stop_fd_(stop_fd), port_(port) {}
  int fd_, stop_fd_, port_;
};

}  // namespace fs::wire
