#include "db/engine/connection.h"

#include "db/engine/builtin_modules.h"
#include "db/engine/plan_cache.h"
#include "db/engine/schema_store.h"
#include "db/engine/statement_state.h"
#include "db/engine/transaction.h"
#include "db/exec/vector_choice.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

namespace db {

struct Connection::State {
  int code = 0;
  std::string message = "not an error";
  int offset = -1;
  std::vector<Statement*> statements;
  PlanCache plans;
  Vfs* vfs = &posix_vfs();
};

Connection::Connection()
    : session_(std::make_unique<Session>()), state_(std::make_unique<State>()) {
  Session& session = *session_;
  if (const char* executor = std::getenv("FLEET_EXECUTOR")) {
    executor_of(executor, &session.executor);
  }
  session.connection = this;
  session.limits = {1000000000, 1000000000, 2000,  1000,   500,  250000000,
                    1000,       10,         50000, 250000, 1000, 0};
  auto on = [&](DbConfig which) { session.config[static_cast<size_t>(which)] = true; };
  register_builtin_modules(session);
  register_session_functions(session);
  on(DbConfig::kEnableTrigger);
  on(DbConfig::kDqsDml);
  on(DbConfig::kDqsDdl);
  on(DbConfig::kEnableView);
  on(DbConfig::kTrustedSchema);
  on(DbConfig::kEnableAttachCreate);
  on(DbConfig::kEnableAttachWrite);
  on(DbConfig::kEnableComments);
}

Connection::~Connection() {
  Session& session = *session_;
  if (!session.autocommit) rollback_all(session);
  for (auto& database : session.databases) {
    if (database->store != nullptr && database->store->state() == TransactionState::kRead) {
      database->store->end_read();
    }
  }
}

namespace {

Result<std::unique_ptr<Store>> open_store(Session& session, Vfs& vfs, const std::string& path,
                                          bool read_only, bool create) {
  StoreOptions options;
  options.pager.vfs = &vfs;
  options.pager.read_only = read_only;
  options.pager.create = create;
  options.pager.busy = [&session](int attempts) {
    return session.hooks.busy && session.hooks.busy(attempts);
  };
  auto store = Store::open(path, std::move(options));
  if (!store.ok()) {
    Error error = storage_error(store.error());
    if (error.code() == rc::kBusy) return error;
    return Error(rc::kCantOpen, "unable to open database file");
  }
  return std::move(store).value();
}

}  // namespace

Status Connection::add_database(const std::string& name, const std::string& path, bool read_only,
                                bool create) {
  auto database = std::make_unique<Database>();
  database->schema.name = name;
  bool memory = path.empty() || path == ":memory:";
  database->path = memory ? "" : state_->vfs->absolute(path);
  database->read_only = read_only;
  database->store = TRY(open_store(*session_, *state_->vfs, memory ? "" : path, read_only, create));
  session_->databases.push_back(std::move(database));
  return {};
}

Result<std::unique_ptr<Connection>> Connection::open(const std::string& path, OpenOptions options) {
  std::unique_ptr<Connection> connection(new Connection());
  if (options.vfs != nullptr) connection->state_->vfs = options.vfs;
  TRY(connection->add_database("main", options.memory ? "" : path, options.read_only,
                               options.create));
  TRY(connection->add_database("temp", "", false, true));
  return connection;
}

namespace {

// Parses and compiles the first statement of `text`; null for blank text.
Result<std::unique_ptr<Statement::State>> compile_text(Connection& connection,
                                                       std::string_view text, size_t* tail) {
  Session& session = connection.session();
  auto state = std::make_unique<Statement::State>(connection);
  state->sql.assign(text);
  sql::ParseLimits limits;
  limits.expr_depth = static_cast<u32>(session.limit(Limit::kExprDepth));
  limits.variables = static_cast<u32>(session.limit(Limit::kVariableNumber));
  limits.compound_arms = static_cast<u32>(session.limit(Limit::kCompoundSelect));
  limits.columns = static_cast<u32>(session.limit(Limit::kColumn));
  limits.function_args = static_cast<u32>(session.limit(Limit::kFunctionArg));
  sql::Parsed parsed = sql::parse(state->sql, state->arena, limits);
  *tail = parsed.tail;
  if (parsed.failed) return Error(rc::kError, parsed.error).at(parsed.error_offset);
  if (parsed.statement == nullptr) {
    *tail = text.size();
    return std::unique_ptr<Statement::State>();
  }
  state->statement = parsed.statement;
  state->tail = parsed.tail;
  state->parameters.resize(parsed.param_count);
  state->parameter_names.resize(parsed.param_count);
  for (const sql::ParamName& param : parsed.params) {
    state->parameter_names[param.number - 1] = param.name;
  }
  state->reusable = text.size() <= PlanCache::kMaxTextBytes && parsed.tail == text.size() &&
                    parsed.statement->kind <= sql::StatementKind::kDelete &&
                    parsed.statement->explain == sql::Explain::kNone;
  Status compiled = state->compile();
  (void)settle(session);
  if (!compiled.ok()) return compiled.error();
  return state;
}

// A plan for the text with its literals made parameters, compiled if need be; null: there is none.
std::unique_ptr<Statement::State> plan_of_shape(Connection& connection, PlanCache& plans,
                                                std::string_view text, SqlShape* shape) {
  Session& session = connection.session();
  const u64 version = session.plan_version();
  if (!plans.allows_shapes(session, version) || !find_shape(text, shape)) return nullptr;
  std::unique_ptr<Statement::State> plan = plans.take(shape->text, version);
  if (plan == nullptr && plans.is_known_shape(shape->text)) {
    size_t tail = 0;
    auto compiled = compile_text(connection, shape->text, &tail);
    // What is wrong with it is for the original text to say.
    if (!compiled.ok() || compiled.value() == nullptr || tail != shape->text.size()) return nullptr;
    plan = std::move(compiled).value();
    if (!plans.allows_shapes(session, session.plan_version())) return nullptr;
  }
  if (plan == nullptr || plan->parameters.size() != shape->values.size()) return nullptr;
  plan->parameters = std::move(shape->values);
  plan->hides_parameters = true;
  plan->shown_sql = text.substr(0, shape->tail);
  return plan;
}

}  // namespace

Result<Prepared> Connection::prepare(std::string_view text, PrepareOptions) {
  Prepared prepared;
  std::unique_ptr<Statement::State> plan;
  if (!session_->hooks.authorizer && text.size() <= PlanCache::kMaxTextBytes) {
    plan = state_->plans.take(text, session_->plan_version());
    if (plan != nullptr) {
      prepared.tail = plan->tail;
    } else {
      SqlShape shape;
      plan = plan_of_shape(*this, state_->plans, text, &shape);
      prepared.tail = shape.tail;
    }
  }
  if (plan == nullptr) {
    auto compiled = compile_text(*this, text, &prepared.tail);
    if (!compiled.ok()) {
      const Error& error = compiled.error();
      set_error(error.code(), error.message(), error.offset());
      return error;
    }
    plan = std::move(compiled).value();
  }
  clear_error();
  if (plan == nullptr) return prepared;
  prepared.statement.reset(new Statement(std::move(plan)));
  state_->statements.push_back(prepared.statement.get());
  return prepared;
}

Status Connection::execute(std::string_view text, const std::function<bool(Statement&)>& row) {
  while (!text.empty()) {
    Prepared prepared = TRY(prepare(text));
    text.remove_prefix(std::min(prepared.tail, text.size()));
    if (prepared.statement == nullptr) continue;
    int code = rc::kDone;
    while ((code = prepared.statement->step()) == rc::kRow) {
      if (row && !row(*prepared.statement)) {
        return Error(rc::kAbort, "query aborted");
      }
    }
    if (code != rc::kDone) return Error(state_->code, state_->message).at(state_->offset);
  }
  return {};
}

void Connection::forget(Statement* statement) {
  std::erase(state_->statements, statement);
  try {
    if (statement->state_->retire()) {
      state_->plans.give(std::move(statement->state_));
    } else {
      statement->state_->drop_execution();
    }
  } catch (const std::bad_alloc&) {  // then it is not kept for the next time
  }
}

void Connection::drop_plans() {
  state_->plans.clear();
}

int Connection::error_code() const {
  return state_->code;
}
const std::string& Connection::error_message() const {
  return state_->message;
}
int Connection::error_offset() const {
  return state_->offset;
}
void Connection::set_error(int code, std::string message, int offset) {
  state_->code = code;
  state_->message = std::move(message);
  state_->offset = offset;
}
void Connection::clear_error() {
  if (state_->code == 0) return;
  state_->code = 0;
  state_->message = "not an error";
  state_->offset = -1;
}

i64 Connection::last_insert_rowid() const {
  return session_->last_insert_rowid;
}
void Connection::set_last_insert_rowid(i64 rowid) {
  session_->last_insert_rowid = rowid;
}
i64 Connection::changes() const {
  return session_->changes;
}
i64 Connection::total_changes() const {
  return session_->total_changes;
}
bool Connection::autocommit() const {
  return session_->autocommit;
}
void Connection::interrupt() {
  if (session_->running_readers + session_->running_writers > 0) session_->interrupted = true;
}
bool Connection::is_interrupted() const {
  return session_->interrupted;
}
Hooks& Connection::hooks() {
  return session_->hooks;
}
FunctionRegistry& Connection::functions() {
  drop_plans();
  return session_->functions;
}

Status Connection::create_collation(std::string_view name,
                                    int (*compare)(void*, int, const void*, int, const void*),
                                    void* context, void (*destroy)(void*)) {
  ++session_->schema_epoch;
  drop_plans();
  if (compare == nullptr) {
    session_->collations.erase(std::string(name));
    return {};
  }
  auto* collation = new Collation;
  collation->name = name;
  collation->compare = compare;
  collation->context = context;
  session_->collations[std::string(name)] =
      std::shared_ptr<Collation>(collation, [destroy](Collation* one) {
        if (destroy != nullptr) destroy(one->context);
        delete one;
      });
  return {};
}

i64 Connection::limit(Limit which) const {
  return session_->limit(which);
}
i64 Connection::set_limit(Limit which, i64 value) {
  static constexpr std::array<i64, static_cast<size_t>(Limit::kCount)> kMost = {
      1000000000, 1000000000, 2000, 1000, 500, 250000000, 1000, 10, 50000, 250000, 1000, 8};
  size_t at = static_cast<size_t>(which);
  i64 old = session_->limits[at];
  if (value >= 0) {
    session_->limits[at] = std::min(value, kMost[at]);
    drop_plans();
  }
  return old;
}
bool Connection::config(DbConfig which) const {
  if (which == DbConfig::kEnableForeignKeys) return session_->foreign_keys;
  return session_->config_on(which);
}
void Connection::set_config(DbConfig which, bool on) {
  drop_plans();
  if (which == DbConfig::kEnableForeignKeys) session_->foreign_keys = on;
  if (which == DbConfig::kWritableSchema) session_->writable_schema = on;
  session_->config[static_cast<size_t>(which)] = on;
  ++session_->schema_epoch;
}

void Connection::set_busy_timeout(int milliseconds) {
  if (milliseconds <= 0) {
    session_->hooks.busy = nullptr;
    return;
  }
  session_->hooks.busy = [milliseconds](int attempts) {
    static constexpr int kDelays[] = {1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100};
    static constexpr int kBefore[] = {0, 1, 3, 8, 18, 33, 53, 78, 103, 128, 178, 228};
    constexpr int kCount = 12;
    int delay = attempts < kCount ? kDelays[attempts] : 100;
    int before = attempts < kCount ? kBefore[attempts] : 228 + 100 * (attempts - kCount + 1);
    if (before + delay > milliseconds) delay = milliseconds - before;
    if (delay <= 0) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    return true;
  };
}

int Connection::database_count() const {
  return static_cast<int>(session_->databases.size());
}
const std::string* Connection::database_name(int index) const {
  if (index < 0 || index >= database_count()) return nullptr;
  return &session_->databases[static_cast<size_t>(index)]->schema.name;
}
const std::string* Connection::database_path(std::string_view schema) const {
  int at = session_->database_index(schema.empty() ? "main" : schema);
  return at < 0 ? nullptr : &session_->databases[static_cast<size_t>(at)]->path;
}
bool Connection::database_read_only(std::string_view schema, bool* known) const {
  int at = session_->database_index(schema);
  *known = at >= 0;
  return at >= 0 && session_->databases[static_cast<size_t>(at)]->read_only;
}
Store* Connection::store(std::string_view schema) {
  int at = session_->database_index(schema.empty() ? "main" : schema);
  return at < 0 ? nullptr : session_->databases[static_cast<size_t>(at)]->store.get();
}
int Connection::transaction_state(const std::string* schema) const {
  int state = 0;
  for (const auto& database : session_->databases) {
    if (schema != nullptr && !equal_nocase(database->schema.name, *schema)) continue;
    if (database->store == nullptr) continue;
    state = std::max(state, static_cast<int>(database->store->state()));
  }
  return state;
}
Status Connection::replace_store(std::string_view schema, std::unique_ptr<Store> store) {
  int at = session_->database_index(schema.empty() ? "main" : schema);
  if (at < 0) return Error(rc::kError, "unknown database " + std::string(schema));
  Database& database = *session_->databases[static_cast<size_t>(at)];
  if (database.store != nullptr && database.store->state() == TransactionState::kWrite) {
    return Error(rc::kBusy, "database is locked");
  }
  drop_plans();
  // Statements hold cursors on the old store: they are compiled again before they run.
  for (Statement* statement : state_->statements) statement->state().drop_execution();
  if (database.store != nullptr && database.store->state() == TransactionState::kRead) {
    database.store->end_read();
  }
  database.schema.clear();
  database.store = std::move(store);
  ++session_->schema_epoch;
  return {};
}
void Connection::forget_schema() {
  drop_plans();
  for (auto& database : session_->databases) database->schema.clear();
}
void Connection::drop_executions() {
  drop_plans();
  for (Statement* statement : state_->statements) {
    if (!statement->busy()) statement->state().drop_execution();
  }
}

Result<Connection::ColumnMetadata> Connection::column_metadata(const std::string* schema,
                                                               std::string_view table_name,
                                                               std::string_view column_name) {
  TRY(load_all_schemas(*session_));
  Table* table = session_->find_table(
      schema != nullptr ? std::string_view(*schema) : std::string_view(), table_name);
  (void)settle(*session_);
  if (table == nullptr || table->kind == TableKind::kView) {
    return Error(rc::kError, "no such table: " + std::string(table_name));
  }
  ColumnMetadata out;
  if (column_name.empty()) return out;
  int at = table->find_column(column_name);
  if (at < 0 && is_rowid_name(column_name) && !table->without_rowid) {
    out.declared_type = "INTEGER";
    out.collation = "BINARY";
    out.primary_key = true;
    return out;
  }
  if (at < 0) {
    return Error(rc::kError, "no such table column: " + std::string(table_name) + "." +
                                 std::string(column_name));
  }
  const Column& column = table->columns[static_cast<size_t>(at)];
  out.declared_type = column.declared_type;
  out.collation = column.collation.empty() ? "BINARY" : column.collation;
  out.not_null = column.not_null;
  out.primary_key = column.primary_key > 0;
  out.autoincrement = table->autoincrement && at == table->rowid_column;
  return out;
}

Statement* Connection::next_statement(Statement* after) {
  auto& all = state_->statements;
  if (after == nullptr) return all.empty() ? nullptr : all.front();
  auto it = std::find(all.begin(), all.end(), after);
  return it == all.end() || ++it == all.end() ? nullptr : *it;
}

}  // namespace db
