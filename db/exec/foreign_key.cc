#include "db/exec/foreign_key.h"

#include "db/exec/execution.h"
#include "db/exec/table_cursor.h"
#include "db/sql/parser.h"

namespace db {
namespace {

std::string quoted(std::string_view name) {
  std::string out = "\"";
  for (char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

}  // namespace

bool ForeignKeys::concerns(const Table& table, Session&) {
  if (!table.foreign_keys.empty()) return true;
  for (const auto& [name, other] : table.schema->tables) {
    for (const ForeignKey& key : other->foreign_keys) {
      if (equal_nocase(key.parent, table.name)) return true;
    }
  }
  return false;
}

bool ForeignKeys::resolve(const ForeignKey& key, const Table& child, Link* link) {
  link->key = &key;
  link->child = &child;
  link->parent = child.schema->find_table(key.parent);
  link->parent_columns.clear();
  if (link->parent == nullptr) return true;
  const Table& parent = *link->parent;
  auto mismatch = [&] {
    cx_.fail(rc::kError,
             "foreign key mismatch - " + quoted(child.name) + " referencing " + quoted(key.parent));
    return false;
  };
  if (key.parent_columns.empty()) {
    std::vector<int> primary;
    for (int place = 1;; ++place) {
      int found = -1;
      for (size_t i = 0; i < parent.columns.size(); ++i) {
        if (parent.columns[i].primary_key == place) found = static_cast<int>(i);
      }
      if (found < 0) break;
      primary.push_back(found);
    }
    if (primary.size() != key.columns.size()) return mismatch();
    link->parent_columns = primary;
    return true;
  }
  for (const std::string& name : key.parent_columns) {
    int at = parent.find_column(name);
    if (at < 0) return mismatch();
    link->parent_columns.push_back(at);
  }
  if (link->parent_columns.size() == 1 && link->parent_columns[0] == parent.rowid_column)
    return true;
  for (const auto& index : parent.indexes) {
    if (!index->unique || index->where != nullptr ||
        index->key_columns != static_cast<int>(link->parent_columns.size())) {
      continue;
    }
    bool all = true;
    for (int column : link->parent_columns) {
      bool found = false;
      for (int i = 0; i < index->key_columns; ++i) {
        found |= index->columns[static_cast<size_t>(i)].column == column;
      }
      all &= found;
    }
    if (all) return true;
  }
  return mismatch();
}

std::vector<ForeignKeys::Link> ForeignKeys::links_to_parent() {
  std::vector<Link> links;
  for (const ForeignKey& key : table_.foreign_keys) {
    Link link;
    if (!resolve(key, table_, &link)) break;
    links.push_back(std::move(link));
  }
  return links;
}

std::vector<ForeignKeys::Link> ForeignKeys::links_from_children() {
  std::vector<Link> links;
  for (const auto& [name, child] : table_.schema->tables) {
    for (const ForeignKey& key : child->foreign_keys) {
      if (!equal_nocase(key.parent, table_.name)) continue;
      Link link;
      if (!resolve(key, *child, &link)) return links;
      links.push_back(std::move(link));
    }
  }
  return links;
}

void ForeignKeys::add_violation(const ForeignKey& key, i64 count) {
  if (key.deferred || cx_.session.defer_foreign_keys) {
    cx_.session.deferred_violations += count;
  } else {
    open_violations += count;
  }
}

// A query on the session's own engine: the rows of `table` whose columns equal the values.
namespace {

struct Query {
  Program program;
  std::unique_ptr<Binder> binder;
  std::string text;
  sql::Arena arena;
};

bool run_sql(Cx& outer, const std::string& text, const std::vector<Value>& params,
             const std::function<bool(Value*)>& visit) {
  Query query;
  query.text = text;
  sql::Parsed parsed = sql::parse(query.text, query.arena);
  if (parsed.failed) {
    outer.fail(rc::kError, parsed.error);
    return false;
  }
  query.binder = std::make_unique<Binder>(outer.session, query.program.arena);
  query.binder->sql = query.text;
  if (!compile_into(*query.binder, nullptr, parsed.statement, &query.program.select,
                    &query.program.dml)) {
    outer.fail(query.binder->error());
    return false;
  }
  query.program.take_counts(*query.binder);
  Cx cx(outer.session);
  query.program.fit(cx);
  cx.parameters = params.data();
  cx.parameter_count = static_cast<int>(params.size());
  std::unique_ptr<Execution> execution = query.program.select != nullptr
                                             ? make_select(*query.program.select, cx)
                                             : make_dml(*query.program.dml, cx);
  int code = rc::kDone;
  while ((code = execution->step(cx)) == rc::kRow) {
    if (visit && !visit(execution->row())) {
      code = rc::kDone;
      break;
    }
  }
  execution->close(cx);
  if (code == rc::kDone) return true;
  outer.raise = cx.raise;
  outer.fail(cx.code, cx.message);
  return false;
}

std::string table_name(const Table& table) {
  return quoted(table.schema->name) + "." + quoted(table.name);
}

}  // namespace

bool ForeignKeys::parent_exists(const Link& link, const Value* child_row, const Value*,
                                bool* exists) {
  *exists = true;
  std::vector<Value> values;
  for (int column : link.key->columns) {
    if (child_row[column].is_null()) return true;
    values.push_back(child_row[column]);
  }
  *exists = false;
  if (link.parent == nullptr) return true;
  // A row that refers to itself is whole at once.
  if (link.parent == link.child) {
    bool self = true;
    for (size_t i = 0; i < values.size(); ++i) {
      self = self && compare(values[i], child_row[link.parent_columns[i]]) == 0;
    }
    if (self) {
      *exists = true;
      return true;
    }
  }
  std::string text = "SELECT 1 FROM " + table_name(*link.parent) + " WHERE ";
  for (size_t i = 0; i < values.size(); ++i) {
    const Column& column = link.parent->columns[static_cast<size_t>(link.parent_columns[i])];
    apply_affinity(values[i], column.affinity);
    if (i > 0) text += " AND ";
    text += quoted(column.name) + "=?" + std::to_string(i + 1);
  }
  return run_sql(cx_, text, values, [&](Value*) {
    *exists = true;
    return false;
  });
}

bool ForeignKeys::after_insert(const Value* row) {
  for (const Link& link : links_to_parent()) {
    bool exists = false;
    if (!parent_exists(link, row, nullptr, &exists)) return false;
    if (!exists) add_violation(*link.key, 1);
  }
  // The new row may be the parent that children were waiting for.
  if (!cx_.failed() && (open_violations > 0 || cx_.session.deferred_violations > 0)) {
    for (const Link& link : links_from_children()) {
      bool mended = false;
      i64 count = 0;
      if (!for_children(link, row, [&](const std::vector<Value>&) {
            mended = true;
            ++count;
            return true;
          })) {
        return false;
      }
      if (link.child == link.parent) {
        // The row's reference to itself never counted.
        bool self = true;
        for (size_t i = 0; i < link.key->columns.size(); ++i) {
          self = self && compare(row[link.key->columns[i]], row[link.parent_columns[i]]) == 0;
        }
        if (self) --count;
      }
      if (mended && count > 0) add_violation(*link.key, -count);
    }
  }
  return !cx_.failed();
}

bool ForeignKeys::for_children(const Link& link, const Value* parent_row,
                               const std::function<bool(const std::vector<Value>&)>& visit) {
  std::string text = "SELECT 1 FROM " + table_name(*link.child) + " WHERE ";
  std::vector<Value> values;
  for (size_t i = 0; i < link.key->columns.size(); ++i) {
    if (parent_row[link.parent_columns[i]].is_null()) return true;
    values.push_back(parent_row[link.parent_columns[i]]);
    if (i > 0) text += " AND ";
    const Column& parent = link.parent->columns[static_cast<size_t>(link.parent_columns[i])];
    std::string collate = parent.collation.empty() ? "" : " COLLATE " + quoted(parent.collation);
    text += quoted(link.child->columns[static_cast<size_t>(link.key->columns[i])].name) + "=?" +
            std::to_string(i + 1) + collate;
  }
  return run_sql(cx_, text, values, [&](Value*) { return visit({}); });
}

bool ForeignKeys::apply_action(const Link& link, const Value* old_row, const Value* new_row) {
  sql::ForeignAction action = new_row != nullptr ? link.key->on_update : link.key->on_delete;
  bool any = false;
  i64 count = 0;
  if (!for_children(link, old_row, [&](const std::vector<Value>&) {
        any = true;
        ++count;
        return true;
      })) {
    return false;
  }
  if (!any) return true;
  if (action == sql::ForeignAction::kRestrict) {
    cx_.fail(rc::kConstraintTrigger, "FOREIGN KEY constraint failed");
    return false;
  }
  if (action == sql::ForeignAction::kNoAction) {
    // Another parent row, or the row itself in its new form, may serve.
    add_violation(*link.key, count);
    return true;
  }
  std::vector<Value> values;
  std::string set;
  std::string where;
  size_t width = link.key->columns.size();
  for (size_t i = 0; i < width; ++i) {
    const Column& child = link.child->columns[static_cast<size_t>(link.key->columns[i])];
    if (i > 0) {
      set += ", ";
      where += " AND ";
    }
    where += quoted(child.name) + "=?" + std::to_string(i + 1);
    values.push_back(old_row[link.parent_columns[i]]);
    set += quoted(child.name) + "=";
    if (action == sql::ForeignAction::kSetNull) {
      set += "NULL";
    } else if (action == sql::ForeignAction::kSetDefault) {
      set += child.has_default ? "(" + child.default_text + ")" : "NULL";
    } else {
      set += "?" + std::to_string(width + i + 1);
    }
  }
  std::string text;
  if (action == sql::ForeignAction::kCascade && new_row == nullptr) {
    text = "DELETE FROM " + table_name(*link.child) + " WHERE " + where;
  } else {
    if (action == sql::ForeignAction::kCascade) {
      for (size_t i = 0; i < width; ++i) values.push_back(new_row[link.parent_columns[i]]);
    }
    text = "UPDATE " + table_name(*link.child) + " SET " + set + " WHERE " + where;
  }
  if (++cx_.session.trigger_depth > cx_.session.limit(Limit::kTriggerDepth)) {
    --cx_.session.trigger_depth;
    cx_.fail(rc::kError, "too many levels of trigger recursion");
    return false;
  }
  i64 changes = cx_.session.changes;
  i64 total = cx_.session.total_changes;
  bool done = run_sql(cx_, text, values, nullptr);
  cx_.session.changes = changes;
  cx_.session.total_changes = total;
  --cx_.session.trigger_depth;
  return done;
}

bool ForeignKeys::after_delete(const Value* old_row) {
  for (const Link& link : links_from_children()) {
    if (!apply_action(link, old_row, nullptr)) return false;
  }
  // A violating child that goes away takes its violation with it.
  if (cx_.session.deferred_violations > 0 || open_violations > 0) {
    for (const Link& link : links_to_parent()) {
      bool exists = false;
      if (!parent_exists(link, old_row, nullptr, &exists)) return false;
      if (!exists) add_violation(*link.key, -1);
    }
  }
  return !cx_.failed();
}

bool ForeignKeys::after_update(const Value* old_row, const Value* row) {
  for (const Link& link : links_from_children()) {
    bool changed = false;
    for (int column : link.parent_columns) {
      const Column& definition = table_.columns[static_cast<size_t>(column)];
      const Collation* collation = cx_.session.collation(definition.collation);
      changed |=
          compare(old_row[column], row[column], collation != nullptr ? collation : &kBinary) != 0;
    }
    if (changed && !apply_action(link, old_row, row)) return false;
  }
  for (const Link& link : links_to_parent()) {
    bool changed = false;
    for (int column : link.key->columns) changed |= compare(old_row[column], row[column]) != 0;
    if (!changed) continue;
    bool exists = false;
    if (cx_.session.deferred_violations > 0 || open_violations > 0) {
      if (!parent_exists(link, old_row, nullptr, &exists)) return false;
      if (!exists) add_violation(*link.key, -1);
    }
    if (!parent_exists(link, row, nullptr, &exists)) return false;
    if (!exists) add_violation(*link.key, 1);
  }
  return !cx_.failed();
}

bool ForeignKeys::finish() {
  if (cx_.failed()) return false;
  if (open_violations <= 0) return true;
  cx_.fail(rc::kConstraintForeignKey, "FOREIGN KEY constraint failed");
  return false;
}

}  // namespace db
