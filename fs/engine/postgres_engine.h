// The engine of a cluster: a PostgreSQL server, or one of its kin that speaks its wire protocol
// (CockroachDB, YugabyteDB, Aurora), so only SQL that all of them know. A database is a store; with
// `options=-c search_path=NAME` in the URL, a schema is.
//
//   agentfs_row(key bytea, version, value text)               rows; values are JSON
//   agentfs_log(workspace, epoch, head, hash)                 whose word counts, and how far it got
//   agentfs_segment(workspace, first, last, epoch, hash, bytes)
//   agentfs_writer(writer, number, seen)                      the last commit of each connection
//
// Every change holds under READ COMMITTED: expectations are the WHERE of an UPDATE, DELETE or
// SELECT FOR SHARE, so they are checked under the row's lock. A commit whose answer was lost is
// repeated under the same (writer, number): the row of agentfs_writer makes the repetition wait for
// the first try and tells whether that one happened. Server restarts and broken connections are
// waited out with back-off for `patience_us`; then kUnavailable. Thread-safe: calls use several
// connections.
#pragma once

#include "fs/engine/engine.h"

#include <memory>
#include <string>

namespace fs {

struct PostgresOptions {
  bool create = false;            // make the tables if they are not there
  i64 patience_us = 20'000'000;   // for one call
  i64 statement_us = 12'000'000;  // for one answer of the server
  size_t connections_max = 4;
};
// Errors: kInvalidArgument (the URL), kPermission, kNotFound (no tables), kUnavailable.
base::Result<std::unique_ptr<Engine>> open_postgres_engine(const std::string& url,
                                                           const PostgresOptions& options);

}  // namespace fs
