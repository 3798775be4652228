// PRAGMA: settings, and what the file says of itself.
#include "db/engine/pragma.h"

#include "db/engine/connection.h"
#include "db/engine/schema_store.h"
#include "db/exec/vector_choice.h"

#include <charconv>

namespace db {
namespace {

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
    if (!known) TRY(run_schema_pragma(pragma, name, &known));
    if (!known) TRY(run_info(pragma, name, &known));
  }
  CommandResult result;
  result.rows = std::move(pragma.rows);
  return result;
}

}  // namespace db
