#include "fs/engine/testing/postgres_server.h"

#include "base/clock.h"
#include "fs/engine/postgres_connection.h"

#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace fs::testing {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

i64 in_seconds(i64 seconds) {
  return base::system_clock().monotonic_us() + seconds * 1'000'000;
}

// The folder with initdb and postgres: Debian keeps them off PATH, one folder a version.
std::string find_programs() {
  std::string newest;
  const std::string root = "/usr/lib/postgresql";
  auto versions = base::list_directory(root);
  for (const std::string& version : versions.value_or({})) {
    std::string folder = root + "/" + version + "/bin";
    if (base::file_exists(folder + "/initdb")) newest = folder;
  }
  auto on_path = base::find_program("initdb");
  if (newest.empty() && on_path) newest = on_path->substr(0, on_path->rfind('/'));
  return newest;
}

// Who runs the server when we are root.
const passwd* other_user() {
  const passwd* user = ::getpwnam("postgres");
  return user != nullptr ? user : ::getpwnam("nobody");
}

int free_port() {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0) {
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  }
  ::close(fd);
  return ntohs(address.sin_port);
}

}  // namespace

Result<std::unique_ptr<PostgresServer>> PostgresServer::start(const std::string& certificate,
                                                              const std::string& key) {
  std::string programs = find_programs();
  if (programs.empty()) {
    return Error(ErrorCode::kUnsupported, "no PostgreSQL here; install Debian's postgresql");
  }
  std::unique_ptr<PostgresServer> server(new PostgresServer(programs));
  TRY(server->make());
  if (!certificate.empty()) TRY(server->give_certificate(certificate, key));
  TRY(server->start_again());
  return server;
}

PostgresServer::~PostgresServer() {
  if (process_) stop_immediately();
}

std::vector<std::string> PostgresServer::as_nobody(std::vector<std::string> argv) const {
  if (::geteuid() != 0) return argv;
  const passwd* user = other_user();
  // Changing the user clears the death signal that base::Process sets: set it again.
  std::vector<std::string> all{"setpriv",
                               "--reuid",
                               std::to_string(user->pw_uid),
                               "--regid",
                               std::to_string(user->pw_gid),
                               "--clear-groups",
                               "--pdeathsig",
                               "KILL",
                               "--"};
  all.insert(all.end(), argv.begin(), argv.end());
  return all;
}

Status PostgresServer::make() {
  if (::geteuid() == 0) {
    const passwd* user = other_user();
    if (user == nullptr) return Error(ErrorCode::kUnsupported, "no user to run PostgreSQL as");
    if (::chown(place_.path().c_str(), user->pw_uid, user->pw_gid) != 0) {
      return base::errno_error(errno, "giving " + place_.path() + " away");
    }
  }
  TRY(base::write_file(place_ / "password", password()));
  ::chmod((place_ / "password").c_str(), 0644);
  base::ProcessSpec spec;
  spec.cwd = "/";
  spec.argv = as_nobody({programs_ + "/initdb", "--pgdata", place_ / "data", "--username",
                         "agentfs", "--auth", "scram-sha-256", "--pwfile", place_ / "password",
                         "--no-sync", "--encoding", "UTF8", "--locale", "C.UTF-8"});
  spec.timeout_ms = 60'000;
  auto made = TRY(base::run_process(spec));
  if (made.ok()) return {};
  return Error(ErrorCode::kIo, "initdb failed: " + made.err);
}

Status PostgresServer::give_certificate(const std::string& certificate, const std::string& key) {
  tcp_port_ = free_port();
  for (const auto& [name, text] : {std::pair{"server.crt", certificate}, {"server.key", key}}) {
    std::string path = place_ / "data/" + name;
    TRY(base::write_file(path, text));
    if (::chmod(path.c_str(), 0600) != 0) return base::errno_error(errno, path);
    const passwd* user = ::geteuid() == 0 ? other_user() : nullptr;
    if (user != nullptr && ::chown(path.c_str(), user->pw_uid, user->pw_gid) != 0) {
      return base::errno_error(errno, "giving " + path + " away");
    }
  }
  return {};
}

Status PostgresServer::start_again() {
  base::ProcessSpec spec;
  spec.cwd = "/";
  spec.argv = as_nobody({programs_ + "/postgres", "-D", place_ / "data", "-c",
                         "unix_socket_directories=" + place_.path(), "-c", "shared_buffers=16MB",
                         "-c", "max_connections=40"});
  auto say = [&](const std::string& setting) {
    spec.argv.push_back("-c");
    spec.argv.push_back(setting);
  };
  say(tcp_port_ == 0 ? "listen_addresses=" : "listen_addresses=127.0.0.1");
  if (tcp_port_ != 0) {
    if (tls_) say("ssl=on");
    say("port=" + std::to_string(tcp_port_));
  }
  base::Process::Options options;
  options.stdout_path = options.stderr_path = place_ / "log";
  process_ = std::make_unique<base::Process>(TRY(base::Process::start(spec, options)));
  i64 end_us = in_seconds(30);
  for (;;) {
    auto connection = PgConnection::open(url(""), in_seconds(2));
    if (connection.ok()) return {};
    if (process_->poll() || base::system_clock().monotonic_us() > end_us) {
      return Error(ErrorCode::kIo, "PostgreSQL does not start: " + connection.error().message() +
                                       "\n" + base::read_file(place_ / "log").value_or(""));
    }
    base::system_clock().sleep_us(20'000);
  }
}

void PostgresServer::stop_immediately() {
  ::kill(process_->pid(), SIGQUIT);
  if (!process_->wait(10'000)) process_->kill(SIGKILL);
  process_.reset();
}

void PostgresServer::freeze(bool frozen) {
  // First the one that makes new backends; each of those is in a process group of its own.
  ::kill(process_->pid(), frozen ? SIGSTOP : SIGCONT);
  std::string root = std::to_string(process_->pid());
  for (const std::string& pid : base::list_directory("/proc").value_or({})) {
    auto stat = base::read_file("/proc/" + pid + "/stat");
    if (!stat.ok()) continue;
    size_t behind_name = stat->rfind(") ");
    bool child = behind_name != stat->npos && stat->size() > behind_name + 5 &&
                 stat->substr(behind_name + 4).starts_with(root + " ");
    if (child) ::kill(static_cast<pid_t>(std::stol(pid)), frozen ? SIGSTOP : SIGCONT);
  }
}

std::string PostgresServer::url(const std::string& options) const {
  std::string port = tcp_port_ == 0 ? "" : "&port=" + std::to_string(tcp_port_);
  return "postgres://agentfs:" + password() + "@/postgres?host=" + place_.path() + port + options;
}

std::string PostgresServer::new_schema() {
  std::string name = "store" + std::to_string(++stores_);
  auto connection = PgConnection::open(url(""), in_seconds(10));
  if (connection.ok()) {
    (void)(*connection)->run(("CREATE SCHEMA " + name).c_str(), {}, in_seconds(10));
  }
  return "options=-c%20search_path%3D" + name;
}

std::string PostgresServer::new_store() {
  return url("&" + new_schema());
}

std::string PostgresServer::new_store_over_tcp(const std::string& options) {
  return "postgres://agentfs:" + password() + "@127.0.0.1:" + std::to_string(tcp_port_) +
         "/postgres?" + new_schema() + options;
}

PostgresServer* shared_postgres(std::string& why) {
  static auto server = PostgresServer::start();
  if (server.ok()) return server->get();
  why = server.error().message();
  return nullptr;
}

}  // namespace fs::testing
