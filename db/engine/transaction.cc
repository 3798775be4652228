#include "db/engine/transaction.h"

#include "db/catalog/virtual_transaction.h"
#include "db/engine/schema_store.h"
#include "db/storage/multi_commit.h"

namespace db {

Error storage_error(const base::Error& error) {
  int code = rc_of(error.code());
  switch (code & 0xff) {
    case rc::kBusy:
      return Error(code, "database is locked");
    case rc::kReadOnly:
      return Error(code, "attempt to write a readonly database");
    case rc::kFull:
      return Error(code, "database or disk is full");
    case rc::kIoErr:
      return Error(code, "disk I/O error");
    case rc::kCantOpen:
      return Error(code, "unable to open database file");
    case rc::kCorrupt:
      if (error.message().find("not a database") != std::string::npos) {
        return Error(rc::kNotADb, "file is not a database");
      }
      return Error(code, "database disk image is malformed");
    default:
      return Error(code, error.message());
  }
}

namespace {

// Savepoints that are open in the session, opened in a database that has just begun to write.
void mirror_savepoints(Session& session, int database) {
  Store& store = *session.databases[static_cast<size_t>(database)]->store;
  for (Savepoint& savepoint : session.savepoints) {
    savepoint.marks.resize(session.databases.size(), -1);
    savepoint.marks[static_cast<size_t>(database)] = store.open_savepoint();
  }
}

}  // namespace

Status begin_read(Session& session, int database) {
  Store* store = session.databases[static_cast<size_t>(database)]->store.get();
  if (store == nullptr) return {};
  auto begun = store->begin_read();
  if (!begun.ok()) return storage_error(begun.error());
  return {};
}

Status begin_write(Session& session, int database, bool exclusive) {
  Database& target = *session.databases[static_cast<size_t>(database)];
  if (target.store == nullptr) return {};
  if (session.query_only || target.read_only) {
    return Error(rc::kReadOnly, "attempt to write a readonly database");
  }
  if (target.store->state() == TransactionState::kWrite) return {};
  auto begun = target.store->begin_write(exclusive);
  if (!begun.ok()) return storage_error(begun.error());
  mirror_savepoints(session, database);
  return {};
}

Status commit_all(Session& session) {
  if (Status synced = sync_virtual(session); !synced.ok()) {
    if ((synced.error().code() & 0xff) != rc::kBusy) rollback_all(session);
    return synced;
  }
  if (session.hooks.commit) {
    bool writes = false;
    for (auto& database : session.databases) {
      writes |= database->store != nullptr && database->store->state() == TransactionState::kWrite;
    }
    if (writes && session.hooks.commit()) {
      rollback_all(session);
      return Error(rc::kConstraint | (2 << 8), "constraint failed");
    }
  }
  std::vector<Database*> writers;
  std::vector<Store*> stores;
  for (auto& database : session.databases) {
    if (database->store == nullptr || database->store->state() != TransactionState::kWrite)
      continue;
    writers.push_back(database.get());
    stores.push_back(database->store.get());
  }
  // One file commits alone; several (ATTACH) commit all or none.
  auto done = stores.size() == 1 ? stores[0]->commit() : commit_together(stores);
  if (!done.ok()) {
    // Where one file of several has given up, the others must not go on.
    bool undone = false;
    for (Store* store : stores) undone |= store->state() != TransactionState::kWrite;
    if (undone) rollback_all(session);
    return storage_error(done.error());
  }
  for (Database* database : writers) {
    database->schema_changed = false;
    if (session.hooks.wal && database->store->pager().wal_frames() > 0) {
      session.hooks.wal(database->schema.name.c_str(), database->store->pager().wal_frames());
    }
  }
  session.savepoints.clear();
  session.deferred_violations = 0;
  session.defer_foreign_keys = false;
  commit_virtual(session);
  return {};
}

void rollback_all(Session& session) {
  bool wrote = false;
  ++session.write_epoch;
  for (auto& database : session.databases) {
    if (database->store == nullptr || database->store->state() == TransactionState::kNone) continue;
    if (database->store->state() == TransactionState::kWrite) {
      wrote = true;
      (void)database->store->rollback(session.running_readers > 0);
    }
    if (database->schema_changed) {
      database->schema.clear();
      database->schema_changed = false;
    }
  }
  session.savepoints.clear();
  session.deferred_violations = 0;
  session.defer_foreign_keys = false;
  session.autocommit = true;
  rollback_virtual(session);
  if (wrote && session.hooks.rollback) session.hooks.rollback();
}

Status settle(Session& session) {
  if (!session.autocommit) return {};
  if (session.running_writers == 0) {
    bool writes = !session.virtual_writers.empty();
    for (auto& database : session.databases) {
      writes |= database->store != nullptr && database->store->state() == TransactionState::kWrite;
    }
    if (writes) {
      if (session.deferred_violations > 0) {
        rollback_all(session);
        return Error(rc::kConstraintForeignKey, "FOREIGN KEY constraint failed");
      }
      Status committed = commit_all(session);
      if (!committed.ok()) {
        if ((committed.error().code() & 0xff) != rc::kBusy || session.running_readers == 0) {
          rollback_all(session);
        }
        return committed;
      }
    }
  }
  if (session.running_readers + session.running_writers == 0) {
    for (auto& database : session.databases) {
      if (database->store != nullptr && database->store->state() == TransactionState::kRead) {
        database->store->end_read();
      }
    }
  }
  return {};
}

Status begin_transaction(Session& session, sql::BeginMode mode) {
  if (!session.autocommit) {
    return Error(rc::kError, "cannot start a transaction within a transaction");
  }
  if (mode != sql::BeginMode::kDeferred && mode != sql::BeginMode::kConcurrent) {
    for (size_t i = 0; i < session.databases.size(); ++i) {
      Database& database = *session.databases[i];
      if (database.store == nullptr || database.read_only) continue;
      Status begun = begin_write(session, static_cast<int>(i), mode == sql::BeginMode::kExclusive);
      if (!begun.ok()) {
        rollback_all(session);
        return begun;
      }
    }
  }
  session.autocommit = false;
  return {};
}

Status commit_transaction(Session& session) {
  if (session.autocommit) {
    return Error(rc::kError, "cannot commit - no transaction is active");
  }
  if (session.running_writers > 0) {
    return Error(rc::kBusy, "cannot commit transaction - SQL statements in progress");
  }
  if (session.deferred_violations > 0) {
    return Error(rc::kConstraintForeignKey, "FOREIGN KEY constraint failed");
  }
  Status done = commit_all(session);
  if (!done.ok()) return done;
  session.autocommit = true;
  return {};
}

Status rollback_transaction(Session& session) {
  if (session.autocommit) {
    return Error(rc::kError, "cannot rollback - no transaction is active");
  }
  rollback_all(session);
  return {};
}

Status open_savepoint(Session& session, std::string_view name) {
  TRY(savepoint_virtual(session, next_virtual_number(session)));
  Savepoint savepoint;
  savepoint.name = name;
  savepoint.is_transaction = session.autocommit;
  savepoint.deferred_violations = session.deferred_violations;
  savepoint.marks.assign(session.databases.size(), -1);
  for (size_t i = 0; i < session.databases.size(); ++i) {
    Store* store = session.databases[i]->store.get();
    if (store != nullptr && store->state() == TransactionState::kWrite) {
      savepoint.marks[i] = store->open_savepoint();
    }
  }
  session.savepoints.push_back(std::move(savepoint));
  session.autocommit = false;
  return {};
}

namespace {

int find_savepoint(Session& session, std::string_view name) {
  for (size_t i = session.savepoints.size(); i-- > 0;) {
    if (equal_nocase(session.savepoints[i].name, name)) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

Status release_savepoint(Session& session, std::string_view name) {
  int at = find_savepoint(session, name);
  if (at < 0) return Error(rc::kError, "no such savepoint: " + std::string(name));
  Savepoint& savepoint = session.savepoints[static_cast<size_t>(at)];
  if (savepoint.is_transaction) {
    if (session.deferred_violations > 0) {
      return Error(rc::kConstraintForeignKey, "FOREIGN KEY constraint failed");
    }
    Status done = commit_all(session);
    if (done.ok()) session.autocommit = true;
    return done;
  }
  for (size_t i = 0; i < savepoint.marks.size(); ++i) {
    Store* store = session.databases[i]->store.get();
    if (savepoint.marks[i] >= 0 && store->state() == TransactionState::kWrite) {
      store->release_savepoint(savepoint.marks[i]);
    }
  }
  const int number = virtual_number(session, static_cast<size_t>(at));
  session.savepoints.resize(static_cast<size_t>(at));
  return release_virtual(session, number);
}

Status rollback_to_savepoint(Session& session, std::string_view name) {
  int at = find_savepoint(session, name);
  if (at < 0) return Error(rc::kError, "no such savepoint: " + std::string(name));
  session.savepoints.resize(static_cast<size_t>(at) + 1);
  Savepoint& savepoint = session.savepoints.back();
  ++session.write_epoch;
  for (size_t i = 0; i < savepoint.marks.size(); ++i) {
    Database& database = *session.databases[i];
    if (savepoint.marks[i] < 0 || database.store->state() != TransactionState::kWrite) continue;
    auto undone = database.store->rollback_savepoint(savepoint.marks[i]);
    if (!undone.ok()) return storage_error(undone.error());
    if (database.schema_changed) database.schema.clear();
  }
  session.deferred_violations = savepoint.deferred_violations;
  return rollback_virtual_to(session, virtual_number(session, static_cast<size_t>(at)));
}

}  // namespace db
