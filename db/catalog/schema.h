// The schema of one database in memory: tables, views, indexes and triggers, each built from its
// stored CREATE text and keeping that text's syntax tree (defaults, checks and trigger bodies point
// into it).
//
// Objects are shared_ptrs: a prepared statement keeps those it was compiled against alive, while
// the schema may already have let them go. Names compare without ASCII case.
// Errors: SQLite's texts. Single-threaded (one schema belongs to one connection).
#pragma once

#include "db/sql/ast.h"
#include "db/value/record.h"
#include "db/value/result.h"
#include "db/value/value.h"

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace db {

class Store;
class VirtualTable;
struct Schema;
struct Table;

struct NocaseHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const {
    size_t h = 1469598103934665603u;
    for (char c : text) h = (h ^ (static_cast<u8>(c) | 0x20)) * 1099511628211u;
    return h;
  }
};
struct NocaseEqual {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return equal_nocase(a, b); }
};
template <class T>
using NocaseMap = std::unordered_map<std::string, T, NocaseHash, NocaseEqual>;

// A CREATE text with its tree.
struct Definition {
  std::string sql;
  sql::Arena arena{1024};
  sql::Statement* statement = nullptr;
};

enum class StrictType : u8 { kNone, kAny, kInteger, kReal, kText, kBlob };
enum class Generated : u8 { kNo, kVirtual, kStored };

struct Column {
  std::string name;
  std::string declared_type;
  Affinity affinity = Affinity::kBlob;
  StrictType strict = StrictType::kNone;
  std::string collation;  // empty: BINARY
  bool not_null = false;
  sql::ConflictAction not_null_conflict = sql::ConflictAction::kDefault;
  const sql::Expr* default_expr = nullptr;
  std::string default_text;  // as PRAGMA table_info shows it; has_default tells NULL from none
  bool has_default = false;
  Value added_default;  // what records written before ALTER TABLE ADD COLUMN have here
  Generated generated = Generated::kNo;
  const sql::Expr* generated_expr = nullptr;
  bool hidden = false;  // virtual tables
  int primary_key = 0;  // 1-based place in the primary key, 0: not in it
  int record_at = 0;    // place in the stored record; -1 when virtual
};

struct IndexColumn {
  int column = 0;                   // kRowid, kExpression or a column of the table
  const sql::Expr* expr = nullptr;  // kExpression
  std::string collation;
  bool descending = false;
};
inline constexpr int kRowid = -1;
inline constexpr int kExpression = -2;

struct Index {
  std::string name;
  Table* table = nullptr;
  u32 root = 0;
  bool unique = false;
  char origin = 'c';  // 'c' CREATE INDEX, 'u' UNIQUE, 'p' PRIMARY KEY
  sql::ConflictAction conflict = sql::ConflictAction::kDefault;
  int key_columns = 0;               // declared ones; the rest locates the row
  std::vector<IndexColumn> columns;  // all columns of the stored record
  const sql::Expr* where = nullptr;  // partial
  std::shared_ptr<Definition> definition;
  std::vector<f64> stat;  // sqlite_stat1: rows, then rows per distinct prefix; empty: unknown
  bool stat_unordered = false;
};

struct ForeignKey {
  std::vector<int> columns;
  std::string parent;
  std::vector<std::string> parent_columns;  // empty: the parent's primary key
  sql::ForeignAction on_delete = sql::ForeignAction::kNoAction;
  sql::ForeignAction on_update = sql::ForeignAction::kNoAction;
  bool deferred = false;
};

struct Check {
  std::string name;  // or empty
  const sql::Expr* expr = nullptr;
  std::string text;
};

struct Trigger {
  std::string name;
  Schema* schema = nullptr;  // where it is stored (temp triggers may watch other schemas)
  const sql::CreateTriggerStatement* statement = nullptr;
  std::string table;
  std::shared_ptr<Definition> definition;
};

enum class TableKind : u8 { kTable, kView, kVirtual };

struct Table {
  std::string name;
  Schema* schema = nullptr;
  TableKind kind = TableKind::kTable;
  u32 root = 0;
  std::vector<Column> columns;
  std::vector<std::shared_ptr<Index>> indexes;  // newest last
  std::vector<ForeignKey> foreign_keys;
  std::vector<Check> checks;
  int rowid_column = -1;  // the INTEGER PRIMARY KEY
  sql::ConflictAction rowid_conflict = sql::ConflictAction::kDefault;
  bool autoincrement = false;
  bool without_rowid = false;
  bool strict = false;
  bool has_generated = false;
  bool has_virtual_columns = false;
  Index* primary = nullptr;         // WITHOUT ROWID: the index that is the table itself
  int stored_columns = 0;           // columns in the record
  std::vector<int> record_columns;  // place in the record -> column
  f64 stat_rows = -1;               // sqlite_stat1, -1: unknown
  const sql::Select* view = nullptr;
  std::vector<std::string> view_columns;  // names given in CREATE VIEW
  bool view_resolved = false;             // columns filled in
  std::vector<std::shared_ptr<Trigger>> triggers;
  std::shared_ptr<VirtualTable> virtual_table;
  std::shared_ptr<Definition> definition;

  int find_column(std::string_view column_name) const;
  bool is_system() const { return name.size() >= 7 && equal_nocase(name.substr(0, 7), "sqlite_"); }
};

// "rowid", "oid" or "_rowid_".
bool is_rowid_name(std::string_view name);

struct Schema {
  std::string name;  // main, temp, or the attached name
  Store* store = nullptr;
  NocaseMap<std::shared_ptr<Table>> tables;  // views and virtual tables too
  NocaseMap<Index*> indexes;
  NocaseMap<std::shared_ptr<Trigger>> triggers;
  std::vector<std::string> table_order;
  bool loaded = false;
  u32 cookie = 0;
  u64 generation = 0;  // changes with every change of the objects above

  Schema();
  void clear();
  Table* find_table(std::string_view table_name) const {
    auto it = tables.find(table_name);
    return it == tables.end() ? nullptr : it->second.get();
  }
  Index* find_index(std::string_view index_name) const {
    auto it = indexes.find(index_name);
    return it == indexes.end() ? nullptr : it->second;
  }
  Trigger* find_trigger(std::string_view trigger_name) const {
    auto it = triggers.find(trigger_name);
    return it == triggers.end() ? nullptr : it->second.get();
  }
  // One row of sqlite_schema becomes an object. kCorrupt with SQLite's text when it cannot.
  Status add_object(std::string_view type, std::string_view object_name,
                    std::string_view table_name, i64 root, std::string_view sql_text);
  // Attaches triggers to their tables and finishes what needs all objects (call after loading).
  void drop_table(std::string_view table_name);
  void drop_index(std::string_view index_name);
  void drop_trigger(std::string_view trigger_name);
  // Reads sqlite_stat1 figures for one row of it.
  void set_stat(std::string_view table_name, std::string_view index_name, std::string_view stat);
  void clear_stats();

 private:
  Status add_table(std::shared_ptr<Definition> definition, i64 root);
  Status add_index(std::string_view index_name, std::string_view table_name, i64 root,
                   std::shared_ptr<Definition> definition);
  Status add_trigger(std::shared_ptr<Definition> definition);
};

// Builds a table from CREATE TABLE; checks what SQLite checks at that point. Autoindexes get their
// names but no root pages. `sql_text` is the text that the tree's spans refer to.
Result<std::shared_ptr<Table>> build_table(const sql::CreateTableStatement& statement,
                                           std::string_view sql_text);
// Builds an index on `table` from CREATE INDEX. Names are resolved; expressions are only kept.
Result<std::shared_ptr<Index>> build_index(const sql::CreateIndexStatement& statement,
                                           Table& table);
// The table that describes sqlite_schema itself.
std::shared_ptr<Table> make_schema_table(std::string_view name);

// The columns that an index record holds behind the declared ones.
void append_locator_columns(Index& index);

}  // namespace db
