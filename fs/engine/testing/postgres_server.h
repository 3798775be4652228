// A real PostgreSQL server for tests: made with initdb in a folder of its own, reached through a
// socket there, with a password, and gone with the object. PostgreSQL refuses to run as root, so it
// then runs as another user. Single-threaded.
#pragma once

#include "base/files.h"
#include "base/process.h"
#include "base/result.h"

#include <memory>
#include <string>

namespace fs::testing {

class PostgresServer {
 public:
  // Errors: kUnsupported when Debian's package postgresql (or another one) is not there.
  // With a certificate and its key (PEM) it also listens on 127.0.0.1, for TLS and plainly.
  static base::Result<std::unique_ptr<PostgresServer>> start(const std::string& certificate = "",
                                                             const std::string& key = "");
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // The URL of a new, empty store, with its password in it.
  std::string new_store();
  // The same over TCP; `options` are more of the URL's, "&sslmode=verify-full".
  std::string new_store_over_tcp(const std::string& options);
  std::string password() const { return "s3cret-of-the-test"; }
  // As `pg_ctl -m immediate stop`: every process of it ends at once, as in a crash.
  void stop_immediately();
  // Starts again, and waits until it answers. REQUIRES: stopped.
  base::Status start_again();
  // Where its files are, to look for what they must not hold.
  const std::string& folder() const { return place_.path(); }
  void without_tls() { tls_ = false; }  // from its next start on
  // SIGSTOP and SIGCONT to the server's processes: connections stay, answers do not come.
  void freeze(bool frozen);

 private:
  explicit PostgresServer(std::string programs) : programs_(std::move(programs)) {}
  base::Status make();
  base::Status give_certificate(const std::string& certificate, const std::string& key);
  std::string new_schema();
  // A command line of PostgreSQL's, run as somebody who is not root.
  std::vector<std::string> as_nobody(std::vector<std::string> argv) const;
  std::string url(const std::string& options) const;

  base::TempDir place_{"agentfs-postgres"};
  std::string programs_;
  std::unique_ptr<base::Process> process_;
  int stores_ = 0;
  int tcp_port_ = 0;  // 0: no TCP
  bool tls_ = true;   // over TCP
};

// One server for a test program; null, with the reason in `why`, where there is none.
PostgresServer* shared_postgres(std::string& why);

}  // namespace fs::testing
