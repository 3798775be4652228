#include "db/catalog/virtual_transaction.h"
#include "db/engine/schema_store.h"
#include "db/engine/statement_state.h"
#include "db/engine/transaction.h"
#include "db/exec/explain.h"
#include "db/exec/explain_code.h"
#include "db/exec/trigger_run.h"
#include "db/functions/builtins.h"

#include <chrono>
#include <new>

namespace db {

// Nothing that gathers rows.
static bool is_light(const RowPlan* plan) {
  if (plan == nullptr || plan->kind == RowKind::kValues) return true;
  return plan->kind == RowKind::kCore && plan->aggregate == nullptr && plan->window == nullptr &&
         !plan->distinct && plan->order.empty() && plan->join->levels.size() == 1;
}

Statement::Statement(std::unique_ptr<State> state) : state_(std::move(state)) {
  state_->self = this;
}

Statement::~Statement() {
  reset();
  state_->connection.forget(this);
}

void Statement::State::drop_execution() {
  if (running) finish(rc::kDone);
  execution.reset();
  cx.reset();
  version = ~u64{0};
}

Status Statement::State::compile() {
  execution.reset();
  cx.reset();
  command_columns.clear();
  TRY(load_all_schemas(session));
  version = session.plan_version();
  auto fresh = std::make_unique<Program>();
  bool is_query = statement->kind <= sql::StatementKind::kDelete;
  if (!is_query) {
    program = std::move(fresh);
    Command command{session, statement, sql, parameters, true};
    command_columns = db::command_columns(command);
    is_writer = command_writes(*statement);
    return check_command(command);
  }
  Binder binder(session, fresh->arena);
  binder.sql = sql;
  if (!compile_into(binder, nullptr, statement, &fresh->select, &fresh->dml)) return binder.error();
  for (const Table* table : binder.tables_used) reusable &= table->kind != TableKind::kVirtual;
  reusable &= !session.hooks.authorizer;
  fresh->take_counts(binder);
  if (fresh->dml != nullptr) {
    std::vector<const Trigger*> seen;
    TRY(TriggerRunner::check(session, *fresh->dml, seen));
    fresh->write_database = fresh->dml->write->database;
    is_writer = true;
  }
  program = std::move(fresh);
  return {};
}

bool Statement::State::retire() {
  if (!reusable || running || program == nullptr || version != session.plan_version()) return false;
  // Operators that may hold rows, and functions with a memory, start afresh.
  const bool light =
      program->subqueries == 0 && program->states == 0 && program->recursives == 0 &&
      is_light(program->select) &&
      (program->dml == nullptr || (is_light(program->dml->source) && is_light(program->dml->scan)));
  if (!light) {
    execution.reset();
    cx.reset();
  }
  for (Value& value : parameters) value.set_null();
  row.clear();
  constexpr size_t kKeptBytes = 4096;
  if (row_bytes.size() > kKeptBytes) row_bytes = {};
  counters.fill(0);
  hides_parameters = false;
  latest = 0;
  return true;
}

int Statement::State::fail(int code, std::string text, int offset) {
  connection.set_error(code, std::move(text), offset);
  latest = code;
  return code;
}

// Takes locks, checks that the plan is still good, builds the operators.
int Statement::State::start() {
  if (session.running_readers + session.running_writers == 0) session.interrupted = false;
  for (int attempt = 0;; ++attempt) {
    if (version != session.plan_version()) {
      Status compiled = compile();
      if (!compiled.ok()) {
        Error error = compiled.error();
        (void)settle(session);
        return fail(error.code(), error.message(), error.offset());
      }
    }
    bool current = true;
    const bool is_query = statement->kind <= sql::StatementKind::kDelete;
    for (size_t i = 0; is_query && i < program->databases.size(); ++i) {
      const int at = program->databases[i];
      bool writes = at == program->write_database && statement->explain == sql::Explain::kNone;
      Status begun = writes ? begin_write(session, at) : begin_read(session, at);
      if (!begun.ok()) {
        Error error = begun.error();
        (void)settle(session);
        return fail(error.code(), error.message());
      }
      if (!schema_is_current(*session.databases[static_cast<size_t>(at)])) {
        Status loaded = load_schema(session, at);
        if (!loaded.ok()) return fail(loaded.error().code(), loaded.error().message());
        current = false;
      }
    }
    if (current && version == session.plan_version()) break;
    if (attempt > 10) return fail(rc::kSchema, "database schema has changed");
    version = ~u64{0};
  }
  running = true;
  if (is_writer) {
    ++session.running_writers;
  } else {
    ++session.running_readers;
  }
  savepoint = -1;
  if (program->dml != nullptr && statement->explain == sql::Explain::kNone) {
    Store& store = *session.databases[static_cast<size_t>(program->write_database)]->store;
    bool alone = session.autocommit && session.running_writers == 1;
    if (store.state() == TransactionState::kWrite &&
        (!alone || program->dml->conflict != sql::ConflictAction::kDefault) &&
        needs_statement_savepoint(*program->dml, session)) {
      savepoint = store.open_savepoint();
      virtual_savepoint = next_virtual_number(session);
      ++session.statement_savepoints;
      if (Status told = savepoint_virtual(session, virtual_savepoint); !told.ok()) {
        return fail(finish(told.error().code()), told.error().message());
      }
    }
  }
  return rc::kOk;
}

void Statement::State::forget_savepoint() {
  if (savepoint >= 0) --session.statement_savepoints;
  savepoint = -1;
}

// Ends the run: undoes what a failed statement did, commits in autocommit mode.
int Statement::State::finish(int code) {
  if (!running) return code;
  running = false;
  leave_row();
  sql::ConflictAction action =
      execution != nullptr ? execution->failed_action() : sql::ConflictAction::kAbort;
  bool failed = code != rc::kDone && code != rc::kRow;
  if (execution != nullptr && cx != nullptr) {
    if (program->dml != nullptr) session.changes = execution->changes;
    execution->close(*cx);
    counters[1] += cx->full_scan_steps;
    counters[2] += cx->sorts;
    counters[3] += cx->automatic_indexes;
  }
  if (is_writer) {
    --session.running_writers;
  } else {
    --session.running_readers;
  }
  bool autocommit_write = session.autocommit && is_writer && session.running_writers == 0;
  if (failed && is_writer && action != sql::ConflictAction::kFail) {
    int primary = code & 0xff;
    bool fatal = primary == rc::kNoMem || primary == rc::kIoErr || primary == rc::kFull ||
                 primary == rc::kInterrupt;
    if (action == sql::ConflictAction::kRollback || (fatal && savepoint < 0)) {
      rollback_all(session);
    } else if (autocommit_write) {
      rollback_all(session);
    } else if (savepoint >= 0 && program->write_database >= 0) {
      Store& store = *session.databases[static_cast<size_t>(program->write_database)]->store;
      ++session.write_epoch;
      if (store.state() == TransactionState::kWrite) {
        (void)store.rollback_savepoint(savepoint);
        store.release_savepoint(savepoint);
      }
      (void)rollback_virtual_to(session, virtual_savepoint);
      (void)release_virtual(session, virtual_savepoint);
    }
    if (program->dml != nullptr) session.changes = 0;
  } else if (savepoint >= 0) {
    Store& store = *session.databases[static_cast<size_t>(program->write_database)]->store;
    if (store.state() == TransactionState::kWrite && store.savepoint_count() > savepoint) {
      store.release_savepoint(savepoint);
    }
    (void)release_virtual(session, virtual_savepoint);
  }
  forget_savepoint();
  Status settled = settle(session);
  if (!settled.ok() && !failed) return fail(settled.error().code(), settled.error().message());
  return code;
}

void Statement::State::take_row() {
  const size_t width = static_cast<size_t>(self->column_count());
  const Value* from = execution->row();
  row.resize(width);
  size_t bytes = 0;
  for (size_t i = 0; i < width; ++i) {
    row[i] = from[i];
    if (from[i].has_bytes() && !from[i].is_shared()) bytes += from[i].bytes().size() + 1;
  }
  self->row_ = row;
  if (bytes == 0) return;
  if (row_bytes.size() < bytes) row_bytes.resize(bytes);
  char* at = row_bytes.data();
  for (Value& value : row) {
    if (!value.has_bytes() || value.is_shared()) continue;
    const std::string_view source = value.bytes();
    if (!source.empty()) std::memcpy(at, source.data(), source.size());
    at[source.size()] = 0;
    const u8 subtype = value.subtype();
    value.set_borrowed(value.type(), at, source.size());
    value.set_subtype(subtype);
    at += source.size() + 1;
  }
}

// May this command, other than a query, give a text another meaning?
static bool changes_plans(const sql::Statement& statement) {
  switch (statement.kind) {
    case sql::StatementKind::kBegin:
    case sql::StatementKind::kCommit:
    case sql::StatementKind::kRollback:
    case sql::StatementKind::kSavepoint:
    case sql::StatementKind::kRelease:
      return false;
    case sql::StatementKind::kPragma:
      return statement.as<sql::PragmaStatement>()->has_value;
    default:
      return true;
  }
}

int Statement::step() {
  try {
    return run_step();
  } catch (const std::bad_alloc&) {
    return state_->out_of_memory();
  }
}

int Statement::State::out_of_memory() {
  done = true;
  leave_row();
  if (running) {
    running = false;
    (is_writer ? session.running_writers : session.running_readers) -= 1;
  }
  execution.reset();
  cx.reset();
  version = ~u64{0};
  forget_savepoint();
  session.trigger_depth = 0;
  session.active_triggers.clear();
  bool writes = !session.autocommit;
  for (auto& database : session.databases) {
    writes |= database->store != nullptr && database->store->state() == TransactionState::kWrite;
  }
  // What was being written may be half there: none of it stays.
  if (writes) rollback_all(session);
  connection.forget_schema();
  (void)settle(session);
  return fail(rc::kNoMem, "out of memory");
}

namespace {

// A command does not count as a statement that runs beside itself.
class NotCounted {
 public:
  explicit NotCounted(int* count) : count_(count) {
    if (count_ != nullptr) --*count_;
  }
  ~NotCounted() {
    if (count_ != nullptr) ++*count_;
  }
  NotCounted(const NotCounted&) = delete;
  NotCounted& operator=(const NotCounted&) = delete;

 private:
  int* count_;
};

}  // namespace

int Statement::run_step() {
  State& s = *state_;
  if (s.done) reset();
  s.leave_row();
  if (!s.running) {
    int started = s.start();
    if (started != rc::kOk) return started;
    if (s.session.hooks.trace_statement) s.session.hooks.trace_statement(*this, sql());
    if (s.statement->explain != sql::Explain::kNone) {
      s.explain_plan();
    } else if (s.program->select == nullptr && s.program->dml == nullptr) {
      Command command{s.session, s.statement, s.sql, s.parameters, false};
      bool reading_pragma = !s.is_writer && s.statement->kind == sql::StatementKind::kPragma;
      Result<CommandResult> result = [&] {
        NotCounted beside(reading_pragma ? nullptr
                          : s.is_writer  ? &s.session.running_writers
                                         : &s.session.running_readers);
        return run_command(command);
      }();
      if (changes_plans(*s.statement)) s.connection.drop_plans();
      if (!result.ok()) {
        Error error = result.error();
        int code = s.finish(error.code());
        s.done = true;
        return s.fail(code, error.message(), error.offset());
      }
      s.command_rows = std::move(result.value().rows);
      s.command_at = 0;
    } else {
      if (s.cx == nullptr) {
        s.cx = std::make_unique<Cx>(s.session);
        s.program->fit(*s.cx);
      }
      s.cx->reset();
      s.cx->parameters = s.parameters.data();
      s.cx->parameter_count = static_cast<int>(s.parameters.size());
      if (s.execution == nullptr) {
        s.execution = s.program->select != nullptr ? make_select(*s.program->select, *s.cx)
                                                   : make_dml(*s.program->dml, *s.cx);
      }
    }
  }
  if (s.session.hooks.progress && s.session.hooks.progress_steps > 0) {
    // SQLite counts instructions of its machine; a step of ours is worth about ten of them.
    constexpr int kStepsPerRow = 10;
    s.session.progress_countdown -= kStepsPerRow;
    if (s.session.progress_countdown <= 0) {
      s.session.progress_countdown = s.session.hooks.progress_steps;
      if (s.session.hooks.progress()) {
        int code = s.finish(rc::kInterrupt);
        s.done = true;
        return s.fail(code, "interrupted");
      }
    }
  }
  if (s.execution == nullptr) {
    if (s.command_at < s.command_rows.size()) {
      s.row = std::move(s.command_rows[s.command_at++]);
      for (Value& value : s.row) value.keep();
      row_ = s.row;
      s.latest = rc::kRow;
      return rc::kRow;
    }
    int code = s.finish(rc::kDone);
    s.done = true;
    if (code == rc::kDone) s.connection.clear_error();
    return s.latest = code;
  }
  int code = s.execution->step(*s.cx);
  if (code == rc::kRow) {
    s.take_row();
    s.connection.clear_error();
    if (s.session.hooks.trace_row) s.session.hooks.trace_row(*this);
    return s.latest = rc::kRow;
  }
  std::string message = s.cx->message;
  bool failed = code != rc::kDone;
  s.done = true;
  if (failed) {
    s.finish(code);
    if ((code & 0xff) == rc::kCorrupt) message = "database disk image is malformed";
    if ((code & 0xff) == rc::kFull) message = "database or disk is full";
    return s.fail(code, message);
  }
  code = s.finish(rc::kDone);
  if (code == rc::kDone) s.connection.clear_error();
  return s.latest = code;
}

int Statement::reset() {
  State& s = *state_;
  try {
    if (s.running) s.finish(rc::kDone);
  } catch (const std::bad_alloc&) {  // while it committed
    s.latest = s.out_of_memory();
  }
  s.done = false;
  s.leave_row();
  s.command_rows.clear();
  int code = s.latest == rc::kRow || s.latest == rc::kDone ? rc::kOk : s.latest;
  s.latest = 0;
  return code;
}

bool Statement::busy() const {
  return state_->running;
}
bool Statement::readonly() const {
  const State& s = *state_;
  if (s.statement->explain != sql::Explain::kNone) return true;
  if (s.statement->kind == sql::StatementKind::kPragma) {
    return !s.statement->as<sql::PragmaStatement>()->has_value;
  }
  if (s.statement->kind == sql::StatementKind::kBegin) {
    auto mode = s.statement->as<sql::BeginStatement>()->mode;
    return mode == sql::BeginMode::kDeferred || mode == sql::BeginMode::kConcurrent;
  }
  return !s.is_writer;
}
int Statement::explain() const {
  return static_cast<int>(state_->statement->explain);
}

namespace {

constexpr const char* kPlanColumns[] = {"id", "parent", "notused", "detail"};
constexpr const char* kCodeColumns[] = {"addr", "opcode", "p1", "p2", "p3", "p4", "p5", "comment"};

const RowColumn* row_column(const Program& program, int index) {
  if (program.select != nullptr && index < program.select->width) {
    return &program.select->columns[static_cast<size_t>(index)];
  }
  if (program.dml != nullptr && index < static_cast<int>(program.dml->returning_columns.size())) {
    return &program.dml->returning_columns[static_cast<size_t>(index)];
  }
  return nullptr;
}

}  // namespace

int Statement::column_count() const {
  const State& s = *state_;
  if (s.statement->explain == sql::Explain::kQueryPlan) return 4;
  if (s.statement->explain == sql::Explain::kCode) return 8;
  if (s.program->select != nullptr) return s.program->select->width;
  if (s.program->dml != nullptr) return static_cast<int>(s.program->dml->returning_columns.size());
  return static_cast<int>(s.command_columns.size());
}
std::string_view Statement::column_name(int index) const {
  const State& s = *state_;
  if (index < 0 || index >= column_count()) return {};
  if (s.statement->explain == sql::Explain::kQueryPlan) return kPlanColumns[index];
  if (s.statement->explain == sql::Explain::kCode) return kCodeColumns[index];
  const RowColumn* column = row_column(*s.program, index);
  return column != nullptr ? column->name
                           : std::string_view(s.command_columns[static_cast<size_t>(index)]);
}
std::string_view Statement::column_declared_type(int index) const {
  const RowColumn* column = row_column(*state_->program, index);
  return column == nullptr ? std::string_view() : column->declared_type;
}
std::string_view Statement::column_database(int index) const {
  const RowColumn* column = row_column(*state_->program, index);
  return column == nullptr ? std::string_view() : column->database;
}
std::string_view Statement::column_table(int index) const {
  const RowColumn* column = row_column(*state_->program, index);
  return column == nullptr ? std::string_view() : column->table;
}
std::string_view Statement::column_origin(int index) const {
  const RowColumn* column = row_column(*state_->program, index);
  return column == nullptr ? std::string_view() : column->origin;
}

int Statement::parameter_count() const {
  return state_->hides_parameters ? 0 : static_cast<int>(state_->parameters.size());
}
std::string_view Statement::parameter_name(int index) const {
  if (index < 1 || index > parameter_count()) return {};
  return state_->parameter_names[static_cast<size_t>(index) - 1];
}
int Statement::parameter_index(std::string_view name) const {
  for (int i = 1; i <= parameter_count(); ++i) {
    if (!name.empty() && parameter_name(i) == name) return i;
  }
  return 0;
}
int Statement::bind(int index, Value&& value) {
  State& s = *state_;
  if (s.running) {
    return s.fail(rc::kMisuse, "bad parameter or other API misuse");
  }
  if (index < 1 || index > parameter_count()) {
    return s.fail(rc::kRange, "column index out of range");
  }
  s.parameters[static_cast<size_t>(index) - 1] = std::move(value);
  return rc::kOk;
}
Value Statement::take_parameter(int index) {
  if (state_->running || index < 1 || index > parameter_count()) return Value();
  return std::move(state_->parameters[static_cast<size_t>(index) - 1]);
}
const Value& Statement::parameter(int index) const {
  return state_->parameters[static_cast<size_t>(index) - 1];
}
void Statement::clear_bindings() {
  if (state_->hides_parameters) return;
  for (Value& value : state_->parameters) value.set_null();
}

std::string_view Statement::sql() const {
  if (state_->hides_parameters) return state_->shown_sql;
  return std::string_view(state_->sql).substr(0, state_->tail);
}

std::string Statement::expanded_sql() const {
  const State& s = *state_;
  std::string out;
  std::string_view text = sql();
  // Parameters are found by a scan that knows strings, names and comments.
  size_t at = 0;
  int next = 1;
  auto is_word = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (static_cast<u8>(c) & 0x80) != 0;
  };
  while (at < text.size()) {
    char c = text[at];
    size_t end = at + 1;
    if (c == '\'' || c == '"' || c == '`' || c == '[') {
      char close = c == '[' ? ']' : c;
      while (end < text.size() && text[end] != close) ++end;
      if (end < text.size()) ++end;
    } else if (c == '-' && end < text.size() && text[end] == '-') {
      while (end < text.size() && text[end] != '\n') ++end;
    } else if (c == '/' && end < text.size() && text[end] == '*') {
      end = text.find("*/", at + 2);
      end = end == std::string_view::npos ? text.size() : end + 2;
    } else if (c == '?' ||
               ((c == ':' || c == '@' || c == '$') && end < text.size() && is_word(text[end]))) {
      while (end < text.size() && is_word(text[end])) ++end;
      std::string_view name = text.substr(at, end - at);
      int index = name == "?" ? next : parameter_index(name);
      if (c == '?' && name.size() > 1) index = std::atoi(std::string(name.substr(1)).c_str());
      if (index >= next) next = index + 1;
      if (index >= 1 && index <= parameter_count()) {
        out += quote_value(s.parameters[static_cast<size_t>(index) - 1]);
      } else {
        out += "NULL";
      }
      at = end;
      continue;
    } else if (is_word(c)) {
      while (end < text.size() && is_word(text[end])) ++end;
    }
    out += text.substr(at, end - at);
    at = end;
  }
  if (static_cast<i64>(out.size()) > s.session.limit(Limit::kLength)) return {};
  return out;
}

Connection& Statement::connection() const {
  return state_->connection;
}

i64 Statement::status(int counter, bool reset) {
  if (counter < 0 || counter >= static_cast<int>(state_->counters.size())) return 0;
  i64 value = state_->counters[static_cast<size_t>(counter)];
  if (reset) state_->counters[static_cast<size_t>(counter)] = 0;
  return value;
}

void Statement::State::explain_plan() {
  command_rows.clear();
  command_at = 0;
  if (statement->explain == sql::Explain::kCode) {
    bool plain = program->select == nullptr && program->dml == nullptr;
    std::string_view command = self->sql();  // behind the word EXPLAIN
    command.remove_prefix(std::min(command.size(), command.find_first_of(" \t\r\n")));
    i64 address = 0;
    for (const CodeLine& line :
         explain_code(program->select, program->dml, plain ? command : std::string_view(),
                      program->databases, program->write_database)) {
      auto text = [](const std::string& one) { return one.empty() ? Value() : Value::text(one); };
      command_rows.push_back({Value::integer(address++), Value::text(line.opcode),
                              Value::integer(line.p1), Value::integer(line.p2),
                              Value::integer(line.p3), text(line.p4), Value::integer(0),
                              text(line.comment)});
    }
    return;
  }
  for (const PlanLine& line : db::explain_plan(program->select, program->dml)) {
    command_rows.push_back({Value::integer(line.id), Value::integer(line.parent), Value::integer(0),
                            Value::text(line.detail)});
  }
}

}  // namespace db
