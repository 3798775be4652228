// Virtual tables in a transaction: which of them take part, and what each is told of its begin, its
// savepoints and its end (xBegin, xSync, xCommit, xRollback, xSavepoint, xRelease, xRollbackTo).
//
// A table joins with the first statement that writes to it, or when it is created. Savepoints have
// SQLite's numbers: named ones from 0, one that began the transaction is -1 (tables hear of it only
// when it is rolled back to), those of statements behind the named ones. Single-threaded, like the
// session.
#pragma once

#include "db/catalog/session.h"

namespace db {

// Before a statement writes to `table`; once in a transaction.
Status join_virtual(Session& session, const std::shared_ptr<VirtualTable>& table);
// A table just created takes part without having been told to begin.
void join_created_virtual(Session& session, const std::shared_ptr<VirtualTable>& table);

// The first half of a commit; what fails here rolls the transaction back. Tables may write to
// ordinary tables while they do it.
Status sync_virtual(Session& session);
// The end; nobody takes part afterwards. The tables' errors are not asked for, as in SQLite.
void commit_virtual(Session& session);
void rollback_virtual(Session& session);

// The number of the named savepoint at `at` in session.savepoints.
int virtual_number(const Session& session, size_t at);
// The number of the savepoint opened next.
int next_virtual_number(const Session& session);
// What tables write while they sync has savepoints that no table hears of.
Status savepoint_virtual(Session& session, int number);
Status release_virtual(Session& session, int number);
Status rollback_virtual_to(Session& session, int number);

}  // namespace db
