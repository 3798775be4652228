// Keywords and sqlite3_complete(), for shells.
#include "db/capi/handle.h"
#include "db/sql/lexer.h"

using db::sql::T;
using db::sql::Token;

int sqlite3_keyword_count() {
  return db::sql::kKeywordCount;
}

int sqlite3_keyword_name(int index, const char** name, int* length) {
  if (index < 0 || index >= db::sql::kKeywordCount || name == nullptr || length == nullptr)
    return SQLITE_ERROR;
  const std::string_view word = db::sql::keyword_name(index);
  *name = word.data();
  *length = static_cast<int>(word.size());
  return SQLITE_OK;
}

int sqlite3_keyword_check(const char* word, int length) {
  return db::sql::keyword_of({word, static_cast<size_t>(length)}) != T::kId ? 1 : 0;
}

namespace {

// Follows the tokens of a text and knows whether it ends after a whole statement. A trigger's body
// holds semicolons of its own: it ends with "; END ;".
class Completeness {
 public:
  void take(T token) {
    if (token == T::kSemi) {
      complete_ = !in_trigger_ || before_ == T::kEndKw;
      if (complete_) start();
      before_ = token;
      return;
    }
    complete_ = false;
    if (in_trigger_) {
      // END counts only when a semicolon stands before it.
      before_ = token == T::kEndKw && before_ != T::kSemi ? T::kId : token;
      return;
    }
    ++position_;
    if (position_ == 1 && token == T::kExplain) {
      position_ = 0;
    } else if (position_ == 1) {
      creating_ = token == T::kCreate;
    } else if (creating_ && token == T::kTrigger) {
      in_trigger_ = true;
    } else if (creating_ && token != T::kTemp) {
      creating_ = false;
    }
    before_ = token;
  }
  bool complete() const { return complete_; }

 private:
  void start() {
    position_ = 0;
    creating_ = in_trigger_ = false;
  }
  bool complete_ = false;
  bool creating_ = false;
  bool in_trigger_ = false;
  int position_ = 0;
  T before_ = T::kSemi;
};

// A comment or a quoted name that does not end leaves the text incomplete whatever stands before
// it.
bool ends_inside(std::string_view sql, const Token& last) {
  return last.kind == T::kIllegal && last.end == sql.size();
}

}  // namespace

int sqlite3_complete(const char* sql) {
  if (sql == nullptr) return SQLITE_MISUSE;
  const std::string_view text = sql;
  Completeness state;
  for (u32 at = 0;;) {
    const Token token = db::sql::lex(text, at);
    if (token.kind == T::kEof) return state.complete() ? 1 : 0;
    if (ends_inside(text, token)) return 0;
    state.take(token.kind);
    at = token.end;
  }
}

int sqlite3_complete16(const void* sql) {
  if (sql == nullptr) return SQLITE_MISUSE;
  return sqlite3_complete(
      db::capi::utf16_to_utf8(sql, db::capi::utf16_length(sql), db::Encoding::kUtf16le).c_str());
}
