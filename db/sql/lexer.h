// Splits SQL text into tokens exactly as SQLite does. lex() is a pure function of text and offset,
// so that the parser can look ahead by calling it again. Blanks and comments are skipped before a
// token. Text ends at its length or at the first NUL byte. Thread-compatible.
#pragma once

#include "base/types.h"

#include <string_view>

namespace db::sql {

enum class T : u8 {
  // First the keywords, in the order of kKeywords in lexer.cc. Names end in a bar-free spelling.
  kAbort,
  kAction,
  kAdd,
  kAfter,
  kAll,
  kAlter,
  kAlways,
  kAnalyze,
  kAnd,
  kAs,
  kAsc,
  kAttach,
  kAutoincrement,
  kBefore,
  kBegin,
  kBetween,
  kBy,
  kCascade,
  kCase,
  kCast,
  kCheck,
  kCollate,
  kColumn,
  kCommit,
  kConflict,
  kConstraint,
  kCreate,
  kCross,
  kCurrent,
  kCurrentDate,
  kCurrentTime,
  kCurrentTimestamp,
  kDatabase,
  kDefault,
  kDeferrable,
  kDeferred,
  kDelete,
  kDesc,
  kDetach,
  kDistinct,
  kDo,
  kDrop,
  kEach,
  kElse,
  kEndKw,
  kEscape,
  kExcept,
  kExclude,
  kExclusive,
  kExists,
  kExplain,
  kFail,
  kFilter,
  kFirst,
  kFollowing,
  kFor,
  kForeign,
  kFrom,
  kFull,
  kGenerated,
  kGlob,
  kGroup,
  kGroups,
  kHaving,
  kIf,
  kIgnore,
  kImmediate,
  kIn,
  kIndex,
  kIndexed,
  kInitially,
  kInner,
  kInsert,
  kInstead,
  kIntersect,
  kInto,
  kIs,
  kIsnull,
  kJoin,
  kKey,
  kLast,
  kLeft,
  kLike,
  kLimit,
  kMatch,
  kMaterialized,
  kNatural,
  kNo,
  kNot,
  kNothing,
  kNotnull,
  kNull,
  kNulls,
  kOf,
  kOffset,
  kOn,
  kOr,
  kOrder,
  kOthers,
  kOuter,
  kOver,
  kPartition,
  kPlan,
  kPragma,
  kPreceding,
  kPrimary,
  kQuery,
  kRaise,
  kRange,
  kRecursive,
  kReferences,
  kRegexp,
  kReindex,
  kRelease,
  kRename,
  kReplace,
  kRestrict,
  kReturning,
  kRight,
  kRollback,
  kRow,
  kRows,
  kSavepoint,
  kSelect,
  kSet,
  kTable,
  kTemp,
  kTemporary,
  kThen,
  kTies,
  kTo,
  kTransaction,
  kTrigger,
  kUnbounded,
  kUnion,
  kUnique,
  kUpdate,
  kUsing,
  kVacuum,
  kValues,
  kView,
  kVirtual,
  kWhen,
  kWhere,
  kWindow,
  kWith,
  kWithin,
  kWithout,
  kId,       // identifier, also "x" `x` [x]
  kString,   // 'x'
  kInteger,  // digits or 0x...
  kFloat,
  kBlob,      // x'00ff'
  kVariable,  // ? ?1 :a @a $a
  kSemi,
  kLp,
  kRp,
  kComma,
  kDot,
  kPlus,
  kMinus,
  kStar,
  kSlash,
  kPercent,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kShiftLeft,
  kShiftRight,
  kBitAnd,
  kBitOr,
  kConcat,
  kBitNot,
  kArrow,
  kDoubleArrow,
  kEof,      // end of text
  kIllegal,  // cannot start a token; its span is what SQLite quotes
  kPoison,   // the parser's token after an error: no rule accepts it
};
inline constexpr int kKeywordCount = static_cast<int>(T::kId);

struct Token {
  T kind = T::kEof;
  bool separators = false;  // a number with digit separators: 1_000
  u32 begin = 0;
  u32 end = 0;
};

// The token at or after `at`.
Token lex(std::string_view sql, u32 at);

// Keyword, or kId for any other word. Case does not matter.
T keyword_of(std::string_view word);
// "SELECT" and so on, for completion and sqlite3_keyword_name; index below kKeywordCount.
std::string_view keyword_name(int index);

// May this keyword stand for an identifier where the grammar has no use for the keyword?
bool falls_back_to_id(T kind);

// Letters, digits, _, $ and all bytes from 0x80.
bool is_id_char(u8 c);

}  // namespace db::sql
