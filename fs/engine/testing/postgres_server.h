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
  static base::Result<std::unique_ptr<PostgresServer>> start();
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // The URL of a new, empty store, with its password in it.
  std::string new_store();
  std::string password() const { return "s3cret-of-the-test"; }
  // As `pg_ctl -m immediate stop`: every process of it ends at once, as in a crash.
  void stop_immediately();
  // Starts again, and waits until it answers. REQUIRES: stopped.
  base::Status start_again();
  // SIGSTOP and SIGCONT to the server's processes: connections stay, answers do not come.
  void freeze(bool frozen);

 private:
  explicit PostgresServer(std::string programs) : programs_(std::move(programs)) {}
  base::Status make();
  // A command line of PostgreSQL's, run as somebody who is not root.
  std::vector<std::string> as_nobody(std::vector<std::string> argv) const;
  std::string url(const std::string& options) const;

  base::TempDir place_{"agentfs-postgres"};
  std::string programs_;
  std::unique_ptr<base::Process> process_;
  int stores_ = 0;
};

// One server for a test program; null, with the reason in `why`, where there is none.
PostgresServer* shared_postgres(std::string& why);

}  // namespace fs::testing
