// Transactions of a session over all its databases: implicit ones around statements, BEGIN and
// COMMIT, savepoints. All answer SQLite's codes and texts. Single-threaded.
#pragma once

#include "db/catalog/session.h"

namespace db {

Status begin_read(Session& session, int database);
// Also opens in the database the savepoints that the session has open.
Status begin_write(Session& session, int database, bool exclusive = false);
// Commits every database; on failure everything is still open.
Status commit_all(Session& session);
void rollback_all(Session& session);
// After a statement: commits in autocommit mode when nothing writes any more, lets go of read locks
// when nothing reads any more.
Status settle(Session& session);

Status open_savepoint(Session& session, std::string_view name);
Status release_savepoint(Session& session, std::string_view name);
Status rollback_to_savepoint(Session& session, std::string_view name);
Status begin_transaction(Session& session, sql::BeginMode mode);
Status commit_transaction(Session& session);
Status rollback_transaction(Session& session);

// SQLite's text for a storage error.
Error storage_error(const base::Error& error);

}  // namespace db
