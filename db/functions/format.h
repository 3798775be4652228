// SQLite's own printf: the conversions d i u x X o p e E f g G s z c q Q w r n % T S, the flags
// - + space # ! 0 and comma, width, precision and l/ll. One engine serves the SQL function
// printf()/format(), which takes its arguments from SQL values, and sqlite3_mprintf() and its
// kin, which take them from a va_list. Thread-compatible.
#pragma once

#include "base/types.h"

#include <string>
#include <string_view>

namespace db {

class FormatArgs {
 public:
  virtual ~FormatArgs() = default;
  // `longs`: 0 int, 1 long, 2 long long.
  virtual i64 next_integer(int longs, bool is_signed) = 0;
  virtual f64 next_real() = 0;
  // False for NULL. `owned` asks to free the text after use (%z).
  virtual bool next_text(std::string_view& text, i64 precision, bool owned) = 0;
  virtual void next_text_done() {}
  // %c: the bytes of one character.
  virtual std::string next_char() = 0;
  virtual u64 next_pointer() = 0;
  // %n: how much has been written so far.
  virtual void next_count(int written) = 0;
  // %T and %S exist only inside SQLite.
  virtual bool is_sql() const = 0;
};

// Appends to `out`. Stops quietly once `out` is longer than `size_max`.
void format(std::string& out, const char* pattern, FormatArgs& args, size_t size_max = 1000000000);

// The text with doubled quotes: what %q does.
void append_quoted(std::string& out, std::string_view text, char quote);

}  // namespace db
