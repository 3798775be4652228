#include "db/exec/trigger_run.h"

#include "db/exec/eval.h"
#include "db/exec/table_cursor.h"
#include "db/plan/dml_binder.h"

namespace db {

struct TriggerRunner::Compiled {
  std::shared_ptr<Trigger> trigger;
  Program program;
  std::unique_ptr<Binder> binder;
  std::unique_ptr<Cx> cx;
  Expr* when = nullptr;
  int new_slot = -1, old_slot = -1;
  struct Step {
    RowPlan* select = nullptr;
    DmlPlan* dml = nullptr;
    std::unique_ptr<Execution> execution;
  };
  std::vector<Step> steps;
};

TriggerRunner::TriggerRunner(const Table& table, Cx& cx) : table_(table), outer_(cx) {}
TriggerRunner::~TriggerRunner() = default;

namespace {

bool concerns(const sql::CreateTriggerStatement& trigger, const Table& table,
              const List<int>* changed) {
  if (!trigger.has_update_of || changed == nullptr) return true;
  for (const sql::Name& name : trigger.update_of) {
    int at = table.find_column(name.text);
    for (int column : *changed) {
      if (column == at) return true;
      if (column == kRowid && at == table.rowid_column && at >= 0) return true;
    }
  }
  return false;
}

std::vector<std::shared_ptr<Trigger>> triggers_of(const Table& table, const Session& session) {
  std::vector<std::shared_ptr<Trigger>> triggers(table.triggers.begin(), table.triggers.end());
  Schema& temp = session.databases[1]->schema;
  if (table.schema != &temp) {
    for (const auto& [name, trigger] : temp.triggers) {
      if (equal_nocase(trigger->table, table.name)) triggers.push_back(trigger);
    }
  }
  return triggers;
}

}  // namespace

Status TriggerRunner::check(Session& session, const DmlPlan& dml,
                            std::vector<const Trigger*>& seen) {
  const WritePlan& write = *dml.write;
  if (!write.has_insert_triggers && !write.has_update_triggers && !write.has_delete_triggers)
    return {};
  if (!session.config_on(DbConfig::kEnableTrigger)) return {};
  bool updates = dml.kind == sql::StatementKind::kUpdate || !dml.upserts.empty();
  Cx cx(session);
  TriggerRunner runner(*write.table, cx);
  for (const auto& trigger : triggers_of(*write.table, session)) {
    sql::TriggerEvent event = trigger->statement->event;
    bool fires = event == sql::TriggerEvent::kInsert   ? dml.kind == sql::StatementKind::kInsert
                 : event == sql::TriggerEvent::kDelete ? dml.kind == sql::StatementKind::kDelete
                                                       : updates;
    const List<int>* changed = dml.kind == sql::StatementKind::kUpdate ? &dml.columns : nullptr;
    if (!fires || !concerns(*trigger->statement, *write.table, changed)) continue;
    if (std::find(seen.begin(), seen.end(), trigger.get()) != seen.end()) continue;
    seen.push_back(trigger.get());
    Compiled* compiled = runner.compile(trigger);
    if (compiled == nullptr) return Error(cx.code, cx.message);
    for (const Compiled::Step& step : compiled->steps) {
      if (step.dml != nullptr) TRY(check(session, *step.dml, seen));
    }
  }
  return {};
}

bool TriggerRunner::fire(sql::TriggerEvent event, sql::TriggerTime time, const Value* old_row,
                         const Value* new_row, const List<int>* changed,
                         sql::ConflictAction conflict, bool* skip) {
  if (!outer_.session.config_on(DbConfig::kEnableTrigger)) return true;
  std::vector<std::shared_ptr<Trigger>> triggers = triggers_of(table_, outer_.session);
  // The newest trigger fires first.
  for (size_t i = triggers.size(); i-- > 0;) {
    const sql::CreateTriggerStatement& statement = *triggers[i]->statement;
    if (statement.event != event || statement.time != time) continue;
    if (!concerns(statement, table_, changed)) continue;
    auto& active = outer_.session.active_triggers;
    if (!outer_.session.recursive_triggers &&
        std::find(active.begin(), active.end(), triggers[i].get()) != active.end()) {
      continue;
    }
    Compiled* compiled = nullptr;
    for (auto& one : compiled_) {
      if (one->trigger == triggers[i]) compiled = one.get();
    }
    if (compiled == nullptr) compiled = compile(triggers[i]);
    if (compiled == nullptr) return false;
    if (!run(*compiled, old_row, new_row, conflict, skip)) return false;
    if (*skip) return true;
  }
  return true;
}

TriggerRunner::Compiled* TriggerRunner::compile(std::shared_ptr<Trigger> trigger) {
  auto made = std::make_unique<Compiled>();
  made->trigger = trigger;
  made->binder = std::make_unique<Binder>(outer_.session, made->program.arena);
  Binder& binder = *made->binder;
  binder.sql = trigger->definition->sql;
  binder.in_trigger = true;
  binder.from_schema = true;
  bool temporary = outer_.session.databases[1]->schema.find_trigger(trigger->name) == trigger.get();
  binder.home = temporary ? nullptr : table_.schema;
  binder.auth_trigger = trigger->name;
  const sql::CreateTriggerStatement& statement = *trigger->statement;
  Scope* scope = binder.new_scope(nullptr);
  auto add_row = [&](const char* alias) {
    int slot = binder.new_slot();
    scope->sources.push_back(binder.table_source(&table_, slot, alias));
    scope->sources.back().row_based = true;
    scope->sources.back().qualified_only = true;
    return slot;
  };
  if (statement.event != sql::TriggerEvent::kDelete) made->new_slot = add_row("new");
  if (statement.event != sql::TriggerEvent::kInsert) made->old_slot = add_row("old");
  if (statement.when != nullptr) made->when = binder.bind(statement.when, scope);
  for (const sql::Statement* one : statement.steps) {
    if (binder.failed()) break;
    Compiled::Step step;
    compile_into(binder, scope, one, &step.select, &step.dml);
    made->steps.push_back(std::move(step));
  }
  if (binder.failed()) {
    outer_.fail(binder.error());
    return nullptr;
  }
  made->program.take_counts(binder);
  made->cx = std::make_unique<Cx>(outer_.session);
  made->program.fit(*made->cx);
  compiled_.push_back(std::move(made));
  return compiled_.back().get();
}

bool TriggerRunner::run(Compiled& compiled, const Value* old_row, const Value* new_row,
                        sql::ConflictAction conflict, bool* skip) {
  Cx& cx = *compiled.cx;
  Session& session = outer_.session;
  cx.reset();
  auto show = [&](int slot, const Value* row) {
    if (slot < 0) return;
    cx.slots[static_cast<size_t>(slot)].row = const_cast<Value*>(row);
  };
  show(compiled.new_slot, new_row);
  show(compiled.old_slot, old_row);
  if (compiled.when != nullptr && eval_truth(compiled.when, cx) != 1) {
    if (cx.failed()) outer_.fail(cx.code, cx.message);
    return !cx.failed();
  }
  if (++session.trigger_depth > session.limit(Limit::kTriggerDepth)) {
    --session.trigger_depth;
    outer_.fail(rc::kError, "too many levels of trigger recursion");
    return false;
  }
  session.active_triggers.push_back(compiled.trigger.get());
  i64 saved_changes = session.changes;
  i64 saved_rowid = session.last_insert_rowid;
  int code = rc::kDone;
  for (Compiled::Step& step : compiled.steps) {
    // Answers of subqueries belong to one step.
    for (SubqueryState& state : cx.subqueries) state.valid = false;
    if (step.execution == nullptr) {
      step.execution =
          step.select != nullptr ? make_select(*step.select, cx) : make_dml(*step.dml, cx);
    }
    step.execution->conflict_override = conflict;
    do {
      code = step.execution->step(cx);
    } while (code == rc::kRow);
    if (code != rc::kDone) failed_action = step.execution->failed_action();
    step.execution->close(cx);
    if (code != rc::kDone) break;
    if (step.dml != nullptr) session.changes = step.execution->changes;
  }
  --session.trigger_depth;
  session.active_triggers.pop_back();
  session.changes = saved_changes;
  session.last_insert_rowid = saved_rowid;
  if (code == rc::kDone) return true;
  if (cx.raised_ignore) {
    *skip = true;
    return true;
  }
  if (cx.raise != sql::ConflictAction::kDefault) failed_action = cx.raise;
  outer_.raise = cx.raise;
  outer_.fail(cx.code, cx.message);
  return false;
}

}  // namespace db
