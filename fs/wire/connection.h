// Frames over TCP or TLS: one reader thread, any number of senders. A peer that is silent for
// kDeadAfterMs is gone (TCP's own keep-alive probes and unacknowledged data count). Errors:
// kUnavailable, kDeadline, kCorruption for bytes that are no frame, and TLS's own (fs/wire/tls.h).
#pragma once

#include "base/result.h"
#include "fs/wire/message.h"
#include "fs/wire/tls.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace fs::wire {

inline constexpr int kDeadAfterMs = 15'000;
inline constexpr int kHandshakeMs = 10'000;
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
  static base::Result<std::unique_ptr<Connection>> dial(const std::string& addresses,
                                                        const TlsTrust& trust = {});
  // The server's first act on what a Listener gave it, before anybody else uses the connection: a
  // TLS handshake, or with null none. A client that expects the other kind is told so.
  base::Status welcome(std::shared_ptr<const TlsContext> context);

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
  using Shared = std::shared_ptr<const TlsContext>;
  static base::Result<std::unique_ptr<Connection>> dial_one(const std::string& address,
                                                            const Shared& context);
  static base::Result<std::unique_ptr<Connection>> greet(std::unique_ptr<Connection> connection,
                                                         const std::string& address,
                                                         const Shared& context);
  base::Status shake_hands(const std::string& address);
  base::Status read_exactly(char* out, size_t length);
  base::Status read_socket();
  base::Status read_more();
  base::Status send_raw(std::string_view bytes);
  base::Result<std::string> sealed_frame(MessageType type, u64 id, std::string_view payload);
  void drain();
  int fd_;
  std::mutex send_mutex_;  // guards what follows, and the order of what is sealed and sent
  std::string backlog_;    // posted and not taken yet
  bool closing_ = false;
  std::condition_variable backlog_changed_;
  std::thread drainer_;  // started by the first backlog

  std::mutex tls_mutex_;             // behind send_mutex_; never held while the socket waits
  std::unique_ptr<TlsSession> tls_;  // null: plain. Set before the connection is shared

  std::string buffer_;  // received and not used yet
  size_t used_ = 0;
  std::string sealed_;  // as it came from the socket
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
