// Virtual tables: rows that code produces. Modules come from the built-in table-valued functions
// and from the C API's sqlite3_create_module, whose contract this one follows.
//
// best_index() is asked while planning which of the offered constraints the table can use; the
// chosen ones' right sides become filter()'s arguments in the order of their argument numbers.
// Single-threaded, like the connection.
#pragma once

#include "db/value/result.h"
#include "db/value/value.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace db {

struct Session;
struct Table;

// SQLite's numbers.
enum class ConstraintOp : u8 {
  kEq = 2,
  kGt = 4,
  kLe = 8,
  kLt = 16,
  kGe = 32,
  kMatch = 64,
  kLike = 65,
  kGlob = 66,
  kRegexp = 67,
  kNe = 68,
  kIsNot = 69,
  kIsNotNull = 70,
  kIsNull = 71,
  kIs = 72,
  kLimit = 73,
  kOffset = 74,
};

struct IndexQuestion {
  struct Constraint {
    int column;  // -1: rowid
    ConstraintOp op;
    bool usable;
  };
  struct Order {
    int column;
    bool descending;
  };
  struct Usage {
    int argument = 0;   // from 1; 0: not used
    bool omit = false;  // the table checks it itself
  };
  std::vector<Constraint> constraints;
  std::vector<Order> order;
  u64 columns_used = 0;
  // The answer.
  std::vector<Usage> usage;
  int number = 0;
  std::string text;
  bool order_consumed = false;
  bool one_row = false;
  f64 cost = 5e98;
  f64 rows = 25;
};

class VirtualCursor {
 public:
  virtual ~VirtualCursor() = default;
  virtual Status filter(int number, const std::string& text, std::span<Value> args) = 0;
  virtual Status next() = 0;
  virtual bool at_end() = 0;
  virtual Status column(int index, Value& out) = 0;
  virtual Result<i64> rowid() = 0;
};

class VirtualTable {
 public:
  virtual ~VirtualTable() = default;
  virtual Status best_index(IndexQuestion& question) = 0;
  virtual Result<std::unique_ptr<VirtualCursor>> open() = 0;
  virtual bool writable() const { return false; }
  // xUpdate: one value deletes; else old rowid, new rowid, columns. Answers the new rowid.
  virtual Result<i64> update(std::span<Value>) { return Error(rc::kReadOnly, "read-only table"); }
  // Transactions; virtual_transaction.h says who calls them when.
  virtual bool has_transactions() const { return false; }
  virtual Status begin() { return {}; }
  virtual Status sync() { return {}; }
  virtual Status commit() { return {}; }
  virtual Status rollback() { return {}; }
  virtual Status savepoint(int) { return {}; }
  virtual Status release(int) { return {}; }
  virtual Status rollback_to(int) { return {}; }
  virtual Status destroy() { return {}; }
  virtual Status rename(const std::string&) { return {}; }
};

struct VirtualDeclaration {
  std::unique_ptr<VirtualTable> table;
  std::string schema_sql;  // CREATE TABLE x(a, b HIDDEN, ...)
};

class VirtualModule {
 public:
  virtual ~VirtualModule() = default;
  virtual bool eponymous() const { return false; }
  // `args`: module name, schema name, table name, then the written arguments.
  virtual Result<VirtualDeclaration> connect(Session& session, const std::vector<std::string>& args,
                                             bool create) = 0;
};

// The Table that a module's declaration describes; HIDDEN in a column's type hides it.
Result<std::shared_ptr<Table>> declare_virtual_table(VirtualDeclaration declaration);

}  // namespace db
