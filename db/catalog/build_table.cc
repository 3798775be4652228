// CREATE TABLE as a Table: columns, constraints, autoindexes, record layout.
#include "db/catalog/schema.h"

#include <cctype>

namespace db {
namespace {

using sql::ColumnConstraintKind;
using sql::ConflictAction;

Error failure(std::string message) {
  return Error(rc::kError, std::move(message));
}

struct KeyColumn {
  int column;
  std::string collation;
  bool descending;
};

// The value of a constant default; rows from before ALTER TABLE ADD COLUMN have it.
Value literal_value(const sql::Expr* expr) {
  if (const auto* unary = expr->is<sql::UnaryExpr>()) {
    Value value = literal_value(unary->operand);
    if (unary->op != sql::UnaryOp::kNegate) return value;
    if (value.is_integer())
      return Value::integer(static_cast<i64>(~static_cast<u64>(value.raw_integer()) + 1));
    return Value::real(-value.to_real());
  }
  if (const auto* name = expr->is<sql::ColumnExpr>(); name != nullptr && !name->table.present()) {
    if (name->column.quote == sql::Quote::kNone && equal_nocase(name->column.text, "true"))
      return Value::integer(1);
    if (name->column.quote == sql::Quote::kNone && equal_nocase(name->column.text, "false"))
      return Value::integer(0);
    return Value::text(name->column.text);
  }
  const auto* literal = expr->is<sql::LiteralExpr>();
  if (literal == nullptr) return Value();
  switch (literal->type) {
    case sql::LiteralType::kInteger:
      return Value::integer(literal->integer);
    case sql::LiteralType::kReal:
      return Value::real(literal->real);
    case sql::LiteralType::kText:
      return Value::text(literal->text);
    case sql::LiteralType::kBlob:
      return Value::blob(literal->text);
    case sql::LiteralType::kNull:
      break;
  }
  return Value();
}

class TableBuilder {
 public:
  TableBuilder(const sql::CreateTableStatement& statement, std::string_view sql_text)
      : statement_(statement), sql_(sql_text), table_(std::make_shared<Table>()) {}

  Result<std::shared_ptr<Table>> build() {
    table_->name = statement_.name.text;
    table_->strict = statement_.strict;
    table_->without_rowid = statement_.without_rowid;
    for (const sql::ColumnDef* def : statement_.columns) TRY(add_column(*def));
    for (const sql::TableConstraint* constraint : statement_.constraints) {
      TRY(add_constraint(*constraint));
    }
    if (table_->without_rowid) {
      TRY(make_without_rowid());
    }
    if (table_->has_generated) {
      bool any_real = false;
      for (const Column& column : table_->columns) any_real |= column.generated == Generated::kNo;
      if (!any_real) return failure("must have at least one non-generated column");
    }
    lay_out_record();
    for (auto& index : table_->indexes) append_locator_columns(*index);
    return table_;
  }

 private:
  Status add_column(const sql::ColumnDef& def) {
    std::string name(def.name.text);
    if (table_->find_column(name) >= 0) return failure("duplicate column name: " + name);
    Column column;
    column.name = name;
    column.declared_type = def.type;
    column.affinity = affinity_of_type(def.type);
    table_->columns.push_back(std::move(column));
    if (table_->strict) TRY(set_strict_type(table_->columns.back()));
    int at = static_cast<int>(table_->columns.size()) - 1;
    // COLLATE first: UNIQUE and PRIMARY KEY before it in the text use it too.
    for (const sql::ColumnConstraint* c : def.constraints) {
      if (c->kind == ColumnConstraintKind::kCollate) {
        table_->columns.back().collation = c->collation.text;
      }
    }
    for (const sql::ColumnConstraint* c : def.constraints) TRY(add_column_constraint(at, *c));
    return {};
  }

  Status set_strict_type(Column& column) {
    std::string where = table_->name + "." + column.name;
    if (column.declared_type.empty()) return failure("missing datatype for " + where);
    static constexpr struct {
      const char* name;
      StrictType type;
      Affinity affinity;
    } kTypes[] = {{"ANY", StrictType::kAny, Affinity::kBlob},
                  {"BLOB", StrictType::kBlob, Affinity::kBlob},
                  {"INT", StrictType::kInteger, Affinity::kInteger},
                  {"INTEGER", StrictType::kInteger, Affinity::kInteger},
                  {"REAL", StrictType::kReal, Affinity::kReal},
                  {"TEXT", StrictType::kText, Affinity::kText}};
    for (const auto& type : kTypes) {
      if (!equal_nocase(type.name, column.declared_type)) continue;
      column.strict = type.type;
      column.affinity = type.affinity;
      return {};
    }
    return failure("unknown datatype for " + where + ": \"" + column.declared_type + "\"");
  }

  Status add_column_constraint(int at, const sql::ColumnConstraint& c) {
    Column& column = table_->columns[static_cast<size_t>(at)];
    switch (c.kind) {
      case ColumnConstraintKind::kPrimaryKey:
        return add_primary_key({{at, column.collation, c.order == sql::SortOrder::kDesc}},
                               c.conflict, c.autoincrement, c.order == sql::SortOrder::kDesc);
      case ColumnConstraintKind::kNotNull:
        column.not_null = true;
        column.not_null_conflict = c.conflict;
        return {};
      case ColumnConstraintKind::kUnique:
        add_autoindex({{at, column.collation, false}}, c.conflict, 'u');
        return {};
      case ColumnConstraintKind::kCheck:
        table_->checks.push_back({std::string(c.name.text), c.expr, std::string(c.text.in(sql_))});
        return {};
      case ColumnConstraintKind::kDefault:
        if (column.generated != Generated::kNo) {
          return failure("cannot use DEFAULT on a generated column");
        }
        column.default_expr = c.expr;
        column.default_text = c.text.in(sql_);
        column.has_default = true;
        column.added_default = literal_value(c.expr);
        apply_affinity(column.added_default, column.affinity);
        return {};
      case ColumnConstraintKind::kReferences:
        return add_foreign_key({at}, *c.reference);
      case ColumnConstraintKind::kGenerated:
        return add_generated(column, c);
      case ColumnConstraintKind::kNull:
      case ColumnConstraintKind::kCollate:
        return {};
    }
    return {};
  }

  Status add_generated(Column& column, const sql::ColumnConstraint& c) {
    if (column.has_default) return failure("cannot use DEFAULT on a generated column");
    if (column.primary_key > 0) {
      return failure("generated columns cannot be part of the PRIMARY KEY");
    }
    column.generated = c.stored ? Generated::kStored : Generated::kVirtual;
    column.generated_expr = c.expr;
    table_->has_generated = true;
    if (!c.stored) table_->has_virtual_columns = true;
    return {};
  }

  Status add_primary_key(std::vector<KeyColumn> columns, ConflictAction conflict,
                         bool autoincrement, bool column_desc) {
    if (has_primary_) {
      return failure("table \"" + table_->name + "\" has more than one primary key");
    }
    has_primary_ = true;
    int place = 0;
    for (const KeyColumn& key : columns) {
      Column& column = table_->columns[static_cast<size_t>(key.column)];
      if (column.generated != Generated::kNo) {
        return failure("generated columns cannot be part of the PRIMARY KEY");
      }
      ++place;
      if (column.primary_key == 0) column.primary_key = place;
    }
    Column& first = table_->columns[static_cast<size_t>(columns[0].column)];
    bool rowid_alias =
        columns.size() == 1 && !column_desc && equal_nocase(first.declared_type, "INTEGER");
    if (rowid_alias && !table_->without_rowid) {
      table_->rowid_column = columns[0].column;
      table_->rowid_conflict = conflict;
      table_->autoincrement = autoincrement;
      return {};
    }
    if (autoincrement) {
      if (table_->without_rowid)
        return failure("AUTOINCREMENT not allowed on WITHOUT ROWID tables");
      return failure("AUTOINCREMENT is only allowed on an INTEGER PRIMARY KEY");
    }
    add_autoindex(std::move(columns), conflict, 'p');
    return {};
  }

  Result<KeyColumn> key_column(const sql::OrderTerm& term) {
    const sql::Expr* expr = term.expr;
    std::string collation;
    bool collated = false;
    if (const auto* collate = expr->is<sql::CollateExpr>()) {
      collation = collate->collation.text;
      collated = true;
      expr = collate->value;
    }
    std::string_view name;
    if (const auto* column = expr->is<sql::ColumnExpr>()) {
      name = column->column.text;
    } else if (const auto* literal = expr->is<sql::LiteralExpr>();
               literal != nullptr && literal->type == sql::LiteralType::kText) {
      name = literal->text;
    } else {
      return failure("expressions prohibited in PRIMARY KEY and UNIQUE constraints");
    }
    int at = table_->find_column(name);
    if (at < 0) {
      return failure("no such column: " + std::string(name)).at(static_cast<int>(expr->span.begin));
    }
    if (!collated) collation = table_->columns[static_cast<size_t>(at)].collation;
    return KeyColumn{at, collation, term.descending()};
  }

  Status add_constraint(const sql::TableConstraint& c) {
    switch (c.kind) {
      case sql::TableConstraintKind::kPrimaryKey:
      case sql::TableConstraintKind::kUnique: {
        std::vector<KeyColumn> columns;
        for (const sql::OrderTerm& term : c.columns) columns.push_back(TRY(key_column(term)));
        if (c.kind == sql::TableConstraintKind::kPrimaryKey) {
          return add_primary_key(std::move(columns), c.conflict, c.autoincrement, false);
        }
        add_autoindex(std::move(columns), c.conflict, 'u');
        return {};
      }
      case sql::TableConstraintKind::kCheck:
        table_->checks.push_back({std::string(c.name.text), c.expr, std::string(c.text.in(sql_))});
        return {};
      case sql::TableConstraintKind::kForeignKey: {
        std::vector<int> columns;
        for (const sql::Name& name : c.key) {
          int at = table_->find_column(name.text);
          if (at < 0) {
            return failure("unknown column \"" + std::string(name.text) +
                           "\" in foreign key definition");
          }
          columns.push_back(at);
        }
        if (!c.reference->columns.empty() && c.reference->columns.size() != columns.size()) {
          return failure(
              "number of columns in foreign key does not match the number of columns in the "
              "referenced table");
        }
        return add_foreign_key(std::move(columns), *c.reference);
      }
    }
    return {};
  }

  Status add_foreign_key(std::vector<int> columns, const sql::ForeignReference& reference) {
    if (columns.size() == 1 && reference.columns.size() > 1) {
      return failure("foreign key on " + table_->columns[static_cast<size_t>(columns[0])].name +
                     " should reference only one column of table " +
                     std::string(reference.table.text))
          .at(static_cast<int>(reference.table.span.begin));
    }
    ForeignKey key;
    key.columns = std::move(columns);
    key.parent = reference.table.text;
    for (const sql::Name& name : reference.columns) key.parent_columns.emplace_back(name.text);
    key.on_delete = reference.on_delete;
    key.on_update = reference.on_update;
    key.deferred = reference.initially_deferred;
    table_->foreign_keys.push_back(std::move(key));
    return {};
  }

  void add_autoindex(std::vector<KeyColumn> columns, ConflictAction conflict, char origin) {
    for (auto& other : table_->indexes) {
      if (other->key_columns != static_cast<int>(columns.size())) continue;
      bool same = true;
      for (size_t i = 0; i < columns.size(); ++i) {
        same &= other->columns[i].column == columns[i].column &&
                equal_nocase(
                    other->columns[i].collation.empty() ? "BINARY" : other->columns[i].collation,
                    columns[i].collation.empty() ? "BINARY" : columns[i].collation);
      }
      if (!same) continue;
      if (other->conflict == ConflictAction::kDefault) other->conflict = conflict;
      if (origin == 'p') other->origin = 'p';
      return;
    }
    auto index = std::make_shared<Index>();
    index->table = table_.get();
    index->unique = true;
    index->origin = origin;
    index->conflict = conflict;
    index->key_columns = static_cast<int>(columns.size());
    index->name =
        "sqlite_autoindex_" + table_->name + "_" + std::to_string(table_->indexes.size() + 1);
    for (KeyColumn& key : columns) {
      index->columns.push_back({key.column, nullptr, std::move(key.collation), key.descending});
    }
    table_->indexes.push_back(std::move(index));
  }

  Status make_without_rowid() {
    if (!has_primary_) return failure("PRIMARY KEY missing on table " + table_->name);
    for (auto& index : table_->indexes) {
      if (index->origin == 'p') table_->primary = index.get();
    }
    for (Column& column : table_->columns) {
      if (column.primary_key > 0) column.not_null = true;
    }
    // A column named twice in the key counts once.
    Index& primary = *table_->primary;
    std::vector<IndexColumn> unique;
    for (IndexColumn& column : primary.columns) {
      bool seen = false;
      for (const IndexColumn& earlier : unique) {
        seen |=
            earlier.column == column.column && equal_nocase(earlier.collation, column.collation);
      }
      if (!seen) unique.push_back(column);
    }
    primary.columns = std::move(unique);
    primary.key_columns = static_cast<int>(primary.columns.size());
    return {};
  }

  void lay_out_record() {
    int at = 0;
    auto place = [&](int column) {
      table_->columns[static_cast<size_t>(column)].record_at = at++;
      table_->record_columns.push_back(column);
    };
    int count = static_cast<int>(table_->columns.size());
    std::vector<bool> done(static_cast<size_t>(count));
    if (table_->without_rowid) {
      for (const IndexColumn& column : table_->primary->columns) {
        if (done[static_cast<size_t>(column.column)]) {
          ++at;  // the key holds this column twice, under two collations
          table_->record_columns.push_back(column.column);
          continue;
        }
        done[static_cast<size_t>(column.column)] = true;
        place(column.column);
      }
    }
    for (int i = 0; i < count; ++i) {
      if (done[static_cast<size_t>(i)]) continue;
      if (table_->columns[static_cast<size_t>(i)].generated == Generated::kVirtual) {
        table_->columns[static_cast<size_t>(i)].record_at = -1;
        continue;
      }
      place(i);
    }
    table_->stored_columns = at;
  }

  const sql::CreateTableStatement& statement_;
  std::string_view sql_;
  std::shared_ptr<Table> table_;
  bool has_primary_ = false;
};

}  // namespace

void append_locator_columns(Index& index) {
  Table& table = *index.table;
  if (!table.without_rowid) {
    index.columns.push_back({kRowid, nullptr, "", false});
    return;
  }
  if (table.primary == &index) {
    for (int column : table.record_columns) {
      bool in_key = false;
      for (const IndexColumn& key : index.columns) in_key |= key.column == column;
      if (!in_key) index.columns.push_back({column, nullptr, "", false});
    }
    return;
  }
  for (int i = 0; i < table.primary->key_columns; ++i) {
    const IndexColumn& key = table.primary->columns[static_cast<size_t>(i)];
    bool present = false;
    for (const IndexColumn& column : index.columns) {
      present |= column.column == key.column && equal_nocase(column.collation, key.collation);
    }
    if (!present) index.columns.push_back({key.column, nullptr, key.collation, false});
  }
}

Result<std::shared_ptr<Table>> build_table(const sql::CreateTableStatement& statement,
                                           std::string_view sql_text) {
  return TableBuilder(statement, sql_text).build();
}

Result<std::shared_ptr<Index>> build_index(const sql::CreateIndexStatement& statement,
                                           Table& table) {
  auto index = std::make_shared<Index>();
  index->name = statement.name.text;
  index->table = &table;
  index->unique = statement.unique;
  index->where = statement.where;
  for (const sql::OrderTerm& term : statement.columns) {
    const sql::Expr* expr = term.expr;
    IndexColumn column;
    column.descending = term.descending();
    bool collated = false;
    if (const auto* collate = expr->is<sql::CollateExpr>()) {
      column.collation = collate->collation.text;
      collated = true;
      expr = collate->value;
    }
    std::string_view name;
    if (const auto* reference = expr->is<sql::ColumnExpr>();
        reference != nullptr && !reference->table.present()) {
      name = reference->column.text;
    } else if (const auto* literal = expr->is<sql::LiteralExpr>();
               literal != nullptr && literal->type == sql::LiteralType::kText) {
      name = literal->text;
    }
    int at = name.empty() ? -1 : table.find_column(name);
    if (!name.empty() && at < 0 && is_rowid_name(name) && !table.without_rowid) {
      column.column = kExpression;
      column.expr = term.expr;
    } else if (!name.empty() && at < 0 && expr->kind == sql::ExprKind::kColumn &&
               expr->as<sql::ColumnExpr>()->column.quote != sql::Quote::kDouble) {
      return failure("no such column: " + std::string(name)).at(static_cast<int>(expr->span.begin));
    } else if (at >= 0) {
      column.column = at == table.rowid_column ? kRowid : at;
      if (!collated) column.collation = table.columns[static_cast<size_t>(at)].collation;
    } else {
      column.column = kExpression;
      column.expr = term.expr;
    }
    index->columns.push_back(std::move(column));
  }
  index->key_columns = static_cast<int>(index->columns.size());
  append_locator_columns(*index);
  return index;
}

}  // namespace db
