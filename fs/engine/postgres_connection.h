// One connection to a server that speaks PostgreSQL's wire protocol, over libpq, with a deadline on
// everything: a server that is stopped, or behind a dead link, costs the deadline and no more.
//
// Errors tell what may be done about them: kBusy, the statement did not happen and may be repeated
// (serialization, deadlock, a server that starts or has no connection left); kUnavailable, the
// connection is gone and the outcome unknown; kPermission; kNotFound, a table is missing; others
// are for a person. No message holds a password. Single-threaded.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pg_conn;
struct pg_result;

namespace fs {

// A parameter of a statement: bytes as they are, or a number.
struct PgValue {
  PgValue(std::string_view text) : bytes(text) {}
  PgValue(const std::string& text) : bytes(text) {}
  PgValue(u64 value) : number(value), is_number(true) {}
  std::string_view bytes;
  u64 number = 0;
  bool is_number = false;
};

class PgRows {
 public:
  PgRows() = default;
  explicit PgRows(pg_result* result) : result_(result) {}
  int size() const;
  // Rows that the statement changed.
  u64 affected() const;
  std::string bytes(int row, int column) const;
  u64 number(int row, int column) const;  // of a bigint
  // What was done, as the server names it: "COMMIT", "ROLLBACK".
  std::string tag() const;

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

class PgConnection {
 public:
  // `url` is a PostgreSQL URI or keyword list; what it lacks comes from PGPASSWORD, PGPASSFILE and
  // so on. To a server on another machine TLS is a must unless `sslmode` (or PGSSLMODE) says
  // otherwise; sslmode=verify-full with sslrootcert=FILE checks who it is, too. Deadlines are of
  // the machine's monotonic clock.
  static base::Result<std::unique_ptr<PgConnection>> open(const std::string& url, i64 deadline_us);
  ~PgConnection();
  PgConnection(const PgConnection&) = delete;
  PgConnection& operator=(const PgConnection&) = delete;

  // Text parameters in SQL are cast: $1::bytea, $2::text, $3::bigint.
  base::Result<PgRows> run(const char* sql, const std::vector<PgValue>& values, i64 deadline_us);
  // After kUnavailable only the destructor is of use.
  bool broken() const { return broken_; }

 private:
  explicit PgConnection(pg_conn* connection) : connection_(connection) {}
  base::Status finish_connecting(i64 deadline_us);
  base::Status settle(i64 deadline_us);
  base::Status wait(short events, i64 deadline_us);  // of poll(2)
  base::Status flush(i64 deadline_us);
  base::Error lost(std::string_view what);
  base::Error failed(const pg_result* result);

  pg_conn* connection_;
  bool broken_ = false;
};

// The same URL as people may see it: without its password. "a PostgreSQL server" when it is none.
std::string without_password(const std::string& url);
// Whether a URL names such a server.
bool is_postgres_url(std::string_view url);

}  // namespace fs
