#include "db/engine/builtin_modules.h"

#include "db/catalog/virtual_table.h"
#include "db/engine/command.h"
#include "db/functions/json_walk.h"
#include "db/sql/parser.h"

namespace db {
namespace {

// Uses every usable equality on a hidden column as an argument; the answer's number says which.
void take_hidden(IndexQuestion& question, int first_hidden, int count) {
  int argument = 0;
  int mask = 0;
  bool missing = false;
  for (int hidden = 0; hidden < count; ++hidden) {
    for (size_t i = 0; i < question.constraints.size(); ++i) {
      const auto& one = question.constraints[i];
      if (one.column != first_hidden + hidden || one.op != ConstraintOp::kEq) continue;
      if (!one.usable) {
        missing = true;
        continue;
      }
      question.usage[i].argument = ++argument;
      question.usage[i].omit = true;
      mask |= 1 << hidden;
      break;
    }
  }
  question.number = mask;
  question.cost = missing ? 1e9 : mask == 0 ? 1e6 : 20;
  question.rows = 20;
}

class JsonCursor : public VirtualCursor {
 public:
  explicit JsonCursor(bool tree) : walk_(tree), tree_(tree) {}
  Status filter(int number, const std::string&, std::span<Value> args) override {
    rowid_ = 0;
    document_ = args.empty() ? Value() : args[0];
    document_.keep();
    const bool has_root = (number & 2) != 0 && args.size() > 1;
    root_ = has_root ? args[1] : Value::borrowed_text("$");
    if (has_root) root_.keep();
    std::string error;
    if (!walk_.open(document_, root_, error)) return Error(rc::kError, error);
    return {};
  }
  Status next() override {
    ++rowid_;
    walk_.next();
    return {};
  }
  bool at_end() override { return walk_.at_end(); }
  Status column(int index, Value& out) override {
    switch (index) {
      case 0:
        out = walk_.key();
        break;
      case 1:
        walk_.value(out);
        return {};
      case 2:
        out = Value::text(walk_.type());
        break;
      case 3:
        walk_.atom(out);
        return {};
      case 4:
        out.set_integer(walk_.id());
        break;
      case 5:
        out = tree_ ? walk_.parent() : Value();
        break;
      case 6:
        out = Value::text(walk_.full_key());
        break;
      case 7:
        out = Value::text(walk_.path());
        break;
      case 8:
        out = document_;
        break;
      default:
        out = root_;
        break;
    }
    out.keep();
    return {};
  }
  Result<i64> rowid() override { return rowid_; }

 private:
  JsonWalk walk_;
  bool tree_;
  Value document_, root_;
  i64 rowid_ = 0;
};

class JsonTable : public VirtualTable {
 public:
  explicit JsonTable(bool tree) : tree_(tree) {}
  Status best_index(IndexQuestion& question) override {
    take_hidden(question, 8, 2);
    return {};
  }
  Result<std::unique_ptr<VirtualCursor>> open() override {
    return std::unique_ptr<VirtualCursor>(new JsonCursor(tree_));
  }

 private:
  bool tree_;
};

class JsonModule : public VirtualModule {
 public:
  explicit JsonModule(bool tree) : tree_(tree) {}
  bool eponymous() const override { return true; }
  Result<VirtualDeclaration> connect(Session&, const std::vector<std::string>&, bool) override {
    VirtualDeclaration declaration;
    declaration.table = std::make_unique<JsonTable>(tree_);
    declaration.schema_sql =
        "CREATE TABLE x(key,value,type,atom,id,parent,fullkey,path,json HIDDEN,root HIDDEN)";
    return declaration;
  }

 private:
  bool tree_;
};

// PRAGMA as a table: its columns, then the argument and the schema, hidden.
class PragmaCursor : public VirtualCursor {
 public:
  PragmaCursor(Session& session, std::string name, size_t columns)
      : session_(session), name_(std::move(name)), columns_(columns) {}
  Status filter(int number, const std::string&, std::span<Value> args) override {
    at_ = 0;
    rows_.clear();
    argument_ = schema_ = Value();
    size_t next = 0;
    if ((number & 1) != 0) argument_ = args[next++];
    if ((number & 2) != 0) schema_ = args[next++];
    argument_.keep();
    schema_.keep();
    std::string text = "PRAGMA ";
    if (!schema_.is_null()) text += quote_name(schema_.to_text()) + ".";
    text += name_;
    if (!argument_.is_null()) text += "=" + quote_name(argument_.to_text());
    sql::Arena arena;
    sql::Parsed parsed = sql::parse(text, arena);
    if (parsed.failed) return Error(rc::kError, parsed.error);
    CommandResult result = TRY(run_pragma({session_, parsed.statement, text, {}, false}));
    rows_ = std::move(result.rows);
    return {};
  }
  Status next() override {
    ++at_;
    return {};
  }
  bool at_end() override { return at_ >= rows_.size(); }
  Status column(int index, Value& out) override {
    size_t at = static_cast<size_t>(index);
    if (at < columns_) {
      out = at < rows_[at_].size() ? rows_[at_][at] : Value();
    } else {
      out = at == columns_ ? argument_ : schema_;
    }
    return {};
  }
  Result<i64> rowid() override { return static_cast<i64>(at_) + 1; }

 private:
  Session& session_;
  std::string name_;
  size_t columns_;
  Value argument_, schema_;
  std::vector<std::vector<Value>> rows_;
  size_t at_ = 0;
};

class PragmaTable : public VirtualTable {
 public:
  PragmaTable(Session& session, std::string name, size_t columns)
      : session_(session), name_(std::move(name)), columns_(columns) {}
  Status best_index(IndexQuestion& question) override {
    take_hidden(question, static_cast<int>(columns_), 2);
    return {};
  }
  Result<std::unique_ptr<VirtualCursor>> open() override {
    return std::unique_ptr<VirtualCursor>(new PragmaCursor(session_, name_, columns_));
  }

 private:
  Session& session_;
  std::string name_;
  size_t columns_;
};

class PragmaModule : public VirtualModule {
 public:
  explicit PragmaModule(std::string name) : name_(std::move(name)) {}
  bool eponymous() const override { return true; }
  Result<VirtualDeclaration> connect(Session& session, const std::vector<std::string>&,
                                     bool) override {
    sql::PragmaStatement pragma;
    pragma.name.text = name_;
    std::vector<std::string> columns = pragma_columns(pragma);
    std::string text = "CREATE TABLE x(";
    for (const std::string& column : columns) text += quote_name(column) + ",";
    VirtualDeclaration declaration;
    declaration.table = std::make_unique<PragmaTable>(session, name_, columns.size());
    declaration.schema_sql = text + "arg HIDDEN,schema HIDDEN)";
    return declaration;
  }

 private:
  std::string name_;
};

}  // namespace

void register_builtin_modules(Session& session) {
  session.modules["json_each"] = std::make_shared<JsonModule>(false);
  session.modules["json_tree"] = std::make_shared<JsonModule>(true);
  static constexpr const char* kPragmas[] = {
      "application_id",   "auto_vacuum",  "busy_timeout",    "cache_size",     "collation_list",
      "compile_options",  "data_version", "database_list",   "encoding",       "foreign_key_check",
      "foreign_key_list", "foreign_keys", "freelist_count",  "function_list",  "index_info",
      "index_list",       "index_xinfo",  "integrity_check", "journal_mode",   "module_list",
      "page_count",       "page_size",    "quick_check",     "schema_version", "synchronous",
      "table_info",       "table_list",   "table_xinfo",     "user_version"};
  for (const char* name : kPragmas) {
    session.modules[std::string("pragma_") + name] = std::make_shared<PragmaModule>(name);
  }
}

}  // namespace db
