#include "db/catalog/virtual_table.h"

#include "db/catalog/schema.h"
#include "db/sql/parser.h"

namespace db {

Result<std::shared_ptr<Table>> declare_virtual_table(VirtualDeclaration declaration) {
  auto definition = std::make_shared<Definition>();
  definition->sql = std::move(declaration.schema_sql);
  sql::Parsed parsed = sql::parse(definition->sql, definition->arena);
  if (parsed.failed || parsed.statement == nullptr ||
      parsed.statement->kind != sql::StatementKind::kCreateTable) {
    return Error(rc::kError, parsed.failed ? parsed.error : "declare_vtab: syntax error");
  }
  definition->statement = parsed.statement;
  std::shared_ptr<Table> table =
      TRY(build_table(*parsed.statement->as<sql::CreateTableStatement>(), definition->sql));
  table->kind = TableKind::kVirtual;
  table->virtual_table = std::move(declaration.table);
  table->definition = std::move(definition);
  for (Column& column : table->columns) {
    std::string lower = lower_ascii(column.declared_type);
    size_t at = lower.find("hidden");
    if (at == std::string::npos) continue;
    column.hidden = true;
    column.declared_type.erase(at, 6);
    while (!column.declared_type.empty() && column.declared_type.back() == ' ') {
      column.declared_type.pop_back();
    }
  }
  return table;
}

}  // namespace db
