// SQL that the engine runs for itself, inside the caller's transaction.
#include "db/engine/command.h"
#include "db/exec/eval.h"
#include "db/exec/execution.h"
#include "db/exec/index_build.h"
#include "db/exec/table_cursor.h"
#include "db/plan/dml_binder.h"
#include "db/sql/parser.h"

namespace db {

std::string quote_name(std::string_view name) {
  std::string out = "\"";
  for (char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

Status run_internal(Session& session, std::string_view text, std::vector<std::vector<Value>>* rows,
                    std::span<const Value> parameters) {
  sql::Arena arena;
  std::string copy(text);
  sql::Parsed parsed = sql::parse(copy, arena);
  if (parsed.failed) return Error(rc::kError, parsed.error);
  auto saved_hook = std::move(session.hooks.authorizer);
  session.hooks.authorizer = nullptr;
  Program program;
  Binder binder(session, program.arena);
  binder.sql = copy;
  bool compiled = compile_into(binder, nullptr, parsed.statement, &program.select, &program.dml);
  session.hooks.authorizer = std::move(saved_hook);
  if (!compiled) return binder.error();
  program.take_counts(binder);
  Cx cx(session);
  program.fit(cx);
  cx.parameters = parameters.data();
  cx.parameter_count = static_cast<int>(parameters.size());
  std::unique_ptr<Execution> execution =
      program.select != nullptr ? make_select(*program.select, cx) : make_dml(*program.dml, cx);
  int code = rc::kDone;
  while ((code = execution->step(cx)) == rc::kRow) {
    if (rows == nullptr) continue;
    size_t width = program.select != nullptr ? static_cast<size_t>(program.select->width)
                                             : program.dml->returning.size();
    rows->emplace_back(execution->row(), execution->row() + width);
    for (Value& value : rows->back()) value.keep();
  }
  execution->close(cx);
  if (code != rc::kDone) return Error(cx.code, cx.message);
  return {};
}

Result<int> database_for(Session& session, const sql::Name& schema, bool temporary) {
  if (!schema.present()) return temporary ? 1 : 0;
  int at = session.database_index(schema.text);
  if (at < 0) {
    return Error(rc::kError, "unknown database " + std::string(schema.text))
        .at(static_cast<int>(schema.span.begin));
  }
  if (temporary && at != 1) {
    return Error(rc::kError, "temporary table name must be unqualified");
  }
  return at;
}

Result<Value> constant_of(const Command& command, const sql::Expr* expr) {
  if (const auto* name = expr->is<sql::ColumnExpr>(); name != nullptr && !name->table.present()) {
    return Value::text(name->column.text);
  }
  Program program;
  Binder binder(command.session, program.arena);
  binder.sql = command.sql;
  Scope* scope = binder.new_scope(nullptr);
  Expr* bound = binder.bind(expr, scope);
  if (bound == nullptr) return binder.error();
  program.take_counts(binder);
  // Parameters have no values yet while the statement is only looked at.
  if (command.checking && !is_constant(bound)) return Value();
  Cx cx(command.session);
  program.fit(cx);
  cx.parameters = command.parameters.data();
  cx.parameter_count = static_cast<int>(command.parameters.size());
  Value value;
  eval(bound, cx, value);
  value.keep();
  if (cx.failed()) return Error(cx.code, cx.message);
  return value;
}

Status authorize_command(const Command& command, int action, std::string_view a, std::string_view b,
                         std::string_view schema) {
  const Session& session = command.session;
  if (!command.checking || !session.hooks.authorizer) return {};
  std::string first(a), second(b), where(schema);
  int answer = session.hooks.authorizer(action, a.empty() ? nullptr : first.c_str(),
                                        b.empty() ? nullptr : second.c_str(),
                                        schema.empty() ? nullptr : where.c_str(), nullptr);
  if (answer == 0) return {};
  return Error(rc::kAuth, "not authorized");
}

Status fill_index(Session& session, const Table& table, const Index& index) {
  IndexOrder order(index, session);
  IndexBuild build(index, order.info());
  TRY(build.add_table(session, table));
  Cursor tree(*table.schema->store, index.root, &order);
  return build.write(tree);
}

}  // namespace db
