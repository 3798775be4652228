// Virtual tables written in C: adapters from sqlite3_module's callbacks to db::VirtualModule.
#include "db/capi/handle.h"
#include "db/catalog/session.h"
#include "db/catalog/virtual_table.h"

using namespace db::capi;

namespace db::capi {
namespace {

// Takes the message that a callback left behind.
Error error_of(sqlite3_vtab* table, int code) {
  std::string message;
  if (table != nullptr && table->zErrMsg != nullptr) {
    message = table->zErrMsg;
    sqlite3_free(table->zErrMsg);
    table->zErrMsg = nullptr;
  }
  if (message.empty()) message = text_of_code(code);
  return Error(code, std::move(message));
}

Status status_of(sqlite3_vtab* table, int code) {
  if (code == SQLITE_OK) return {};
  return error_of(table, code);
}

const Function& column_function() {
  static const Function function = [] {
    Function f;
    f.name = "xColumn";
    return f;
  }();
  return function;
}

std::vector<sqlite3_value*> handles_of(std::span<Value> values) {
  std::vector<sqlite3_value*> handles;
  for (Value& value : values) handles.push_back(handle_of(&value));
  return handles;
}

class Cursor : public VirtualCursor {
 public:
  Cursor(Session* session, sqlite3_vtab* table, sqlite3_vtab_cursor* cursor)
      : session_(session), table_(table), cursor_(cursor) {}
  ~Cursor() override { module().xClose(cursor_); }

  Status filter(int number, const std::string& text, std::span<Value> args) override {
    std::vector<sqlite3_value*> handles = handles_of(args);
    return status_of(table_, module().xFilter(cursor_, number, text.c_str(),
                                              static_cast<int>(handles.size()), handles.data()));
  }
  Status next() override { return status_of(table_, module().xNext(cursor_)); }
  bool at_end() override { return module().xEof(cursor_) != 0; }
  Status column(int index, Value& out) override {
    FunctionContext context(column_function(), session_);
    int code = module().xColumn(cursor_, reinterpret_cast<sqlite3_context*>(&context), index);
    if (code != SQLITE_OK) return error_of(table_, code);
    if (context.error_code() != 0) return Error(context.error_code(), context.error_message());
    out = std::move(context.result);
    return {};
  }
  Result<i64> rowid() override {
    sqlite3_int64 rowid = 0;
    int code = module().xRowid(cursor_, &rowid);
    if (code != SQLITE_OK) return error_of(table_, code);
    return i64{rowid};
  }

 private:
  const sqlite3_module& module() const { return *table_->pModule; }
  Session* session_;
  sqlite3_vtab* table_;
  sqlite3_vtab_cursor* cursor_;
};

class Table : public VirtualTable {
 public:
  Table(Session* session, sqlite3_vtab* table) : session_(session), table_(table) {}
  ~Table() override {
    if (table_ != nullptr) module().xDisconnect(table_);
  }

  Status best_index(IndexQuestion& question) override {
    std::vector<sqlite3_index_constraint> constraints;
    for (const auto& one : question.constraints) {
      constraints.push_back({one.column, static_cast<unsigned char>(one.op),
                             static_cast<unsigned char>(one.usable ? 1 : 0), 0});
    }
    std::vector<sqlite3_index_orderby> order;
    for (const auto& one : question.order) {
      order.push_back({one.column, static_cast<unsigned char>(one.descending ? 1 : 0)});
    }
    std::vector<sqlite3_index_constraint_usage> usage(constraints.size());
    sqlite3_index_info info{};
    info.nConstraint = static_cast<int>(constraints.size());
    info.aConstraint = constraints.data();
    info.nOrderBy = static_cast<int>(order.size());
    info.aOrderBy = order.data();
    info.aConstraintUsage = usage.data();
    info.estimatedCost = question.cost;
    info.estimatedRows = static_cast<sqlite3_int64>(question.rows);
    info.colUsed = question.columns_used;
    int code = module().xBestIndex(table_, &info);
    if (code == SQLITE_OK) {
      question.usage.resize(usage.size());
      for (size_t i = 0; i < usage.size(); ++i) {
        question.usage[i] = {usage[i].argvIndex, usage[i].omit != 0};
      }
      question.number = info.idxNum;
      question.text = info.idxStr != nullptr ? info.idxStr : "";
      question.order_consumed = info.orderByConsumed != 0;
      question.one_row = (info.idxFlags & 1) != 0;
      question.cost = info.estimatedCost;
      question.rows = static_cast<f64>(info.estimatedRows);
    }
    if (info.needToFreeIdxStr != 0) sqlite3_free(info.idxStr);
    return status_of(table_, code);
  }

  Result<std::unique_ptr<VirtualCursor>> open() override {
    sqlite3_vtab_cursor* cursor = nullptr;
    int code = module().xOpen(table_, &cursor);
    if (code != SQLITE_OK) return error_of(table_, code);
    cursor->pVtab = table_;
    return std::unique_ptr<VirtualCursor>(new Cursor(session_, table_, cursor));
  }

  bool writable() const override { return module().xUpdate != nullptr; }
  Result<i64> update(std::span<Value> values) override {
    std::vector<sqlite3_value*> handles = handles_of(values);
    sqlite3_int64 rowid = 0;
    int code = module().xUpdate(table_, static_cast<int>(handles.size()), handles.data(), &rowid);
    if (code != SQLITE_OK) return error_of(table_, code);
    return i64{rowid};
  }
  bool has_transactions() const override { return module().xBegin != nullptr; }
  Status begin() override { return call(&sqlite3_module::xBegin); }
  Status sync() override { return call(&sqlite3_module::xSync); }
  Status commit() override { return call(&sqlite3_module::xCommit); }
  Status rollback() override { return call(&sqlite3_module::xRollback); }
  Status savepoint(int number) override { return call(&sqlite3_module::xSavepoint, number); }
  Status release(int number) override { return call(&sqlite3_module::xRelease, number); }
  Status rollback_to(int number) override { return call(&sqlite3_module::xRollbackTo, number); }
  Status destroy() override {
    if (module().xDestroy == nullptr) return {};
    int code = module().xDestroy(table_);
    if (code != SQLITE_OK) return error_of(table_, code);
    table_ = nullptr;
    return {};
  }
  Status rename(const std::string& name) override {
    if (module().xRename == nullptr) return {};
    return status_of(table_, module().xRename(table_, name.c_str()));
  }

 private:
  const sqlite3_module& module() const { return *table_->pModule; }
  // A table that was destroyed in its transaction hears nothing more.
  Status call(int (*sqlite3_module::*member)(sqlite3_vtab*)) {
    if (table_ == nullptr || module().*member == nullptr) return {};
    return status_of(table_, (module().*member)(table_));
  }
  // Modules before version 2 have no room for these callbacks.
  Status call(int (*sqlite3_module::*member)(sqlite3_vtab*, int), int number) {
    if (table_ == nullptr || module().iVersion < 2 || module().*member == nullptr) return {};
    return status_of(table_, (module().*member)(table_, number));
  }
  Session* session_;
  sqlite3_vtab* table_;
};

class Module : public VirtualModule {
 public:
  Module(sqlite3* db, const sqlite3_module* module, void* data, void (*destroy)(void*))
      : db_(db), module_(module), data_(data), destroy_(destroy) {}
  ~Module() override {
    if (destroy_ != nullptr) destroy_(data_);
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  bool eponymous() const override {
    return module_->xCreate == nullptr || module_->xCreate == module_->xConnect;
  }

  Result<VirtualDeclaration> connect(Session& session, const std::vector<std::string>& args,
                                     bool create) override {
    if (create && module_->xCreate == nullptr) {
      return Error(SQLITE_ERROR, "no such module: " + args[0]);
    }
    std::vector<const char*> texts;
    for (const std::string& arg : args) texts.push_back(arg.c_str());
    VirtualDeclaration declaration;
    std::string* outer = db_->declared_vtab;
    db_->declared_vtab = &declaration.schema_sql;
    sqlite3_vtab* table = nullptr;
    char* message = nullptr;
    auto* call = create ? module_->xCreate : module_->xConnect;
    int code = call(db_, data_, static_cast<int>(texts.size()), texts.data(), &table, &message);
    db_->declared_vtab = outer;
    std::string text = message != nullptr ? message : "vtable constructor failed: " + args[2];
    sqlite3_free(message);
    if (code != SQLITE_OK) return Error(code, text);
    table->pModule = module_;
    declaration.table = std::make_unique<Table>(&session, table);
    if (declaration.schema_sql.empty()) {
      return Error(SQLITE_ERROR, "vtable constructor did not declare schema: " + args[2]);
    }
    return declaration;
  }

 private:
  sqlite3* db_;
  const sqlite3_module* module_;
  void* data_;
  void (*destroy_)(void*);
};

}  // namespace
}  // namespace db::capi

int sqlite3_create_module_v2(sqlite3* db, const char* name, const sqlite3_module* module,
                             void* data, void (*destroy)(void*)) {
  if (!is_live(db) || name == nullptr) {
    if (destroy != nullptr) destroy(data);
    return SQLITE_MISUSE;
  }
  Entered entered(db);
  auto& modules = db->connection->session().modules;
  if (module == nullptr) {
    modules.erase(name);
  } else {
    modules[name] = std::make_shared<Module>(db, module, data, destroy);
  }
  return clear_error(db);
}

int sqlite3_create_module(sqlite3* db, const char* name, const sqlite3_module* module, void* data) {
  return sqlite3_create_module_v2(db, name, module, data, nullptr);
}

int sqlite3_drop_modules(sqlite3* db, const char** keep) {
  Entered entered(db);
  auto& modules = db->connection->session().modules;
  for (auto it = modules.begin(); it != modules.end();) {
    bool kept = false;
    for (const char** name = keep; name != nullptr && *name != nullptr; ++name) {
      kept = kept || sqlite3_stricmp(it->first.c_str(), *name) == 0;
    }
    it = kept ? std::next(it) : modules.erase(it);
  }
  return SQLITE_OK;
}

int sqlite3_declare_vtab(sqlite3* db, const char* sql) {
  Entered entered(db);
  if (db->declared_vtab == nullptr) return fail(db, SQLITE_MISUSE);
  *db->declared_vtab = sql;
  return SQLITE_OK;
}

int sqlite3_vtab_config(sqlite3*, int, ...) {
  return SQLITE_OK;
}
int sqlite3_vtab_on_conflict(sqlite3*) {
  return SQLITE_ABORT;
}
int sqlite3_vtab_nochange(sqlite3_context*) {
  return 0;
}
const char* sqlite3_vtab_collation(sqlite3_index_info*, int) {
  return "BINARY";
}
int sqlite3_vtab_distinct(sqlite3_index_info*) {
  return 0;
}
int sqlite3_vtab_in(sqlite3_index_info*, int, int) {
  return 0;
}
int sqlite3_vtab_in_first(sqlite3_value*, sqlite3_value**) {
  return SQLITE_ERROR;
}
int sqlite3_vtab_in_next(sqlite3_value*, sqlite3_value**) {
  return SQLITE_ERROR;
}
int sqlite3_vtab_rhs_value(sqlite3_index_info*, int, sqlite3_value** value) {
  *value = nullptr;
  return SQLITE_NOTFOUND;
}
