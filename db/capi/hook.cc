// Hooks, handlers, tracing and checkpoints.
#include "db/capi/handle.h"

using db::Statement;
using db::capi::Entered;
using db::capi::is_live;

int sqlite3_busy_handler(sqlite3* db, int (*busy)(void*, int), void* context) {
  if (!is_live(db)) return SQLITE_MISUSE;
  Entered entered(db);
  auto& hook = db->connection->hooks().busy;
  hook = nullptr;
  if (busy != nullptr) hook = [=](int attempts) { return busy(context, attempts) != 0; };
  return SQLITE_OK;
}

int sqlite3_busy_timeout(sqlite3* db, int milliseconds) {
  if (!is_live(db)) return SQLITE_MISUSE;
  Entered entered(db);
  db->connection->set_busy_timeout(milliseconds);
  return SQLITE_OK;
}

int sqlite3_setlk_timeout(sqlite3* db, int milliseconds, int) {
  return sqlite3_busy_timeout(db, milliseconds);
}

void* sqlite3_commit_hook(sqlite3* db, int (*hook)(void*), void* context) {
  if (!is_live(db)) return nullptr;
  Entered entered(db);
  auto& mine = db->connection->hooks().commit;
  mine = nullptr;
  if (hook != nullptr) mine = [=] { return hook(context) != 0; };
  return std::exchange(db->commit_context, context);
}

void* sqlite3_rollback_hook(sqlite3* db, void (*hook)(void*), void* context) {
  if (!is_live(db)) return nullptr;
  Entered entered(db);
  auto& mine = db->connection->hooks().rollback;
  mine = nullptr;
  if (hook != nullptr) mine = [=] { hook(context); };
  return std::exchange(db->rollback_context, context);
}

void* sqlite3_update_hook(sqlite3* db,
                          void (*hook)(void*, int, char const*, char const*, sqlite3_int64),
                          void* context) {
  if (!is_live(db)) return nullptr;
  Entered entered(db);
  auto& mine = db->connection->hooks().update;
  mine = nullptr;
  if (hook != nullptr) {
    mine = [=](int op, const char* schema, const char* table, i64 rowid) {
      hook(context, op, schema, table, rowid);
    };
  }
  return std::exchange(db->update_context, context);
}

void* sqlite3_wal_hook(sqlite3* db, int (*hook)(void*, sqlite3*, const char*, int), void* context) {
  if (!is_live(db)) return nullptr;
  Entered entered(db);
  auto& mine = db->connection->hooks().wal;
  mine = nullptr;
  if (hook != nullptr)
    mine = [=](const char* schema, int frames) { return hook(context, db, schema, frames); };
  return std::exchange(db->wal_context, context);
}

int sqlite3_wal_autocheckpoint(sqlite3* db, int frames) {
  if (!is_live(db)) return SQLITE_MISUSE;
  const std::string sql = "PRAGMA wal_autocheckpoint=" + std::to_string(frames);
  return sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr);
}

int sqlite3_wal_checkpoint_v2(sqlite3* db, const char* schema, int mode, int* frames, int* done) {
  static constexpr const char* kModes[] = {"PASSIVE", "FULL", "RESTART", "TRUNCATE"};
  if (frames != nullptr) *frames = -1;
  if (done != nullptr) *done = -1;
  if (!is_live(db) || mode < 0 || mode > SQLITE_CHECKPOINT_TRUNCATE) return SQLITE_MISUSE;
  Entered entered(db);
  std::string sql = "PRAGMA ";
  if (schema != nullptr && *schema != 0) {
    char* quoted = sqlite3_mprintf("\"%w\".", schema);
    sql += quoted;
    sqlite3_free(quoted);
  }
  sql += std::string("wal_checkpoint(") + kModes[mode] + ")";
  sqlite3_stmt* s = nullptr;
  int code = sqlite3_prepare_v2(db, sql.c_str(), -1, &s, nullptr);
  if (code != SQLITE_OK) return code;
  bool busy = false;
  if (sqlite3_step(s) == SQLITE_ROW) {
    busy = sqlite3_column_int(s, 0) != 0;
    if (frames != nullptr) *frames = sqlite3_column_int(s, 1);
    if (done != nullptr) *done = sqlite3_column_int(s, 2);
  }
  code = sqlite3_finalize(s);
  return code == SQLITE_OK && busy ? db::capi::fail(db, SQLITE_BUSY) : code;
}

int sqlite3_wal_checkpoint(sqlite3* db, const char* schema) {
  return sqlite3_wal_checkpoint_v2(db, schema, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
}

int sqlite3_set_authorizer(sqlite3* db,
                           int (*authorize)(void*, int, const char*, const char*, const char*,
                                            const char*),
                           void* context) {
  if (!is_live(db)) return SQLITE_MISUSE;
  Entered entered(db);
  auto& hook = db->connection->hooks().authorizer;
  hook = nullptr;
  if (authorize != nullptr) {
    hook = [=](int action, const char* a, const char* b, const char* schema, const char* trigger) {
      return authorize(context, action, a, b, schema, trigger);
    };
  }
  return SQLITE_OK;
}

void sqlite3_progress_handler(sqlite3* db, int steps, int (*progress)(void*), void* context) {
  if (!is_live(db)) return;
  Entered entered(db);
  db::Hooks& hooks = db->connection->hooks();
  hooks.progress = nullptr;
  hooks.progress_steps = steps;
  db->connection->session().progress_countdown = steps;
  if (progress != nullptr && steps > 0) hooks.progress = [=] { return progress(context) != 0; };
}

// --- Tracing
// ---------------------------------------------------------------------------------------

// Null for a statement that the engine runs for itself.
static sqlite3_stmt* handle_of(sqlite3* db, const Statement& statement) {
  auto found = db->handles.find(&statement);
  return found == db->handles.end() ? nullptr : found->second;
}

static void set_trace_hooks(sqlite3* db) {
  db::Hooks& hooks = db->connection->hooks();
  hooks.trace_statement = nullptr;
  hooks.trace_profile = nullptr;
  hooks.trace_row = nullptr;
  if (db->trace == nullptr) return;
  if ((db->trace_mask & SQLITE_TRACE_STMT) != 0) {
    hooks.trace_statement = [db](Statement& statement, std::string_view sql) {
      db->trace(SQLITE_TRACE_STMT, db->trace_v2_context, handle_of(db, statement),
                const_cast<char*>(std::string(sql).c_str()));
    };
  }
  if ((db->trace_mask & SQLITE_TRACE_PROFILE) != 0) {
    hooks.trace_profile = [db](Statement& statement, i64 nanoseconds) {
      db->trace(SQLITE_TRACE_PROFILE, db->trace_v2_context, handle_of(db, statement), &nanoseconds);
    };
  }
  if ((db->trace_mask & SQLITE_TRACE_ROW) != 0) {
    hooks.trace_row = [db](Statement& statement) {
      db->trace(SQLITE_TRACE_ROW, db->trace_v2_context, handle_of(db, statement), nullptr);
    };
  }
}

int sqlite3_trace_v2(sqlite3* db, unsigned mask, int (*trace)(unsigned, void*, void*, void*),
                     void* context) {
  if (!is_live(db)) return SQLITE_MISUSE;
  Entered entered(db);
  db->trace_mask = trace == nullptr ? 0 : mask;
  db->trace = mask == 0 ? nullptr : trace;
  db->trace_v2_context = context;
  set_trace_hooks(db);
  return SQLITE_OK;
}

void* sqlite3_trace(sqlite3* db, void (*trace)(void*, const char*), void* context) {
  if (!is_live(db)) return nullptr;
  Entered entered(db);
  auto& hook = db->connection->hooks().trace_statement;
  hook = nullptr;
  if (trace != nullptr) {
    hook = [=](Statement& statement, std::string_view) {
      trace(context, statement.expanded_sql().c_str());
    };
  }
  return std::exchange(db->trace_context, context);
}

void* sqlite3_profile(sqlite3* db, void (*profile)(void*, const char*, sqlite3_uint64),
                      void* context) {
  if (!is_live(db)) return nullptr;
  Entered entered(db);
  auto& hook = db->connection->hooks().trace_profile;
  hook = nullptr;
  if (profile != nullptr) {
    hook = [=](Statement& statement, i64 nanoseconds) {
      profile(context, std::string(statement.sql()).c_str(),
              static_cast<sqlite3_uint64>(nanoseconds));
    };
  }
  return std::exchange(db->profile_context, context);
}

int sqlite3_autovacuum_pages(sqlite3* db,
                             unsigned int (*)(void*, const char*, unsigned int, unsigned int,
                                              unsigned int),
                             void* context, void (*destroy)(void*)) {
  // Auto-vacuum always frees what it can here; the application's wish for less is not asked for.
  if (destroy != nullptr) destroy(context);
  return is_live(db) ? SQLITE_OK : SQLITE_MISUSE;
}

int sqlite3_unlock_notify(sqlite3* db, void (*notify)(void**, int), void* context) {
  if (!is_live(db)) return SQLITE_MISUSE;
  // Without a shared cache nothing ever waits for another connection's table lock.
  if (notify != nullptr) notify(&context, 1);
  return SQLITE_OK;
}
