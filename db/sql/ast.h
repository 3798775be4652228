// The syntax tree of one SQL statement, as SQLite's grammar has it. All nodes live in an Arena and
// point into the SQL text or into the arena: keep both alive as long as the tree.
//
// - Span is a byte range of the SQL text; error texts, column names and stored CREATE texts use it.
// - Name is an identifier without its quotes; how it was quoted decides whether "x" may be a
// string.
// - Parentheses leave no node. `(a, b)` is a RowExpr.
// - The tree says what was written, not what it means: nothing is resolved, folded or checked
//   against a schema (TRUE and FALSE are ColumnExprs until the binder finds no such column).
// Nodes are plain structs with a kind; read them with `expr->as<BinaryExpr>()`.
#pragma once

#include "base/check.h"
#include "base/types.h"
#include "db/sql/arena.h"

#include <string_view>

namespace db::sql {

struct Span {
  u32 begin = 0;
  u32 end = 0;
  bool empty() const { return begin == end; }
  std::string_view in(std::string_view sql) const { return sql.substr(begin, end - begin); }
};

enum class Quote : u8 { kNone, kDouble, kSingle, kBacktick, kBracket };

struct Name {
  std::string_view text;  // without quotes, doubled quotes undone
  Quote quote = Quote::kNone;
  Span span;
  bool present() const { return span.end != 0; }  // an omitted optional name is not present
};

struct Select;
struct WindowSpec;
struct Statement;

// ---------------------------------------------------------------- expressions

enum class ExprKind : u8 {
  kLiteral,
  kColumn,
  kParam,
  kUnary,
  kBinary,
  kLike,
  kBetween,
  kIn,
  kCase,
  kCast,
  kCollate,
  kFunction,
  kExists,
  kSubquery,
  kRow,
  kRaise,
};

struct Expr {
  ExprKind kind;
  u16 depth = 1;  // height of the tree below and including this node; SQLite's limit is 1000
  Span span;

  template <class T>
  T* as() {
    DCHECK(kind == T::kKind);
    return static_cast<T*>(this);
  }
  template <class T>
  const T* as() const {
    DCHECK(kind == T::kKind);
    return static_cast<const T*>(this);
  }
  // Null when the node is of another kind.
  template <class T>
  T* is() {
    return kind == T::kKind ? static_cast<T*>(this) : nullptr;
  }
  template <class T>
  const T* is() const {
    return kind == T::kKind ? static_cast<const T*>(this) : nullptr;
  }
};

template <ExprKind K>
struct ExprOf : Expr {
  static constexpr ExprKind kKind = K;
  ExprOf() : Expr{K, 1, {}} {}
};

enum class LiteralType : u8 { kNull, kInteger, kReal, kText, kBlob };

struct LiteralExpr : ExprOf<ExprKind::kLiteral> {
  LiteralType type = LiteralType::kNull;
  bool is_hex = false;  // 0x...: taken as 64 bits, two's complement
  i64 integer = 0;      // kInteger
  f64 real = 0;         // kReal, also for decimal integers beyond 64 bits
  // kText: the string without quotes; kBlob: the bytes; numbers: as written.
  std::string_view text;
};

struct ColumnExpr : ExprOf<ExprKind::kColumn> {
  Name schema;  // present only in schema.table.column
  Name table;
  Name column;
};

struct ParamExpr : ExprOf<ExprKind::kParam> {
  u32 number = 0;         // from 1, assigned as SQLite does
  std::string_view name;  // "?5", ":a", "@a", "$a::b(c)"; empty for a bare ?
};

enum class UnaryOp : u8 { kNegate, kPlus, kBitNot, kNot, kIsNull, kNotNull };

struct UnaryExpr : ExprOf<ExprKind::kUnary> {
  UnaryOp op = UnaryOp::kNot;
  Expr* operand = nullptr;
};

enum class BinaryOp : u8 {
  kOr,
  kAnd,
  kEq,
  kNe,
  kIs,     // also IS NOT DISTINCT FROM
  kIsNot,  // also IS DISTINCT FROM
  kLt,
  kLe,
  kGt,
  kGe,
  kBitAnd,
  kBitOr,
  kShiftLeft,
  kShiftRight,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kConcat,
  kArrow,        // ->
  kDoubleArrow,  // ->>
};

struct BinaryExpr : ExprOf<ExprKind::kBinary> {
  BinaryOp op = BinaryOp::kAnd;
  Expr* left = nullptr;
  Expr* right = nullptr;
};

enum class LikeOp : u8 { kLike, kGlob, kRegexp, kMatch };

// value [NOT] LIKE pattern [ESCAPE escape]: the function like(pattern, value[, escape]).
struct LikeExpr : ExprOf<ExprKind::kLike> {
  LikeOp op = LikeOp::kLike;
  bool negated = false;
  Expr* value = nullptr;
  Expr* pattern = nullptr;
  Expr* escape = nullptr;  // may be null
};

struct BetweenExpr : ExprOf<ExprKind::kBetween> {
  bool negated = false;
  Expr* value = nullptr;
  Expr* low = nullptr;
  Expr* high = nullptr;
};

// value [NOT] IN (list) | (select) | table | table_function(args)
struct InExpr : ExprOf<ExprKind::kIn> {
  bool negated = false;
  bool is_function = false;  // table(list)
  Expr* value = nullptr;
  List<Expr*> list;  // also the arguments of a table function
  Select* select = nullptr;
  Name schema;
  Name table;  // present for the last two forms
};

struct WhenArm {
  Expr* when = nullptr;
  Expr* then = nullptr;
};

struct CaseExpr : ExprOf<ExprKind::kCase> {
  Expr* base = nullptr;  // may be null
  List<WhenArm> arms;
  Expr* otherwise = nullptr;  // may be null
};

struct CastExpr : ExprOf<ExprKind::kCast> {
  Expr* value = nullptr;
  std::string_view type;  // as written, e.g. "VARCHAR(10)"; may be empty
};

struct CollateExpr : ExprOf<ExprKind::kCollate> {
  Expr* value = nullptr;
  Name collation;
};

enum class SortOrder : u8 { kUnset, kAsc, kDesc };
enum class NullsOrder : u8 { kUnset, kFirst, kLast };

// In ORDER BY, GROUP BY-like lists, index columns and PRIMARY KEY lists.
struct OrderTerm {
  Expr* expr = nullptr;
  SortOrder order = SortOrder::kUnset;
  NullsOrder nulls = NullsOrder::kUnset;
  bool descending() const { return order == SortOrder::kDesc; }
};

struct FunctionExpr : ExprOf<ExprKind::kFunction> {
  Name name;
  bool bare = false;      // CURRENT_TIME, CURRENT_DATE, CURRENT_TIMESTAMP without parentheses
  bool star = false;      // count(*)
  bool distinct = false;  // f(DISTINCT x)
  List<Expr*> args;
  List<OrderTerm> order_by;    // f(x ORDER BY y)
  Expr* filter = nullptr;      // FILTER (WHERE ...)
  WindowSpec* over = nullptr;  // OVER ...
};

struct ExistsExpr : ExprOf<ExprKind::kExists> {
  Select* select = nullptr;
};

struct SubqueryExpr : ExprOf<ExprKind::kSubquery> {
  Select* select = nullptr;
};

struct RowExpr : ExprOf<ExprKind::kRow> {
  List<Expr*> items;
};

enum class ConflictAction : u8 { kDefault, kRollback, kAbort, kFail, kIgnore, kReplace };

struct RaiseExpr : ExprOf<ExprKind::kRaise> {
  ConflictAction action = ConflictAction::kIgnore;
  Expr* message = nullptr;  // null for RAISE(IGNORE)
};

enum class FrameUnit : u8 { kRange, kRows, kGroups };
enum class FrameBoundKind : u8 {
  kUnboundedPreceding,
  kPreceding,
  kCurrentRow,
  kFollowing,
  kUnboundedFollowing,
};
enum class FrameExclude : u8 { kNoOthers, kCurrentRow, kGroup, kTies };

struct FrameBound {
  FrameBoundKind kind = FrameBoundKind::kUnboundedPreceding;
  Expr* offset = nullptr;  // kPreceding, kFollowing
};

// OVER name | OVER ([base] [PARTITION BY] [ORDER BY] [frame]), and WINDOW name AS (...).
struct WindowSpec {
  Name name;  // OVER name, or the name being defined in a WINDOW clause
  Name base;  // OVER (base ...)
  bool is_reference = false;
  List<Expr*> partition_by;
  List<OrderTerm> order_by;
  bool has_frame = false;  // else RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  FrameUnit unit = FrameUnit::kRange;
  FrameBound start;
  FrameBound end{FrameBoundKind::kCurrentRow, nullptr};
  FrameExclude exclude = FrameExclude::kNoOthers;
};

// ---------------------------------------------------------------- select

enum class ResultKind : u8 { kExpr, kStar, kTableStar };

struct ResultColumn {
  ResultKind kind = ResultKind::kExpr;
  Expr* expr = nullptr;
  Name alias;  // present after AS x or a bare x
  Name table;  // kTableStar: table.*
  Span text;   // the expression as written: the column's name when there is no alias
};

namespace join {
inline constexpr u8 kInner = 0x01;  // comma, JOIN, INNER JOIN; set on every join that is not outer
inline constexpr u8 kCross = 0x02;  // CROSS JOIN: the order of tables is the user's
inline constexpr u8 kNatural = 0x04;
inline constexpr u8 kLeft = 0x08;
inline constexpr u8 kRight = 0x10;  // FULL is kLeft | kRight
inline constexpr u8 kOuter = 0x20;  // set with kLeft or kRight
inline constexpr u8 kComma = 0x40;  // written as a comma
}  // namespace join

struct From;

enum class SourceKind : u8 { kTable, kFunction, kSubquery, kJoin };

// One item of a FROM clause and how it joins all items before it (0 for the first).
struct Source {
  SourceKind kind = SourceKind::kTable;
  u8 join = 0;
  bool not_indexed = false;
  Name schema;
  Name name;   // kTable, kFunction
  Name alias;  // optional
  Name indexed_by;
  List<Expr*> args;          // kFunction
  Select* select = nullptr;  // kSubquery
  From* nested = nullptr;    // kJoin: (a JOIN b ...)
  Expr* on = nullptr;
  bool has_using = false;
  List<Name> using_columns;
  Span span;
};

struct From {
  List<Source*> sources;  // left to right; the join tree is left-deep
};

struct SelectCore {
  bool distinct = false;
  bool is_values = false;
  List<ResultColumn> columns;
  From* from = nullptr;
  Expr* where = nullptr;
  List<Expr*> group_by;
  Expr* having = nullptr;
  List<WindowSpec*> windows;  // WINDOW w AS (...)
  List<RowExpr*> rows;        // VALUES (...), (...)
  Span span;
};

enum class CompoundOp : u8 { kNone, kUnion, kUnionAll, kIntersect, kExcept };

struct SelectArm {
  CompoundOp op = CompoundOp::kNone;  // how it joins the arms before it
  SelectCore* core = nullptr;
};

enum class Materialize : u8 { kAny, kYes, kNo };

struct CommonTable {
  Name name;
  List<Name> columns;
  Materialize materialize = Materialize::kAny;
  Select* select = nullptr;
};

struct With {
  bool recursive = false;
  List<CommonTable*> tables;
};

struct Select {
  With* with = nullptr;
  List<SelectArm> arms;  // at least one
  List<OrderTerm> order_by;
  Expr* limit = nullptr;
  Expr* offset = nullptr;
  Span span;
};

// ---------------------------------------------------------------- statements

enum class StatementKind : u8 {
  kSelect,
  kInsert,
  kUpdate,
  kDelete,
  kCreateTable,
  kCreateIndex,
  kCreateView,
  kCreateTrigger,
  kCreateVirtualTable,
  kDrop,
  kAlter,
  kBegin,
  kCommit,
  kRollback,
  kSavepoint,
  kRelease,
  kPragma,
  kAttach,
  kDetach,
  kVacuum,
  kAnalyze,
  kReindex,
};

enum class Explain : u8 { kNone, kCode, kQueryPlan };

struct Statement {
  StatementKind kind;
  Explain explain = Explain::kNone;
  Span span;  // without the semicolon

  template <class T>
  T* as() {
    DCHECK(kind == T::kKind);
    return static_cast<T*>(this);
  }
  template <class T>
  const T* as() const {
    DCHECK(kind == T::kKind);
    return static_cast<const T*>(this);
  }
};

template <StatementKind K>
struct StatementOf : Statement {
  static constexpr StatementKind kKind = K;
  StatementOf() : Statement{K, Explain::kNone, {}} {}
};

struct SelectStatement : StatementOf<StatementKind::kSelect> {
  Select* select = nullptr;
};

// col = expr, or (a, b) = expr
struct Assignment {
  List<Name> columns;  // more than one: value is a row or a subquery
  bool is_row = false;
  Expr* value = nullptr;
};

struct Upsert {
  List<OrderTerm> target;  // empty: any conflict
  Expr* target_where = nullptr;
  bool do_nothing = false;
  List<Assignment> set;
  Expr* where = nullptr;
};

// The table that a DML statement changes.
struct TargetTable {
  Name schema;
  Name name;
  Name alias;
  Name indexed_by;
  bool not_indexed = false;
};

struct InsertStatement : StatementOf<StatementKind::kInsert> {
  With* with = nullptr;
  ConflictAction conflict = ConflictAction::kDefault;  // REPLACE INTO is kReplace
  TargetTable table;
  bool has_columns = false;
  List<Name> columns;
  Select* select = nullptr;  // also VALUES; null for DEFAULT VALUES
  List<Upsert*> upserts;
  bool has_returning = false;
  List<ResultColumn> returning;
};

struct UpdateStatement : StatementOf<StatementKind::kUpdate> {
  With* with = nullptr;
  ConflictAction conflict = ConflictAction::kDefault;
  TargetTable table;
  List<Assignment> set;
  From* from = nullptr;
  Expr* where = nullptr;
  bool has_returning = false;
  List<ResultColumn> returning;
  List<OrderTerm> order_by;
  Expr* limit = nullptr;
  Expr* offset = nullptr;
};

struct DeleteStatement : StatementOf<StatementKind::kDelete> {
  With* with = nullptr;
  TargetTable table;
  Expr* where = nullptr;
  bool has_returning = false;
  List<ResultColumn> returning;
  List<OrderTerm> order_by;
  Expr* limit = nullptr;
  Expr* offset = nullptr;
};

enum class ForeignAction : u8 { kNoAction, kRestrict, kSetNull, kSetDefault, kCascade };

struct ForeignReference {
  Name table;
  List<Name> columns;  // empty: the parent's primary key
  ForeignAction on_delete = ForeignAction::kNoAction;
  ForeignAction on_update = ForeignAction::kNoAction;
  bool initially_deferred = false;
  std::string_view match;  // MATCH name, ignored
};

enum class ColumnConstraintKind : u8 {
  kPrimaryKey,
  kNotNull,
  kNull,
  kUnique,
  kCheck,
  kDefault,
  kCollate,
  kReferences,
  kGenerated,
};

struct ColumnConstraint {
  ColumnConstraintKind kind = ColumnConstraintKind::kNull;
  Name name;  // CONSTRAINT name
  ConflictAction conflict = ConflictAction::kDefault;
  SortOrder order = SortOrder::kUnset;    // kPrimaryKey
  bool autoincrement = false;             // kPrimaryKey
  bool stored = false;                    // kGenerated: STORED, else VIRTUAL
  Expr* expr = nullptr;                   // kCheck, kDefault, kGenerated
  Span text;                              // the expression as written, without parentheses
  Name collation;                         // kCollate
  ForeignReference* reference = nullptr;  // kReferences
};

struct ColumnDef {
  Name name;
  std::string_view type;  // as written, blanks inside kept; empty when there is none
  List<ColumnConstraint*> constraints;
  Span span;
};

enum class TableConstraintKind : u8 { kPrimaryKey, kUnique, kCheck, kForeignKey };

struct TableConstraint {
  TableConstraintKind kind = TableConstraintKind::kCheck;
  Name name;
  ConflictAction conflict = ConflictAction::kDefault;
  bool autoincrement = false;
  List<OrderTerm> columns;  // kPrimaryKey, kUnique
  List<Name> key;           // kForeignKey
  Expr* expr = nullptr;     // kCheck
  Span text;                // kCheck: the expression as written
  ForeignReference* reference = nullptr;
};

// `body` of a CREATE statement runs from the object's own name to the end: what SQLite stores is
// "CREATE TABLE " + body (also for TEMP and IF NOT EXISTS; "CREATE UNIQUE INDEX " + body).
struct CreateTableStatement : StatementOf<StatementKind::kCreateTable> {
  bool temporary = false;
  bool if_not_exists = false;
  Name schema;
  Name name;
  List<ColumnDef*> columns;
  List<TableConstraint*> constraints;
  bool without_rowid = false;
  bool strict = false;
  Select* as_select = nullptr;
  Span body;
};

struct CreateIndexStatement : StatementOf<StatementKind::kCreateIndex> {
  bool unique = false;
  bool if_not_exists = false;
  Name schema;
  Name name;
  Name table;
  List<OrderTerm> columns;
  Expr* where = nullptr;
  Span body;
};

struct CreateViewStatement : StatementOf<StatementKind::kCreateView> {
  bool temporary = false;
  bool if_not_exists = false;
  Name schema;
  Name name;
  List<Name> columns;
  Select* select = nullptr;
  Span body;
};

enum class TriggerTime : u8 { kBefore, kAfter, kInsteadOf };
enum class TriggerEvent : u8 { kInsert, kUpdate, kDelete };

struct CreateTriggerStatement : StatementOf<StatementKind::kCreateTrigger> {
  bool temporary = false;
  bool if_not_exists = false;
  Name schema;
  Name name;
  TriggerTime time = TriggerTime::kBefore;
  TriggerEvent event = TriggerEvent::kInsert;
  bool has_update_of = false;
  List<Name> update_of;
  Name table_schema;
  Name table;
  Expr* when = nullptr;
  List<Statement*> steps;  // insert, update, delete, select
  Span body;
};

struct CreateVirtualTableStatement : StatementOf<StatementKind::kCreateVirtualTable> {
  bool if_not_exists = false;
  Name schema;
  Name name;
  Name module;
  List<std::string_view> args;  // raw texts between the commas, trimmed
  Span body;
};

enum class ObjectKind : u8 { kTable, kIndex, kView, kTrigger };

struct DropStatement : StatementOf<StatementKind::kDrop> {
  ObjectKind object = ObjectKind::kTable;
  bool if_exists = false;
  Name schema;
  Name name;
};

enum class AlterKind : u8 {
  kRenameTable,
  kRenameColumn,
  kAddColumn,
  kDropColumn,
  kDropConstraint,
  kAddConstraint,  // CHECK only
  kSetNotNull,
  kDropNotNull,
};

struct AlterStatement : StatementOf<StatementKind::kAlter> {
  AlterKind action = AlterKind::kRenameTable;
  Name schema;
  Name table;
  Name column;                            // the old name, or the column to drop or change
  Name new_name;                          // table, column; also the constraint's name
  ColumnDef* added = nullptr;             // kAddColumn
  TableConstraint* constraint = nullptr;  // kAddConstraint
  ConflictAction conflict = ConflictAction::kDefault;  // kSetNotNull
  Span text;  // kAddColumn, kAddConstraint: the definition as written
};

enum class BeginMode : u8 { kDeferred, kImmediate, kExclusive, kConcurrent };

struct BeginStatement : StatementOf<StatementKind::kBegin> {
  BeginMode mode = BeginMode::kDeferred;
};
struct CommitStatement : StatementOf<StatementKind::kCommit> {};
struct RollbackStatement : StatementOf<StatementKind::kRollback> {
  Name savepoint;  // present: ROLLBACK TO name
};
struct SavepointStatement : StatementOf<StatementKind::kSavepoint> {
  Name name;
};
struct ReleaseStatement : StatementOf<StatementKind::kRelease> {
  Name name;
};

struct PragmaStatement : StatementOf<StatementKind::kPragma> {
  Name schema;
  Name name;
  bool has_value = false;
  bool negative = false;   // value is a number with a minus sign, which text does not hold
  std::string_view value;  // without quotes: number, name, string, or ON / DELETE / DEFAULT
};

struct AttachStatement : StatementOf<StatementKind::kAttach> {
  Expr* file = nullptr;
  Expr* schema = nullptr;  // a bare name is a ColumnExpr
  Expr* key = nullptr;
};
struct DetachStatement : StatementOf<StatementKind::kDetach> {
  Expr* schema = nullptr;
};
struct VacuumStatement : StatementOf<StatementKind::kVacuum> {
  Name schema;
  Expr* into = nullptr;
};
struct AnalyzeStatement : StatementOf<StatementKind::kAnalyze> {
  Name schema;  // both absent: everything
  Name name;    // alone it may name a schema, table or index
};
struct ReindexStatement : StatementOf<StatementKind::kReindex> {
  Name schema;
  Name name;  // a table, index or collation
};

}  // namespace db::sql
