// INSERT, UPDATE, DELETE, at top level and as steps of a trigger.
#include "db/sql/parser_impl.h"

namespace db::sql {

ConflictAction Parser::or_conflict() {
  return accept(T::kOr) ? resolve_type() : ConflictAction::kDefault;
}

ConflictAction Parser::resolve_type() {
  if (accept(T::kRollback)) return ConflictAction::kRollback;
  if (accept(T::kAbort)) return ConflictAction::kAbort;
  if (accept(T::kFail)) return ConflictAction::kFail;
  if (accept(T::kIgnore)) return ConflictAction::kIgnore;
  expect(T::kReplace);
  return ConflictAction::kReplace;
}

// xfullname at top level; in a trigger only a bare table name.
void Parser::target_table(TargetTable& table, bool in_trigger) {
  nm_dbnm(table.schema, table.name);
  if (in_trigger && table.schema.present()) {
    fail_when_accepted(
        "qualified table names are not allowed on INSERT, UPDATE, and DELETE statements within "
        "triggers");
  }
  if (!in_trigger && accept(T::kAs)) table.alias = nm();
}

bool Parser::returning(bool& has_returning, List<ResultColumn>& columns) {
  if (!accept(T::kReturning)) return false;
  has_returning = true;
  columns = result_columns();
  return true;
}

List<Assignment> Parser::set_list() {
  List<Assignment> list;
  do {
    Assignment set;
    if (accept(T::kLp)) {
      set.is_row = true;
      set.columns = id_list();
      expect(T::kRp);
    } else {
      set.columns.push(arena_, nm());
    }
    expect(T::kEq);
    set.value = expr();
    if (set.is_row && !failed_) {
      const auto* row = set.value->is<RowExpr>();
      u32 values = row != nullptr ? row->items.size() : 1;
      if (set.value->kind != ExprKind::kSubquery && set.columns.size() != values) {
        fail_when_accepted(std::to_string(set.columns.size()) + " columns assigned " +
                           std::to_string(values) + " values");
      }
    }
    list.push(arena_, set);
  } while (accept(T::kComma));
  return list;
}

Statement* Parser::insert(With* with, bool in_trigger) {
  auto* node = arena_.make<InsertStatement>();
  node->with = with;
  if (accept(T::kReplace)) {
    node->conflict = ConflictAction::kReplace;
  } else {
    expect(T::kInsert);
    node->conflict = or_conflict();
  }
  expect(T::kInto);
  target_table(node->table, in_trigger);
  if (accept(T::kLp)) {
    node->has_columns = true;
    node->columns = id_list();
    expect(T::kRp);
  }
  if (!in_trigger && accept(T::kDefault)) {
    expect(T::kValues);
    returning(node->has_returning, node->returning);
    return node;
  }
  node->select = select();
  upserts(node);
  if (in_trigger && node->has_returning) fail_when_accepted("cannot use RETURNING in a trigger");
  return node;
}

void Parser::upserts(InsertStatement* insert) {
  while (accept(T::kOn)) {
    auto* upsert = arena_.make<Upsert>();
    expect(T::kConflict);
    bool targeted = accept(T::kLp);
    if (targeted) {
      upsert->target = order_list();
      expect(T::kRp);
      if (accept(T::kWhere)) upsert->target_where = expr();
    }
    expect(T::kDo);
    if (accept(T::kNothing)) {
      upsert->do_nothing = true;
    } else {
      expect(T::kUpdate);
      expect(T::kSet);
      upsert->set = set_list();
      if (accept(T::kWhere)) upsert->where = expr();
    }
    insert->upserts.push(arena_, upsert);
    if (!targeted) break;  // it catches everything, so nothing may follow
  }
  returning(insert->has_returning, insert->returning);
}

Statement* Parser::update(With* with, bool in_trigger) {
  auto* node = arena_.make<UpdateStatement>();
  node->with = with;
  advance();
  node->conflict = or_conflict();
  target_table(node->table, in_trigger);
  if (in_trigger && (at(T::kIndexed) || at(T::kNot))) {
    indexed_by(node->table.indexed_by, node->table.not_indexed);
    fail_when_accepted(std::string("the ") +
                       (node->table.not_indexed ? "NOT INDEXED" : "INDEXED BY") +
                       " clause is not allowed on UPDATE or DELETE statements within triggers");
  }
  indexed_by(node->table.indexed_by, node->table.not_indexed);
  expect(T::kSet);
  node->set = set_list();
  node->from = from_clause();
  if (accept(T::kWhere)) node->where = expr();
  if (in_trigger) return node;
  returning(node->has_returning, node->returning);
  order_by_and_limit(node->order_by, node->limit, node->offset);
  if (!node->order_by.empty() && node->limit == nullptr)
    fail_when_accepted("ORDER BY without LIMIT on UPDATE");
  return node;
}

Statement* Parser::delete_from(With* with, bool in_trigger) {
  auto* node = arena_.make<DeleteStatement>();
  node->with = with;
  advance();
  expect(T::kFrom);
  target_table(node->table, in_trigger);
  if (in_trigger && (at(T::kIndexed) || at(T::kNot))) {
    indexed_by(node->table.indexed_by, node->table.not_indexed);
    fail_when_accepted(std::string("the ") +
                       (node->table.not_indexed ? "NOT INDEXED" : "INDEXED BY") +
                       " clause is not allowed on UPDATE or DELETE statements within triggers");
  }
  indexed_by(node->table.indexed_by, node->table.not_indexed);
  if (accept(T::kWhere)) node->where = expr();
  if (in_trigger) return node;
  returning(node->has_returning, node->returning);
  order_by_and_limit(node->order_by, node->limit, node->offset);
  if (!node->order_by.empty() && node->limit == nullptr)
    fail_when_accepted("ORDER BY without LIMIT on DELETE");
  return node;
}

}  // namespace db::sql
