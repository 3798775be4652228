// What planner and executor see of a connection: its databases, functions, collations, switches and
// counters. The Connection (db/engine) owns it and fills it; nothing here knows about statements.
//
// Errors raised while a statement runs go through ErrorState. Single-threaded, but for
// `interrupted`.
#pragma once

#include "db/catalog/schema.h"
#include "db/functions/function.h"
#include "db/storage/btree.h"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace db {

class Connection;
class Statement;

// Limits, by sqlite3_limit()'s numbers.
enum class Limit : u8 {
  kLength,
  kSqlLength,
  kColumn,
  kExprDepth,
  kCompoundSelect,
  kVdbeOp,
  kFunctionArg,
  kAttached,
  kLikePatternLength,
  kVariableNumber,
  kTriggerDepth,
  kWorkerThreads,
  kCount
};

// Switches of sqlite3_db_config(), by its numbers minus 1000 where they are booleans.
enum class DbConfig : u8 {
  kEnableForeignKeys = 2,
  kEnableTrigger = 3,
  kEnableFts3Tokenizer = 4,
  kEnableLoadExtension = 5,
  kNoCheckpointOnClose = 6,
  kEnableQpsg = 7,
  kTriggerEqp = 8,
  kResetDatabase = 9,
  kDefensive = 10,
  kWritableSchema = 11,
  kLegacyAlterTable = 12,
  kDqsDml = 13,
  kDqsDdl = 14,
  kEnableView = 15,
  kLegacyFileFormat = 16,
  kTrustedSchema = 17,
  kStmtScanStatus = 18,
  kReverseScanOrder = 19,
  kEnableAttachCreate = 20,
  kEnableAttachWrite = 21,
  kEnableComments = 22,
  kCount = 24
};

// What the application hooked in. Empty functions are not called.
struct Hooks {
  std::function<bool(int attempts)> busy;  // true: try again
  std::function<bool()> commit;            // true: turn the commit into a rollback
  std::function<void()> rollback;
  // op: 18 insert, 23 update, 9 delete (SQLite's action codes).
  std::function<void(int op, const char* schema, const char* table, i64 rowid)> update;
  std::function<int(int action, const char* a, const char* b, const char* schema,
                    const char* trigger)>
      authorizer;  // 0 ok, 1 deny, 2 ignore
  int progress_steps = 0;
  std::function<bool()> progress;  // true: interrupt
  std::function<int(const char* schema, int frames)> wal;
  std::function<void(Statement&, std::string_view sql)> trace_statement;
  std::function<void(Statement&, i64 nanoseconds)> trace_profile;
  std::function<void(Statement&)> trace_row;
  // Asked once for a collation that is not registered; it may register it.
  std::function<void(std::string_view name)> collation_needed;
};

// One database file of a connection.
struct Database {
  Schema schema;
  std::unique_ptr<Store> store;  // null: temp, not used yet
  std::string path;
  bool read_only = false;
  bool schema_changed = false;  // by the running transaction: reload after a rollback
};

class VirtualModule;

// A virtual table in the running transaction (virtual_transaction.h).
struct VirtualWriter {
  std::shared_ptr<VirtualTable> table;
  int savepoints = 0;  // number of the last one that it heard of, plus 1
};

struct Savepoint {
  std::string name;
  bool is_transaction = false;  // opened outside of BEGIN: releasing it commits
  std::vector<int> marks;       // per database, -1: no savepoint there (no writer at that time)
  i64 deferred_violations = 0;
};

struct Session {
  Session() : functions(&builtin_functions()) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Connection* connection = nullptr;
  std::vector<std::unique_ptr<Database>> databases;  // 0 main, 1 temp, then attached
  FunctionRegistry functions;
  NocaseMap<std::shared_ptr<Collation>> collations;
  NocaseMap<std::shared_ptr<VirtualModule>> modules;
  Hooks hooks;
  std::array<i64, static_cast<size_t>(Limit::kCount)> limits{};
  std::array<bool, static_cast<size_t>(DbConfig::kCount)> config{};

  // Of the text in all databases of the connection.
  Encoding encoding = Encoding::kUtf8;

  // Pragmas that are switches.
  bool foreign_keys = false;
  bool defer_foreign_keys = false;
  bool recursive_triggers = false;
  bool count_changes = false;
  bool full_column_names = false;
  bool short_column_names = true;
  bool reverse_unordered = false;
  bool case_sensitive_like = false;
  bool ignore_check_constraints = false;
  bool query_only = false;
  bool automatic_index = true;
  // PRAGMA fleet_executor: by estimates, or one of the two wherever it can run.
  enum class Executor : u8 { kAuto, kRow, kVector };
  Executor executor = Executor::kAuto;
  bool cell_size_check = false;
  bool writable_schema = false;
  int float_digits = 17;
  i64 analysis_limit = 0;
  i64 cache_spill = 0;
  int temp_store = 0;
  i64 cache_size = -2000;
  int busy_timeout = 0;

  // Transactions and counters.
  bool autocommit = true;
  std::vector<Savepoint> savepoints;
  std::vector<VirtualWriter> virtual_writers;
  bool syncing_virtual = false;  // a table that syncs is running
  int statement_savepoints = 0;  // open ones of running statements
  i64 deferred_violations = 0;   // foreign keys that must be whole again at commit
  i64 changes = 0;
  i64 total_changes = 0;
  i64 last_insert_rowid = 0;
  int running_readers = 0;
  int running_writers = 0;
  int trigger_depth = 0;
  std::vector<const Trigger*> active_triggers;
  std::atomic<bool> interrupted{false};
  int progress_countdown = 0;
  u64 write_epoch = 0;   // changes with every row written
  u64 schema_epoch = 0;  // with the schemas' generations and functions: is a plan still good?

  // nullptr: unknown. Asks the collation_needed hook once.
  const Collation* collation(std::string_view name);
  // Where `name` is; `schema` empty: temp, main, then the attached ones in order.
  Table* find_table(std::string_view schema, std::string_view name);
  Index* find_index(std::string_view schema, std::string_view name);
  // The table of a table-valued function; made at first use. nullptr: no such module.
  Table* eponymous_table(std::string_view name);
  NocaseMap<std::shared_ptr<Table>> eponymous_tables;
  std::vector<std::shared_ptr<Table>> virtual_shapes;
  // Gives a virtual table its code; `create` when it is new.
  Status connect_virtual(Table& table, bool create);
  int database_index(std::string_view schema) const;  // -1: none of that name
  int index_of(const Schema& schema) const;
  Database& database_of(const Schema& schema) {
    return *databases[static_cast<size_t>(index_of(schema))];
  }
  // A number that changes when any schema, function or collation does.
  u64 plan_version() const;
  bool config_on(DbConfig which) const { return config[static_cast<size_t>(which)]; }
  i64 limit(Limit which) const { return limits[static_cast<size_t>(which)]; }
};

}  // namespace db
