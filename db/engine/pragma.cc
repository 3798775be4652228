// PRAGMA: settings, schema tables, checks.
#include "db/engine/command.h"
#include "db/engine/connection.h"
#include "db/engine/schema_store.h"
#include "db/engine/transaction.h"
#include "db/exec/vector_choice.h"
#include "db/plan/binder.h"

#include <charconv>

namespace db {
namespace {

using Rows = std::vector<std::vector<Value>>;

struct Pragma {
  const Command& command;
  const sql::PragmaStatement& syntax;
  Session& session;
  Rows rows;
  int database = 0;

  bool has_value() const { return syntax.has_value; }
  std::string text() const { return (syntax.negative ? "-" : "") + std::string(syntax.value); }
  i64 integer() const { return parse_integer_prefix(text()); }
  bool boolean() const {
    std::string value = lower_ascii(text());
    if (value == "on" || value == "yes" || value == "true") return true;
    if (value == "off" || value == "no" || value == "false") return false;
    return integer() != 0;
  }
  Store& store() { return *session.databases[static_cast<size_t>(database)]->store; }
  Schema& schema() { return session.databases[static_cast<size_t>(database)]->schema; }
  void answer(i64 value) { rows.push_back({Value::integer(value)}); }
  void answer(std::string_view value) { rows.push_back({Value::text(value)}); }
  Status write() { return begin_write(session, database); }
};

Value optional_text(const std::string& text, bool present) {
  return present ? Value::text(text) : Value();
}

Result<Table*> table_of(Pragma& pragma) {
  Session& session = pragma.session;
  std::string_view schema =
      pragma.syntax.schema.present() ? pragma.syntax.schema.text : std::string_view();
  Table* table = session.find_table(schema, pragma.text());
  if (table != nullptr && table->kind == TableKind::kView && !table->view_resolved) {
    sql::Arena arena;
    Binder binder(session, arena);
    if (!binder.view_columns(table)) return binder.error();
  }
  return table;
}

Status table_info(Pragma& pragma, bool extended) {
  Table* table = TRY(table_of(pragma));
  if (table == nullptr) return {};
  i64 number = 0;
  for (const Column& column : table->columns) {
    int hidden = column.hidden                             ? 1
                 : column.generated == Generated::kVirtual ? 2
                 : column.generated == Generated::kStored  ? 3
                                                           : 0;
    if (!extended && hidden != 0) continue;
    std::vector<Value> row = {Value::integer(number++),
                              Value::text(column.name),
                              Value::text(column.declared_type),
                              Value::integer(column.not_null),
                              optional_text(column.default_text, column.has_default),
                              Value::integer(column.primary_key)};
    if (extended) row.push_back(Value::integer(hidden));
    pragma.rows.push_back(std::move(row));
  }
  return {};
}

void table_list(Pragma& pragma) {
  for (auto& database : pragma.session.databases) {
    if (pragma.syntax.schema.present() &&
        !equal_nocase(database->schema.name, pragma.syntax.schema.text))
      continue;
    for (auto& [name, table] : database->schema.tables) {
      if (pragma.has_value() && !equal_nocase(name, pragma.text())) continue;
      const char* type = table->kind == TableKind::kView      ? "view"
                         : table->kind == TableKind::kVirtual ? "virtual"
                                                              : "table";
      pragma.rows.push_back(
          {Value::text(database->schema.name),
           Value::text(table->root == 1 ? (&database->schema == &pragma.session.databases[1]->schema
                                               ? "sqlite_temp_schema"
                                               : "sqlite_schema")
                                        : table->name),
           Value::text(type), Value::integer(static_cast<i64>(table->columns.size())),
           Value::integer(table->without_rowid), Value::integer(table->strict)});
    }
  }
}

Status index_list(Pragma& pragma) {
  Table* table = TRY(table_of(pragma));
  if (table == nullptr) return {};
  i64 number = 0;
  for (size_t i = table->indexes.size(); i-- > 0;) {
    const Index& index = *table->indexes[i];
    pragma.rows.push_back(
        {Value::integer(number++), Value::text(index.name), Value::integer(index.unique),
         Value::text(std::string_view(&index.origin, 1)), Value::integer(index.where != nullptr)});
  }
  return {};
}

void index_info(Pragma& pragma, bool extended) {
  std::string_view schema =
      pragma.syntax.schema.present() ? pragma.syntax.schema.text : std::string_view();
  Index* index = pragma.session.find_index(schema, pragma.text());
  if (index == nullptr) {
    Table* table = pragma.session.find_table(schema, pragma.text());
    if (table == nullptr || !table->without_rowid) return;
    index = table->primary;
  }
  size_t count = extended ? index->columns.size() : static_cast<size_t>(index->key_columns);
  for (size_t i = 0; i < count; ++i) {
    const IndexColumn& column = index->columns[i];
    int at = column.column;
    const Table& table = *index->table;
    if (at == kRowid && table.rowid_column >= 0 && i < static_cast<size_t>(index->key_columns))
      at = table.rowid_column;
    std::vector<Value> row = {
        Value::integer(static_cast<i64>(i)), Value::integer(at),
        at >= 0 ? Value::text(table.columns[static_cast<size_t>(at)].name) : Value()};
    if (extended) {
      row.push_back(Value::integer(column.descending));
      row.push_back(Value::text(column.collation.empty() ? "BINARY" : column.collation));
      row.push_back(Value::integer(i < static_cast<size_t>(index->key_columns)));
    }
    pragma.rows.push_back(std::move(row));
  }
}

const char* action_name(sql::ForeignAction action) {
  switch (action) {
    case sql::ForeignAction::kRestrict:
      return "RESTRICT";
    case sql::ForeignAction::kSetNull:
      return "SET NULL";
    case sql::ForeignAction::kSetDefault:
      return "SET DEFAULT";
    case sql::ForeignAction::kCascade:
      return "CASCADE";
    default:
      return "NO ACTION";
  }
}

Status foreign_key_list(Pragma& pragma) {
  Table* table = TRY(table_of(pragma));
  if (table == nullptr) return {};
  i64 id = 0;
  for (size_t k = table->foreign_keys.size(); k-- > 0;) {
    const ForeignKey& key = table->foreign_keys[k];
    for (size_t i = 0; i < key.columns.size(); ++i) {
      pragma.rows.push_back(
          {Value::integer(id), Value::integer(static_cast<i64>(i)), Value::text(key.parent),
           Value::text(table->columns[static_cast<size_t>(key.columns[i])].name),
           i < key.parent_columns.size() ? Value::text(key.parent_columns[i]) : Value(),
           Value::text(action_name(key.on_update)), Value::text(action_name(key.on_delete)),
           Value::text("NONE")});
    }
    ++id;
  }
  return {};
}

// Rows without a parent: one query for each foreign key.
Status foreign_key_check(Pragma& pragma) {
  Schema& schema = pragma.schema();
  for (auto& [name, table] : schema.tables) {
    if (pragma.has_value() && !equal_nocase(name, pragma.text())) continue;
    i64 id = static_cast<i64>(table->foreign_keys.size()) - 1;
    for (const ForeignKey& key : table->foreign_keys) {
      i64 this_id = id--;
      Table* parent = schema.find_table(key.parent);
      std::string text = "SELECT " + std::string(table->without_rowid ? "NULL" : "c.rowid") +
                         " FROM " + quote_name(schema.name) + "." + quote_name(table->name) +
                         " AS c WHERE ";
      std::string match;
      std::vector<int> primary;
      for (size_t i = 0; i < key.columns.size(); ++i) {
        std::string child =
            "c." + quote_name(table->columns[static_cast<size_t>(key.columns[i])].name);
        text += child + " IS NOT NULL AND ";
        if (parent == nullptr) continue;
        std::string parent_column = i < key.parent_columns.size() ? key.parent_columns[i] : "";
        for (const Column& column : parent->columns) {
          if (parent_column.empty() && column.primary_key == static_cast<int>(i) + 1)
            parent_column = column.name;
        }
        if (parent_column.empty() || parent->find_column(parent_column) < 0) {
          return Error(rc::kError, "foreign key mismatch - " + quote_name(table->name) +
                                       " referencing " + quote_name(key.parent));
        }
        match += (match.empty() ? "" : " AND ") + std::string("p.") + quote_name(parent_column) +
                 "=" + child;
      }
      text += parent == nullptr ? "1"
                                : "NOT EXISTS (SELECT 1 FROM " + quote_name(schema.name) + "." +
                                      quote_name(key.parent) + " AS p WHERE " + match + ")";
      Rows found;
      TRY(run_internal(pragma.session, text, &found));
      for (auto& row : found) {
        pragma.rows.push_back(
            {Value::text(table->name), row[0], Value::text(key.parent), Value::integer(this_id)});
      }
    }
  }
  return {};
}

Status integrity_check(Pragma& pragma, bool quick) {
  i64 limit = pragma.has_value() && pragma.integer() > 0 ? pragma.integer() : 100;
  size_t found = 0;
  for (size_t d = 0; d < pragma.session.databases.size(); ++d) {
    Database& database = *pragma.session.databases[d];
    if (pragma.syntax.schema.present() && static_cast<int>(d) != pragma.database) continue;
    if (database.store == nullptr) continue;
    TRY(begin_read(pragma.session, static_cast<int>(d)));
    std::vector<PageNo> roots;
    for (auto& [name, table] : database.schema.tables) {
      if (table->kind != TableKind::kTable || table->root == 1) continue;
      roots.push_back(table->root);
      for (auto& index : table->indexes) {
        if (index.get() != table->primary) roots.push_back(index->root);
      }
    }
    auto messages = database.store->integrity_check(roots, static_cast<int>(limit));
    if (!messages.ok()) return storage_error(messages.error());
    for (const std::string& message : messages.value()) {
      if (static_cast<i64>(found++) < limit) pragma.answer(message);
    }
    if (quick) continue;
    for (auto& [name, table] : database.schema.tables) {
      if (table->kind != TableKind::kTable || table->root == 1) continue;
      Cursor rows(*database.store, table->root, nullptr);
      auto count = rows.count();
      if (!count.ok()) continue;
      for (auto& index : table->indexes) {
        if (index.get() == table->primary || index->where != nullptr) continue;
        Cursor entries(*database.store, index->root, nullptr);
        auto entry_count = entries.count();
        if (entry_count.ok() && entry_count.value() != count.value() &&
            static_cast<i64>(found++) < limit) {
          pragma.answer("wrong # of entries in index " + index->name);
        }
      }
    }
  }
  if (found == 0) pragma.answer("ok");
  return {};
}

// A header value that is read and written as it is.
Status meta_value(Pragma& pragma, Meta which, bool is_signed) {
  TRY(begin_read(pragma.session, pragma.database));
  if (!pragma.has_value()) {
    u32 value = pragma.store().page_count() == 0 ? 0 : pragma.store().meta(which);
    pragma.answer(is_signed ? static_cast<i64>(static_cast<i32>(value)) : static_cast<i64>(value));
    return {};
  }
  TRY(pragma.write());
  auto set = pragma.store().set_meta(which, static_cast<u32>(pragma.integer()));
  if (!set.ok()) return storage_error(set.error());
  return {};
}

const char* journal_name(JournalMode mode) {
  switch (mode) {
    case JournalMode::kDelete:
      return "delete";
    case JournalMode::kPersist:
      return "persist";
    case JournalMode::kOff:
      return "off";
    case JournalMode::kTruncate:
      return "truncate";
    case JournalMode::kMemory:
      return "memory";
    case JournalMode::kWal:
      return "wal";
  }
  return "delete";
}

Status journal_mode(Pragma& pragma) {
  static constexpr JournalMode kModes[] = {JournalMode::kDelete, JournalMode::kPersist,
                                           JournalMode::kOff,    JournalMode::kTruncate,
                                           JournalMode::kMemory, JournalMode::kWal};
  size_t first = static_cast<size_t>(pragma.database);
  size_t last = pragma.syntax.schema.present() ? first + 1 : pragma.session.databases.size();
  if (pragma.has_value()) {
    for (JournalMode mode : kModes) {
      if (!equal_nocase(journal_name(mode), pragma.text())) continue;
      for (size_t i = first; i < last; ++i) {
        Database& database = *pragma.session.databases[i];
        if (database.store == nullptr || i == 1) continue;
        if (!pragma.session.autocommit && mode == JournalMode::kWal) {
          return Error(rc::kError, "cannot change into wal mode from within a transaction");
        }
        if (database.store->state() == TransactionState::kRead &&
            pragma.session.running_readers <= 1) {
          database.store->end_read();
        }
        auto set = database.store->set_journal_mode(mode);
        if (!set.ok()) return storage_error(set.error());
      }
    }
  }
  Store& store = pragma.store();
  pragma.answer(store.in_memory()
                    ? (store.pager().journal_mode() == JournalMode::kOff ? "off" : "memory")
                    : journal_name(store.pager().journal_mode()));
  return {};
}

Status wal_checkpoint(Pragma& pragma) {
  CheckpointMode mode = CheckpointMode::kPassive;
  std::string text = lower_ascii(pragma.text());
  if (text == "full") mode = CheckpointMode::kFull;
  if (text == "restart") mode = CheckpointMode::kRestart;
  if (text == "truncate") mode = CheckpointMode::kTruncate;
  if (pragma.store().state() == TransactionState::kRead && pragma.session.running_readers <= 1) {
    pragma.store().end_read();
  }
  auto done = pragma.store().pager().checkpoint(mode);
  if (!done.ok()) return storage_error(done.error());
  pragma.rows.push_back({Value::integer(done.value().busy), Value::integer(done.value().log_frames),
                         Value::integer(done.value().checkpointed_frames)});
  return {};
}

struct Switch {
  const char* name;
  bool Session::* flag;
};
constexpr Switch kSwitches[] = {
    {"foreign_keys", &Session::foreign_keys},
    {"defer_foreign_keys", &Session::defer_foreign_keys},
    {"recursive_triggers", &Session::recursive_triggers},
    {"count_changes", &Session::count_changes},
    {"full_column_names", &Session::full_column_names},
    {"short_column_names", &Session::short_column_names},
    {"reverse_unordered_selects", &Session::reverse_unordered},
    {"ignore_check_constraints", &Session::ignore_check_constraints},
    {"query_only", &Session::query_only},
    {"automatic_index", &Session::automatic_index},
    {"cell_size_check", &Session::cell_size_check},
    {"writable_schema", &Session::writable_schema},
};

bool run_switch(Pragma& pragma, std::string_view name) {
  for (const Switch& one : kSwitches) {
    if (name != one.name) continue;
    if (!pragma.has_value()) {
      pragma.answer(static_cast<i64>(pragma.session.*one.flag));
    } else if (name != "foreign_keys" || pragma.session.autocommit) {
      pragma.session.*one.flag = pragma.boolean();
      ++pragma.session.schema_epoch;
    }
    return true;
  }
  return false;
}

struct ConfigSwitch {
  const char* name;
  DbConfig config;
};
constexpr ConfigSwitch kConfigs[] = {{"legacy_alter_table", DbConfig::kLegacyAlterTable},
                                     {"trusted_schema", DbConfig::kTrustedSchema},
                                     {"legacy_file_format", DbConfig::kLegacyFileFormat}};

bool run_config(Pragma& pragma, std::string_view name) {
  for (const ConfigSwitch& one : kConfigs) {
    if (name != one.name) continue;
    bool& flag = pragma.session.config[static_cast<size_t>(one.config)];
    if (pragma.has_value()) {
      flag = pragma.boolean();
    } else {
      pragma.answer(static_cast<i64>(flag));
    }
    return true;
  }
  return false;
}

Status run_setting(Pragma& pragma, std::string_view name, bool* known) {
  Session& session = pragma.session;
  *known = true;
  if (name == "synchronous") {
    Pager& pager = pragma.store().pager();
    if (!pragma.has_value()) {
      pragma.answer(static_cast<i64>(pager.synchronous()));
      return {};
    }
    std::string text = lower_ascii(pragma.text());
    i64 level = text == "off"      ? 0
                : text == "normal" ? 1
                : text == "full"   ? 2
                : text == "extra"  ? 3
                                   : pragma.integer();
    pager.set_synchronous(static_cast<Synchronous>(std::min<i64>(3, std::max<i64>(0, level))));
    return {};
  }
  if (name == "fleet_executor") {
    if (!pragma.has_value()) {
      pragma.answer(executor_name(session.executor));
    } else if (executor_of(lower_ascii(pragma.text()), &session.executor)) {
      ++session.schema_epoch;
    }
    return {};
  }
  if (name == "cache_size" || name == "default_cache_size") {
    if (pragma.has_value()) {
      session.cache_size = pragma.integer();
      pragma.store().pager().set_cache_size(pragma.integer());
    } else {
      pragma.answer(session.cache_size);
    }
    return {};
  }
  if (name == "busy_timeout") {
    if (pragma.has_value()) {
      session.busy_timeout = static_cast<int>(pragma.integer());
      session.connection->set_busy_timeout(session.busy_timeout);
    }
    pragma.answer(session.busy_timeout);
    return {};
  }
  if (name == "temp_store") {
    if (!pragma.has_value()) {
      pragma.answer(session.temp_store);
    } else {
      std::string text = lower_ascii(pragma.text());
      session.temp_store = text == "file"     ? 1
                           : text == "memory" ? 2
                                              : static_cast<int>(pragma.integer());
    }
    return {};
  }
  if (name == "locking_mode") {
    Pager& pager = pragma.store().pager();
    if (pragma.has_value()) pager.set_locking_exclusive(equal_nocase(pragma.text(), "exclusive"));
    pragma.answer(pager.locking_exclusive() ? "exclusive" : "normal");
    return {};
  }
  if (name == "page_size") {
    if (pragma.has_value()) {
      (void)pragma.store().set_page_size(static_cast<u32>(pragma.integer()), 0);
    } else {
      pragma.answer(static_cast<i64>(pragma.store().page_bytes()));
    }
    return {};
  }
  if (name == "auto_vacuum") {
    if (!pragma.has_value()) {
      TRY(begin_read(session, pragma.database));
      pragma.answer(static_cast<i64>(pragma.store().auto_vacuum()));
    } else {
      std::string text = lower_ascii(pragma.text());
      i64 mode = text == "none"          ? 0
                 : text == "full"        ? 1
                 : text == "incremental" ? 2
                                         : pragma.integer();
      if (pragma.store().state() == TransactionState::kRead && session.running_readers <= 1)
        pragma.store().end_read();
      (void)pragma.store().set_auto_vacuum(static_cast<AutoVacuum>(mode & 3));
    }
    return {};
  }
  if (name == "incremental_vacuum") {
    TRY(pragma.write());
    auto freed =
        pragma.store().incremental_vacuum(static_cast<u32>(std::max<i64>(0, pragma.integer())));
    if (!freed.ok()) return storage_error(freed.error());
    return {};
  }
  if (name == "max_page_count") {
    if (pragma.has_value() && pragma.integer() > 0) {
      pragma.store().pager().set_max_page_count(static_cast<PageNo>(pragma.integer()));
    }
    pragma.answer(static_cast<i64>(pragma.store().pager().max_page_count()));
    return {};
  }
  if (name == "journal_size_limit") {
    if (pragma.has_value()) pragma.store().pager().set_journal_size_limit(pragma.integer());
    pragma.answer(pragma.store().pager().journal_size_limit());
    return {};
  }
  if (name == "wal_autocheckpoint") {
    if (pragma.has_value())
      pragma.store().pager().set_wal_autocheckpoint(static_cast<int>(pragma.integer()));
    pragma.answer(static_cast<i64>(pragma.store().pager().wal_autocheckpoint()));
    return {};
  }
  if (name == "secure_delete") {
    if (pragma.has_value()) pragma.store().set_secure_delete(pragma.boolean());
    pragma.answer(static_cast<i64>(pragma.store().secure_delete()));
    return {};
  }
  if (name == "analysis_limit") {
    if (pragma.has_value()) session.analysis_limit = pragma.integer();
    pragma.answer(session.analysis_limit);
    return {};
  }
  if (name == "mmap_size" || name == "threads" || name == "soft_heap_limit" ||
      name == "hard_heap_limit") {
    pragma.answer(0);
    return {};
  }
  *known = false;
  return {};
}

// Reads the encoding, or chooses that of a database that does not exist yet.
Status encoding_pragma(Pragma& pragma) {
  static constexpr struct {
    const char* name;
    Encoding encoding;
  } kNames[] = {{"UTF-8", Encoding::kUtf8},       {"UTF8", Encoding::kUtf8},
                {"UTF-16le", Encoding::kUtf16le}, {"UTF-16be", Encoding::kUtf16be},
                {"UTF16le", Encoding::kUtf16le},  {"UTF16be", Encoding::kUtf16be},
                {"UTF-16", Encoding::kUtf16le},   {"UTF16", Encoding::kUtf16le}};
  TRY(load_all_schemas(pragma.session));
  for (const auto& one : kNames) {
    if (!pragma.has_value() && one.encoding == pragma.session.encoding) {
      pragma.answer(one.name);
      return {};
    }
    if (pragma.has_value() && equal_nocase(pragma.text(), one.name)) {
      choose_encoding(pragma.session, one.encoding);
      return {};
    }
  }
  return Error(rc::kError, "unsupported encoding: " + pragma.text());
}

Status run_info(Pragma& pragma, std::string_view name, bool* known) {
  Session& session = pragma.session;
  *known = true;
  if (name == "table_info") return table_info(pragma, false);
  if (name == "table_xinfo") return table_info(pragma, true);
  if (name == "table_list") return table_list(pragma), Status();
  if (name == "index_list") return index_list(pragma);
  if (name == "index_info") return index_info(pragma, false), Status();
  if (name == "index_xinfo") return index_info(pragma, true), Status();
  if (name == "foreign_key_list") return foreign_key_list(pragma);
  if (name == "foreign_key_check") return foreign_key_check(pragma);
  if (name == "integrity_check") return integrity_check(pragma, false);
  if (name == "quick_check") return integrity_check(pragma, true);
  if (name == "user_version") return meta_value(pragma, Meta::kUserVersion, true);
  if (name == "application_id") return meta_value(pragma, Meta::kApplicationId, true);
  if (name == "schema_version") return meta_value(pragma, Meta::kSchemaCookie, false);
  if (name == "journal_mode") return journal_mode(pragma);
  if (name == "wal_checkpoint") return wal_checkpoint(pragma);
  if (name == "freelist_count") {
    TRY(begin_read(session, pragma.database));
    pragma.answer(pragma.store().page_count() == 0
                      ? 0
                      : static_cast<i64>(pragma.store().meta(Meta::kFreePages)));
    return {};
  }
  if (name == "page_count") {
    TRY(begin_read(session, pragma.database));
    pragma.answer(static_cast<i64>(pragma.store().page_count()));
    return {};
  }
  if (name == "data_version") {
    TRY(begin_read(session, pragma.database));
    pragma.answer(static_cast<i64>(pragma.store().data_version()));
    return {};
  }
  if (name == "encoding") {
    return encoding_pragma(pragma);
  }
  if (name == "database_list") {
    for (size_t i = 0; i < session.databases.size(); ++i) {
      Database& database = *session.databases[i];
      if (i == 1 && database.schema.tables.size() <= 1) continue;
      pragma.rows.push_back({Value::integer(static_cast<i64>(i)), Value::text(database.schema.name),
                             Value::text(database.path)});
    }
    return {};
  }
  if (name == "collation_list") {
    i64 number = 0;
    for (const auto& [collation, one] : session.collations) {
      pragma.rows.push_back({Value::integer(number++), Value::text(collation)});
    }
    for (const char* builtin : {"RTRIM", "NOCASE", "BINARY"}) {
      pragma.rows.push_back({Value::integer(number++), Value::text(builtin)});
    }
    return {};
  }
  if (name == "module_list") {
    for (const auto& [module, code] : session.modules) pragma.rows.push_back({Value::text(module)});
    return {};
  }
  if (name == "function_list") {
    for (const Function* function : session.functions.all()) {
      pragma.rows.push_back(
          {Value::text(function->name), Value::integer(function->has(function_flag::kBuiltIn)),
           Value::text(function->is_window_capable() ? "w"
                       : function->is_aggregate()    ? "a"
                                                     : "s"),
           Value::text("utf8"), Value::integer(function->arg_count),
           Value::integer(function->has(function_flag::kDeterministic) ? 2048 : 0)});
    }
    return {};
  }
  if (name == "compile_options") {
    for (const char* option :
         {"ENABLE_COLUMN_METADATA", "ENABLE_UPDATE_DELETE_LIMIT", "THREADSAFE=1"})
      pragma.answer(option);
    return {};
  }
  if (name == "optimize" || name == "shrink_memory" || name == "case_sensitive_like") return {};
  *known = false;
  return {};
}

}  // namespace

std::vector<std::string> pragma_columns(const sql::PragmaStatement& pragma) {
  std::string name = lower_ascii(pragma.name.text);
  if (name == "table_info") return {"cid", "name", "type", "notnull", "dflt_value", "pk"};
  if (name == "table_xinfo")
    return {"cid", "name", "type", "notnull", "dflt_value", "pk", "hidden"};
  if (name == "table_list") return {"schema", "name", "type", "ncol", "wr", "strict"};
  if (name == "index_list") return {"seq", "name", "unique", "origin", "partial"};
  if (name == "index_info") return {"seqno", "cid", "name"};
  if (name == "index_xinfo") return {"seqno", "cid", "name", "desc", "coll", "key"};
  if (name == "foreign_key_list")
    return {"id", "seq", "table", "from", "to", "on_update", "on_delete", "match"};
  if (name == "foreign_key_check") return {"table", "rowid", "parent", "fkid"};
  if (name == "wal_checkpoint") return {"busy", "log", "checkpointed"};
  if (name == "database_list") return {"seq", "name", "file"};
  if (name == "collation_list") return {"seq", "name"};
  if (name == "function_list") return {"name", "builtin", "type", "enc", "narg", "flags"};
  if (name == "module_list") return {"name"};
  if (name == "busy_timeout") return {"timeout"};
  static constexpr const char* kSilentWhenSet[] = {"foreign_keys",
                                                   "recursive_triggers",
                                                   "synchronous",
                                                   "cache_size",
                                                   "user_version",
                                                   "application_id",
                                                   "schema_version",
                                                   "page_size",
                                                   "auto_vacuum",
                                                   "temp_store",
                                                   "encoding",
                                                   "count_changes",
                                                   "full_column_names",
                                                   "short_column_names",
                                                   "reverse_unordered_selects",
                                                   "ignore_check_constraints",
                                                   "query_only",
                                                   "automatic_index",
                                                   "fleet_executor",
                                                   "cell_size_check",
                                                   "writable_schema",
                                                   "legacy_alter_table",
                                                   "trusted_schema",
                                                   "legacy_file_format",
                                                   "defer_foreign_keys",
                                                   "default_cache_size"};
  for (const char* silent : kSilentWhenSet) {
    if (name == silent && pragma.has_value) return {};
  }
  static constexpr const char* kNever[] = {"incremental_vacuum", "optimize", "shrink_memory",
                                           "case_sensitive_like"};
  for (const char* never : kNever) {
    if (name == never) return {};
  }
  static constexpr const char* kOthers[] = {
      "integrity_check",    "quick_check",        "journal_mode",
      "freelist_count",     "page_count",         "data_version",
      "compile_options",    "locking_mode",       "max_page_count",
      "journal_size_limit", "wal_autocheckpoint", "secure_delete",
      "analysis_limit",     "mmap_size",          "threads",
      "soft_heap_limit",    "hard_heap_limit"};
  for (const char* other : kOthers) {
    if (name == other) return {name};
  }
  for (const char* silent : kSilentWhenSet) {
    if (name == silent) return {name};
  }
  return {};
}

Status check_pragma(const Command& command) {
  const auto& syntax = *command.statement->as<sql::PragmaStatement>();
  if (syntax.schema.present() && command.session.database_index(syntax.schema.text) < 0) {
    return Error(rc::kError, "unknown database " + std::string(syntax.schema.text))
        .at(static_cast<int>(syntax.schema.span.begin));
  }
  Pragma pragma{command, syntax, command.session, {}, 0};
  return authorize_command(command, 19, lower_ascii(syntax.name.text),
                           syntax.has_value ? pragma.text() : "",
                           syntax.schema.present() ? syntax.schema.text : std::string_view());
}

Result<CommandResult> run_pragma(const Command& command) {
  const auto& syntax = *command.statement->as<sql::PragmaStatement>();
  Pragma pragma{command, syntax, command.session, {}, 0};
  if (syntax.schema.present()) {
    pragma.database = command.session.database_index(syntax.schema.text);
    if (pragma.database < 0)
      return Error(rc::kError, "unknown database " + std::string(syntax.schema.text));
  }
  std::string name = lower_ascii(syntax.name.text);
  if (!run_switch(pragma, name) && !run_config(pragma, name)) {
    bool known = false;
    TRY(run_setting(pragma, name, &known));
    if (!known) TRY(run_info(pragma, name, &known));
  }
  CommandResult result;
  result.rows = std::move(pragma.rows);
  return result;
}

}  // namespace db
