#include "db/catalog/virtual_transaction.h"

#include "db/catalog/virtual_table.h"

#include <algorithm>
#include <utility>

namespace db {

namespace {

bool takes_part(const Session& session, const VirtualTable* table) {
  return std::any_of(session.virtual_writers.begin(), session.virtual_writers.end(),
                     [&](const VirtualWriter& writer) { return writer.table.get() == table; });
}

// A statement that a table runs while it syncs belongs to the transaction that is about to end.
class Syncing {
 public:
  explicit Syncing(Session& session) : session_(session) {
    session_.syncing_virtual = true;
    ++session_.running_writers;
  }
  ~Syncing() {
    session_.syncing_virtual = false;
    --session_.running_writers;
  }
  Syncing(const Syncing&) = delete;
  Syncing& operator=(const Syncing&) = delete;

 private:
  Session& session_;
};

}  // namespace

Status join_virtual(Session& session, const std::shared_ptr<VirtualTable>& table) {
  if (!table->has_transactions()) return {};
  if (session.syncing_virtual) return Error(rc::kLocked, "database table is locked");
  if (takes_part(session, table.get())) return {};
  TRY(table->begin());
  session.virtual_writers.push_back({table, 0});
  const int open = next_virtual_number(session);
  if (open <= 0) return {};
  session.virtual_writers.back().savepoints = open;
  return table->savepoint(open - 1);
}

void join_created_virtual(Session& session, const std::shared_ptr<VirtualTable>& table) {
  if (!takes_part(session, table.get())) session.virtual_writers.push_back({table, 0});
}

Status sync_virtual(Session& session) {
  if (session.virtual_writers.empty()) return {};
  Syncing syncing(session);
  for (const VirtualWriter& writer : session.virtual_writers) TRY(writer.table->sync());
  return {};
}

void commit_virtual(Session& session) {
  for (const VirtualWriter& writer : std::exchange(session.virtual_writers, {})) {
    (void)writer.table->commit();
  }
}

void rollback_virtual(Session& session) {
  for (const VirtualWriter& writer : std::exchange(session.virtual_writers, {})) {
    (void)writer.table->rollback();
  }
}

int virtual_number(const Session& session, size_t at) {
  const bool began = !session.savepoints.empty() && session.savepoints.front().is_transaction;
  return static_cast<int>(at) - (began ? 1 : 0);
}

int next_virtual_number(const Session& session) {
  return virtual_number(session, session.savepoints.size()) + session.statement_savepoints;
}

Status savepoint_virtual(Session& session, int number) {
  if (session.syncing_virtual) return {};
  for (VirtualWriter& writer : session.virtual_writers) {
    writer.savepoints = number + 1;
    TRY(writer.table->savepoint(number));
  }
  return {};
}

// A table that joined behind a savepoint has never heard of it.
Status release_virtual(Session& session, int number) {
  if (session.syncing_virtual) return {};
  for (const VirtualWriter& writer : session.virtual_writers) {
    if (writer.savepoints > number) TRY(writer.table->release(number));
  }
  return {};
}

Status rollback_virtual_to(Session& session, int number) {
  if (session.syncing_virtual) return {};
  for (const VirtualWriter& writer : session.virtual_writers) {
    if (writer.savepoints > number) TRY(writer.table->rollback_to(number));
  }
  return {};
}

}  // namespace db
