#include "db/slt/record.h"

#include <algorithm>
#include <charconv>

namespace db::slt {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\v\f") == std::string_view::npos;
}

bool equal_without_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while (true) {
    at = line.find_first_not_of(" \t", at);
    if (at == std::string_view::npos) return words;
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
}

// Hands out lines without comments, and without the CR of a CRLF.
class Lines {
 public:
  explicit Lines(std::string_view text) : left_(text) {}

  bool next(std::string_view& line) {
    while (!left_.empty()) {
      const size_t end = left_.find('\n');
      line = left_.substr(0, end);
      left_.remove_prefix(end == std::string_view::npos ? left_.size() : end + 1);
      ++number_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.starts_with('#')) return true;
    }
    return false;
  }
  u32 number() const { return number_; }

 private:
  std::string_view left_;
  u32 number_ = 0;
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view engine) : lines_(text), engine_(engine) {}

  Result<Script> parse() {
    std::string_view line;
    while (lines_.next(line)) {
      if (is_blank(line)) continue;
      TRY(parse_line(words_of(line)));
    }
    return std::move(script_);
  }

 private:
  Status parse_line(const std::vector<std::string_view>& words) {
    const std::string_view word = words[0];
    if (word == "skipif" || word == "onlyif") {
      if (words.size() < 2) return bad("a condition without a name");
      record_.skip |= equal_without_case(words[1], engine_) == (word == "skipif");
      return {};
    }
    record_.line = lines_.number();
    if (word == "statement") {
      TRY(parse_statement(words));
    } else if (word == "query") {
      TRY(parse_query(words));
    } else if (word == "hash-threshold") {
      record_.kind = RecordKind::kHashThreshold;
      if (words.size() < 2 || !parse_number(words[1], record_.threshold)) {
        return bad("hash-threshold without a number");
      }
    } else if (word == "halt") {
      record_.kind = RecordKind::kHalt;
    } else {
      return bad("'" + std::string(word) + "' is not a record");
    }
    script_.records.push_back(std::move(record_));
    record_ = {};
    return {};
  }

  Status parse_statement(const std::vector<std::string_view>& words) {
    if (words.size() > 1 && words[1] == "ok") {
      record_.kind = RecordKind::kStatementOk;
    } else if (words.size() > 1 && words[1] == "error") {
      record_.kind = RecordKind::kStatementError;
    } else {
      return bad("a statement is 'ok' or 'error'");
    }
    read_sql(false);
    return {};
  }

  Status parse_query(const std::vector<std::string_view>& words) {
    record_.kind = RecordKind::kQuery;
    if (words.size() < 2) return bad("a query without column types");
    record_.types = words[1];
    if (record_.types.find_first_not_of("TIR") != std::string::npos) {
      return bad("column types are T, I or R");
    }
    if (words.size() > 2) {
      if (words[2] == "rowsort") {
        record_.sort = SortMode::kRowSort;
      } else if (words[2] == "valuesort") {
        record_.sort = SortMode::kValueSort;
      } else if (words[2] != "nosort") {
        return bad("unknown sort mode '" + std::string(words[2]) + "'");
      }
    }
    if (words.size() > 3) record_.label = words[3];
    if (read_sql(true)) read_expected();
    return {};
  }

  // True when it ended at "----".
  bool read_sql(bool may_have_result) {
    std::string_view line;
    while (lines_.next(line)) {
      if (is_blank(line)) return false;
      if (may_have_result && line == "----") return true;
      if (!record_.sql.empty()) record_.sql += '\n';
      record_.sql += line;
    }
    return false;
  }

  void read_expected() {
    std::string_view line;
    while (lines_.next(line) && !is_blank(line)) record_.expected.emplace_back(line);
  }

  static bool parse_number(std::string_view word, u64& number) {
    return std::from_chars(word.data(), word.data() + word.size(), number).ec == std::errc();
  }

  Error bad(const std::string& what) const {
    return Error(ErrorCode::kInvalidArgument,
                 "line " + std::to_string(lines_.number()) + ": " + what);
  }

  Lines lines_;
  std::string_view engine_;
  Record record_;
  Script script_;
};

}  // namespace

Result<Script> parse_script(std::string_view text, std::string_view engine) {
  return Parser(text, engine).parse();
}

}  // namespace db::slt
