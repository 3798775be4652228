#include "db/shell/table.h"

#include "base/json.h"
#include "db/capi/sqlite3.h"
#include "db/shell/grid.h"

#include <algorithm>
#include <tuple>

namespace db::shell {
namespace {

constexpr struct {
  const char* name;
  Mode mode;
} kModes[] = {{"ascii", Mode::kAscii},       {"box", Mode::kBox},     {"column", Mode::kColumn},
              {"csv", Mode::kCsv},           {"html", Mode::kHtml},   {"insert", Mode::kInsert},
              {"json", Mode::kJson},         {"line", Mode::kLine},   {"list", Mode::kList},
              {"markdown", Mode::kMarkdown}, {"quote", Mode::kQuote}, {"table", Mode::kTable},
              {"tabs", Mode::kTabs}};

// One line a row, fields between separators: list, tabs, csv, ascii, quote.
class Separated : public Printer {
 public:
  Separated(const Style& style, std::string& out) : style_(style), out_(out) {}

  void begin(const std::vector<std::string>& names) override {
    if (!style_.headers) return;
    std::vector<Cell> cells;
    for (const std::string& name : names) cells.push_back({SQLITE_TEXT, name});
    row(cells);
  }

  void row(const std::vector<Cell>& cells) override {
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) out_ += style_.mode == Mode::kQuote ? std::string(",") : style_.column_separator;
      out_ += field(cells[i]);
    }
    out_ += style_.mode == Mode::kQuote ? std::string("\n") : style_.row_separator;
  }

  void finish() override {}

 private:
  std::string field(const Cell& cell) const {
    if (style_.mode == Mode::kQuote) return sql_literal(cell);
    if (cell.type == SQLITE_NULL) return style_.null_text;
    return style_.mode == Mode::kCsv ? csv_field(cell.text, style_.column_separator) : cell.text;
  }

  Style style_;
  std::string& out_;
};

// `name = value`, a blank line between rows.
class Lines : public Printer {
 public:
  Lines(const Style& style, std::string& out) : style_(style), out_(out) {}

  void begin(const std::vector<std::string>& names) override {
    names_ = names;
    width_ = 5;
    for (const std::string& name : names) width_ = std::max(width_, display_width(name));
  }

  void row(const std::vector<Cell>& cells) override {
    if (rows_++ > 0) out_ += style_.row_separator;
    for (size_t i = 0; i < cells.size(); ++i) {
      out_.append(static_cast<size_t>(width_ - display_width(names_[i])), ' ');
      out_ += names_[i] + " = ";
      out_ += cells[i].type == SQLITE_NULL ? style_.null_text : cells[i].text;
      out_ += style_.row_separator;
    }
  }

  void finish() override {}

 private:
  Style style_;
  std::string& out_;
  std::vector<std::string> names_;
  int width_ = 0;
  int rows_ = 0;
};

class JsonRows : public Printer {
 public:
  explicit JsonRows(std::string& out) : out_(out) {}

  void begin(const std::vector<std::string>& names) override { names_ = names; }

  void row(const std::vector<Cell>& cells) override {
    out_ += rows_++ == 0 ? "[{" : ",\n{";
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) out_ += ',';
      out_ += base::json_quote(names_[i]) + ":" + value(cells[i]);
    }
    out_ += '}';
  }

  void finish() override {
    if (rows_ > 0) out_ += "]\n";
  }

 private:
  static std::string value(const Cell& cell) {
    if (cell.type == SQLITE_NULL) return "null";
    if (cell.type == SQLITE_INTEGER) return cell.text;
    if (cell.type != SQLITE_FLOAT) return base::json_quote(cell.text);
    if (cell.text == "Inf") return "1e999";
    return cell.text == "-Inf" ? "-1e999" : cell.text;
  }

  std::string& out_;
  std::vector<std::string> names_;
  int rows_ = 0;
};

class Inserts : public Printer {
 public:
  Inserts(const Style& style, std::string& out) : style_(style), out_(out) {}

  void begin(const std::vector<std::string>& names) override {
    prefix_ = "INSERT INTO " + sql_name(style_.insert_table);
    if (style_.headers) {
      for (size_t i = 0; i < names.size(); ++i)
        prefix_ += (i == 0 ? "(" : ",") + sql_name(names[i]);
      prefix_ += ')';
    }
    prefix_ += " VALUES(";
  }

  void row(const std::vector<Cell>& cells) override {
    out_ += prefix_;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) out_ += ',';
      out_ += sql_literal_on_one_line(cells[i]);
    }
    out_ += ");\n";
  }

  void finish() override {}

 private:
  Style style_;
  std::string& out_;
  std::string prefix_;
};

class Html : public Printer {
 public:
  Html(const Style& style, std::string& out) : style_(style), out_(out) {}

  void begin(const std::vector<std::string>& names) override {
    if (!style_.headers) return;
    out_ += "<TR>";
    for (const std::string& name : names) out_ += "<TH>" + escaped(name) + "</TH>\n";
    out_ += "</TR>\n";
  }

  void row(const std::vector<Cell>& cells) override {
    out_ += "<TR>";
    for (const Cell& cell : cells) {
      out_ += "<TD>" + escaped(cell.type == SQLITE_NULL ? style_.null_text : cell.text) + "</TD>\n";
    }
    out_ += "</TR>\n";
  }

  void finish() override {}

 private:
  static std::string escaped(std::string_view text) {
    std::string out;
    for (char c : text) {
      switch (c) {
        case '<':
          out += "&lt;";
          break;
        case '>':
          out += "&gt;";
          break;
        case '&':
          out += "&amp;";
          break;
        case '"':
          out += "&quot;";
          break;
        case '\'':
          out += "&#39;";
          break;
        default:
          out += c;
      }
    }
    return out;
  }

  Style style_;
  std::string& out_;
};

bool is_plain_name(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  const bool letters = std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
  return letters && sqlite3_keyword_check(name.data(), static_cast<int>(name.size())) == 0;
}

}  // namespace

bool parse_mode(std::string_view name, Mode& mode) {
  for (const auto& known : kModes) {
    // A prefix will do, as "col" for "column".
    if (!name.empty() && std::string_view(known.name).starts_with(name)) {
      mode = known.mode;
      return true;
    }
  }
  return false;
}

const char* name_of(Mode mode) {
  for (const auto& known : kModes) {
    if (known.mode == mode) return known.name;
  }
  return "";
}

std::unique_ptr<Printer> make_printer(const Style& style, std::string& out) {
  switch (style.mode) {
    case Mode::kBox:
    case Mode::kColumn:
    case Mode::kMarkdown:
    case Mode::kTable:
      return make_grid_printer(style, out);
    case Mode::kLine:
      return std::make_unique<Lines>(style, out);
    case Mode::kJson:
      return std::make_unique<JsonRows>(out);
    case Mode::kInsert:
      return std::make_unique<Inserts>(style, out);
    case Mode::kHtml:
      return std::make_unique<Html>(style, out);
    default:
      return std::make_unique<Separated>(style, out);
  }
}

std::string sql_literal(const Cell& cell) {
  if (cell.type == SQLITE_NULL) return "NULL";
  if (cell.type == SQLITE_INTEGER) return cell.text;
  if (cell.type == SQLITE_FLOAT) {
    if (cell.text == "Inf") return "1e999";
    return cell.text == "-Inf" ? "-1e999" : cell.text;
  }
  if (cell.type == SQLITE_BLOB) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string out = "X'";
    for (char c : cell.text) {
      out += kDigits[static_cast<u8>(c) >> 4];
      out += kDigits[c & 15];
    }
    return out + "'";
  }
  std::string out = "'";
  for (char c : cell.text) {
    if (c == '\'') out += c;
    out += c;
  }
  return out + "'";
}

std::string sql_literal_on_one_line(const Cell& cell) {
  std::string literal = sql_literal(cell);
  if (cell.type != SQLITE_TEXT) return literal;
  // Each kind of line end gets a spelling that the text does not contain.
  for (const auto& [letter, code, spelling] :
       {std::tuple{'\n', "10", "\\n"}, std::tuple{'\r', "13", "\\r"}}) {
    if (cell.text.find(letter) == std::string::npos) continue;
    std::string stand_in = spelling;
    while (cell.text.find(stand_in) != std::string::npos) stand_in += "u";
    std::string spelled;
    for (char c : literal) c == letter ? spelled += stand_in : spelled += c;
    literal = "replace(" + spelled + ",'" + stand_in + "',char(" + code + "))";
  }
  return literal;
}

std::string csv_field(std::string_view text, std::string_view separator) {
  const bool needs_quotes =
      text.empty() || (!separator.empty() && text.find(separator) != std::string_view::npos) ||
      std::any_of(text.begin(), text.end(), [](char c) {
        return c == '"' || static_cast<u8>(c) <= ' ' || c == '\'' || c == 0x7f;
      });
  if (!needs_quotes) return std::string(text);
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += c;
    out += c;
  }
  return out + "\"";
}

std::string sql_name(std::string_view name) {
  if (is_plain_name(name)) return std::string(name);
  std::string out = "\"";
  for (char c : name) {
    if (c == '"') out += c;
    out += c;
  }
  return out + "\"";
}

}  // namespace db::shell
