#include "db/engine/command.h"

#include "db/engine/schema_store.h"
#include "db/engine/transaction.h"

namespace db {

std::vector<std::string> command_columns(const Command& command) {
  if (command.statement->kind == sql::StatementKind::kPragma) {
    return pragma_columns(*command.statement->as<sql::PragmaStatement>());
  }
  return {};
}

bool command_writes(const sql::Statement& statement) {
  switch (statement.kind) {
    case sql::StatementKind::kBegin:
    case sql::StatementKind::kCommit:
    case sql::StatementKind::kRollback:
    case sql::StatementKind::kSavepoint:
    case sql::StatementKind::kRelease:
    case sql::StatementKind::kPragma:
    case sql::StatementKind::kAttach:
    case sql::StatementKind::kDetach:
      return false;
    default:
      return true;
  }
}

namespace {

// Which database a DDL statement writes, so that its lock is taken before anything is looked at.
int target_database(const Command& command) {
  Session& session = command.session;
  auto named = [&](const sql::Name& schema, bool temporary) {
    auto at = database_for(session, schema, temporary);
    return at.ok() ? at.value() : -1;
  };
  switch (command.statement->kind) {
    case sql::StatementKind::kCreateTable: {
      const auto* create = command.statement->as<sql::CreateTableStatement>();
      return named(create->schema, create->temporary);
    }
    case sql::StatementKind::kCreateView: {
      const auto* create = command.statement->as<sql::CreateViewStatement>();
      return named(create->schema, create->temporary);
    }
    case sql::StatementKind::kCreateIndex: {
      const auto* create = command.statement->as<sql::CreateIndexStatement>();
      Table* table = session.find_table(
          create->schema.present() ? create->schema.text : std::string_view(), create->table.text);
      return table == nullptr ? -1 : session.index_of(*table->schema);
    }
    case sql::StatementKind::kCreateTrigger: {
      const auto* create = command.statement->as<sql::CreateTriggerStatement>();
      if (create->temporary) return 1;
      std::string_view schema = create->schema.present() ? create->schema.text : std::string_view();
      Table* table = session.find_table(schema, create->table.text);
      return table == nullptr ? -1 : session.index_of(*table->schema);
    }
    default:
      return -1;
  }
}

Status run_ddl(const Command& command) {
  int at = command.checking ? -1 : target_database(command);
  if (at >= 0) TRY(begin_write(command.session, at));
  // Another process may have changed the schema since this was prepared.
  if (!command.checking) TRY(load_all_schemas(command.session));
  switch (command.statement->kind) {
    case sql::StatementKind::kCreateTable:
      return create_table(command);
    case sql::StatementKind::kCreateIndex:
      return create_index(command);
    case sql::StatementKind::kCreateView:
      return create_view(command);
    case sql::StatementKind::kCreateTrigger:
      return create_trigger(command);
    case sql::StatementKind::kDrop:
      return drop_object(command);
    case sql::StatementKind::kAlter:
      return alter_table(command);
    case sql::StatementKind::kReindex:
      return reindex(command);
    case sql::StatementKind::kAnalyze:
      return analyze(command);
    case sql::StatementKind::kVacuum:
      return vacuum(command);
    case sql::StatementKind::kCreateVirtualTable:
      return create_virtual_table(command);
    default:
      return Error(rc::kError, "not a command");
  }
}

Status run_simple(const Command& command) {
  Session& session = command.session;
  switch (command.statement->kind) {
    case sql::StatementKind::kBegin:
      TRY(authorize_command(command, 22, "BEGIN", "", ""));
      if (command.checking) return {};
      return begin_transaction(session, command.statement->as<sql::BeginStatement>()->mode);
    case sql::StatementKind::kCommit:
      TRY(authorize_command(command, 22, "COMMIT", "", ""));
      if (command.checking) return {};
      return commit_transaction(session);
    case sql::StatementKind::kRollback: {
      const auto* rollback = command.statement->as<sql::RollbackStatement>();
      if (rollback->savepoint.present()) {
        TRY(authorize_command(command, 32, "ROLLBACK", rollback->savepoint.text, ""));
        if (command.checking) return {};
        return rollback_to_savepoint(session, rollback->savepoint.text);
      }
      TRY(authorize_command(command, 22, "ROLLBACK", "", ""));
      if (command.checking) return {};
      return rollback_transaction(session);
    }
    case sql::StatementKind::kSavepoint: {
      const auto* savepoint = command.statement->as<sql::SavepointStatement>();
      TRY(authorize_command(command, 32, "BEGIN", savepoint->name.text, ""));
      if (command.checking) return {};
      return open_savepoint(session, savepoint->name.text);
    }
    case sql::StatementKind::kRelease: {
      const auto* release = command.statement->as<sql::ReleaseStatement>();
      TRY(authorize_command(command, 32, "RELEASE", release->name.text, ""));
      if (command.checking) return {};
      return release_savepoint(session, release->name.text);
    }
    case sql::StatementKind::kAttach:
      return attach(command);
    case sql::StatementKind::kDetach:
      return detach(command);
    default:
      return run_ddl(command);
  }
}

}  // namespace

Status check_command(const Command& command) {
  if (command.statement->kind == sql::StatementKind::kPragma) return check_pragma(command);
  return run_simple(command);
}

Result<CommandResult> run_command(const Command& command) {
  if (command.statement->kind == sql::StatementKind::kPragma) return run_pragma(command);
  TRY(run_simple(command));
  return CommandResult{};
}

}  // namespace db
