// How a result is printed: the output modes of the shell. A Printer gets the column names and then
// the rows of one statement; modes that align columns hold the rows until finish().
//
// Widths are counted in code points, wide East Asian letters as two. Thread-compatible.
#pragma once

#include "base/types.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace db::shell {

enum class Mode {
  kAscii,
  kBox,
  kColumn,
  kCsv,
  kHtml,
  kInsert,
  kJson,
  kLine,
  kList,
  kMarkdown,
  kQuote,
  kTable,
  kTabs
};

// "box" and so on; false when there is no such mode.
bool parse_mode(std::string_view name, Mode& mode);
const char* name_of(Mode mode);

// A value as the C API gave it.
struct Cell {
  int type = 5;  // SQLITE_INTEGER and so on
  std::string text;
};

struct Style {
  Mode mode = Mode::kList;
  bool headers = false;
  std::string column_separator = "|";
  std::string row_separator = "\n";
  std::string null_text;
  std::string insert_table = "tab";
  std::vector<int> widths;  // of the columns; negative: flush right; 0: as wide as needed
};

class Printer {
 public:
  virtual ~Printer() = default;
  virtual void begin(const std::vector<std::string>& names) = 0;
  virtual void row(const std::vector<Cell>& cells) = 0;
  virtual void finish() = 0;
};

// Appends to `out`, which must outlive the printer. `style` is copied.
std::unique_ptr<Printer> make_printer(const Style& style, std::string& out);

// An SQL literal: 'it''s', x'00ff', 1.5, NULL.
std::string sql_literal(const Cell& cell);
// The same on one line: line ends inside text are written as replace('a\\nb','\\n',char(10)).
std::string sql_literal_on_one_line(const Cell& cell);
// A field of a CSV file, quoted when it must be.
std::string csv_field(std::string_view text, std::string_view separator);
// A name, in double quotes when it is not plain.
std::string sql_name(std::string_view name);

}  // namespace db::shell
