// kvd: serves the store over TCP and a Unix socket. One thread, one epoll loop.
#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include "log.h"
#include "resp.h"
#include "store.h"

namespace kv {
namespace {

struct Client {
  RequestParser parser;
  std::string out;
  bool closing = false;
};

struct Options {
  std::string dir = ".";
  std::string unix_path;
  int port = 0;
};

class Server {
 public:
  bool open(const Options& options);
  void serve();

 private:
  bool listen_on(int fd, const sockaddr* address, socklen_t size);
  void accept_all(int listener);
  void read_from(int fd);
  void execute(Client& client);
  void flush(int fd);
  void drop(int fd);
  bool reload();

  std::string log_path_;
  Store store_;
  std::unique_ptr<Log> log_;
  int epoll_ = -1;
  std::vector<int> listeners_;
  std::map<int, Client> clients_;
};

bool Server::open(const Options& options) {
  log_path_ = options.dir + "/kv.log";
  if (!reload()) return false;
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (options.port > 0) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(options.port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!listen_on(fd, reinterpret_cast<sockaddr*>(&address), sizeof address)) return false;
  }
  if (!options.unix_path.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (options.unix_path.size() >= sizeof address.sun_path) return false;
    std::strcpy(address.sun_path, options.unix_path.c_str());
    unlink(address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (!listen_on(fd, reinterpret_cast<sockaddr*>(&address), sizeof address)) return false;
  }
  return !listeners_.empty();
}

// Memory becomes what the disk says.
bool Server::reload() {
  store_ = Store();
  log_ = std::make_unique<Log>();
  if (log_->open(log_path_, [&](const Command& change) { store_.apply(change); })) return true;
  std::fprintf(stderr, "kvd: %s\n", log_->error().c_str());
  return false;
}

bool Server::listen_on(int fd, const sockaddr* address, socklen_t size) {
  if (fd < 0 || bind(fd, address, size) != 0 || listen(fd, 511) != 0) {
    std::fprintf(stderr, "kvd: cannot listen: %s\n", std::strerror(errno));
    return false;
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  listeners_.push_back(fd);
  return true;
}

void Server::accept_all(int listener) {
  for (;;) {
    int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    clients_[fd];
  }
}

void Server::drop(int fd) {
  clients_.erase(fd);
  close(fd);
}

void Server::read_from(int fd) {
  char bytes[65536];
  ssize_t got = read(fd, bytes, sizeof bytes);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop(fd);
  Client& client = clients_[fd];
  client.parser.feed({bytes, static_cast<size_t>(got)});
  execute(client);
}

void Server::execute(Client& client) {
  Command command;
  while (!client.closing) {
    RequestParser::Outcome outcome = client.parser.next(command);
    if (outcome == RequestParser::Outcome::kNeedMore) return;
    if (outcome == RequestParser::Outcome::kBroken) {
      reply_error(client.out, "ERR Protocol error: " + client.parser.error());
      client.closing = true;
      return;
    }
    std::string reply;
    std::vector<Command> changes;
    store_.run(command, reply, changes);
    for (const Command& change : changes) log_->append(change);
    // The change must be on disk before anybody hears that it was made.
    if (!changes.empty() && !log_->sync()) {
      std::fprintf(stderr, "kvd: the log cannot be written: %s\n", log_->error().c_str());
      reply.clear();
      reply_error(reply, "ERR the disk is full; nothing was stored");
      if (!reload()) std::abort();
    }
    client.out += reply;
  }
}

void Server::flush(int fd) {
  auto at = clients_.find(fd);
  if (at == clients_.end()) return;
  Client& client = at->second;
  while (!client.out.empty()) {
    ssize_t put = send(fd, client.out.data(), client.out.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) break;
    if (put <= 0) return drop(fd);
    client.out.erase(0, static_cast<size_t>(put));
  }
  if (client.out.empty() && client.closing) return drop(fd);
  epoll_event event{};
  event.events = client.out.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
  event.data.fd = fd;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void Server::serve() {
  std::vector<epoll_event> events(256);
  for (;;) {
    int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      int fd = events[static_cast<size_t>(i)].data.fd;
      bool listener = fd == listeners_[0] || (listeners_.size() > 1 && fd == listeners_[1]);
      if (listener) accept_all(fd);
      else if (events[static_cast<size_t>(i)].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        read_from(fd);
      }
    }
    for (int i = 0; i < count; ++i) flush(events[static_cast<size_t>(i)].data.fd);
  }
}

}  // namespace
}  // namespace kv

int main(int argc, char** argv) {
  kv::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string name = argv[i];
    if (name == "--dir") options.dir = argv[i + 1];
    else if (name == "--port") options.port = std::atoi(argv[i + 1]);
    else if (name == "--unixsocket") options.unix_path = argv[i + 1];
    else {
      std::fprintf(stderr, "kvd: unknown option %s; use --dir, --port, --unixsocket\n",
                   name.c_str());
      return 2;
    }
  }
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  kv::Server server;
  if (!server.open(options)) return 1;
  server.serve();
  return 1;
}
