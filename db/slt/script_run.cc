#include "db/slt/script_run.h"

#include "base/hash.h"

#include <openssl/evp.h>

#include <algorithm>
#include <unordered_map>

namespace db::slt {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr u64 kDefaultHashThreshold = 8;

// MD5 over each value followed by LF: the corpus's fingerprint of a result.
std::string fingerprint(const std::vector<std::string>& values) {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  EVP_DigestInit_ex(context, EVP_md5(), nullptr);
  for (const std::string& value : values) {
    EVP_DigestUpdate(context, value.data(), value.size());
    EVP_DigestUpdate(context, "\n", 1);
  }
  u8 digest[16];
  unsigned size = 0;
  EVP_DigestFinal_ex(context, digest, &size);
  EVP_MD_CTX_free(context);
  return base::to_hex({digest, size});
}

// The hash in "30 values hashing to 3c13dee48d9356ae19af2515e05e6b54", or "".
std::string recorded_hash(const std::vector<std::string>& expected) {
  if (expected.size() != 1) return "";
  const size_t at = expected[0].find(" values hashing to ");
  return at == std::string::npos ? "" : expected[0].substr(at + 19);
}

class ScriptRun {
 public:
  ScriptRun(const Library& library, const RunOptions& options)
      : calls_(library.calls()), options_(options) {}
  ~ScriptRun() {
    if (db_ != nullptr) calls_.close(db_);
  }

  Result<RunReport> run(const Script& script) {
    TRY(open());
    for (const Record& record : script.records) {
      if (record.skip) {
        skip(record);
        continue;
      }
      if (record.kind == RecordKind::kHalt) break;
      run_record(record);
    }
    return std::move(report_);
  }

 private:
  Status open() {
    if (calls_.open(options_.database.c_str(), &db_) != kOk) {
      return Error(ErrorCode::kIo, options_.database + ": " + calls_.errmsg(db_));
    }
    for (const std::string& pragma : options_.pragmas) {
      if (calls_.exec(db_, pragma.c_str(), nullptr, nullptr, nullptr) != kOk) {
        return Error(ErrorCode::kIo, pragma + ": " + calls_.errmsg(db_));
      }
    }
    return {};
  }

  void skip(const Record& record) {
    if (record.kind != RecordKind::kHalt && record.kind != RecordKind::kHashThreshold)
      ++report_.skipped;
    if (record.kind != RecordKind::kQuery || record.label.empty()) return;
    std::string hash = recorded_hash(record.expected);
    if (hash.empty()) hash = fingerprint(record.expected);
    labels_.emplace(record.label, hash);
  }

  void run_record(const Record& record) {
    switch (record.kind) {
      case RecordKind::kHashThreshold:
        threshold_ = record.threshold;
        break;
      case RecordKind::kStatementOk:
      case RecordKind::kStatementError:
        run_statement(record);
        break;
      case RecordKind::kQuery:
        run_query(record);
        break;
      case RecordKind::kHalt:
        break;
    }
  }

  void run_statement(const Record& record) {
    ++report_.statements;
    const bool worked = calls_.exec(db_, record.sql.c_str(), nullptr, nullptr, nullptr) == kOk;
    if (worked == (record.kind == RecordKind::kStatementOk)) {
      ++report_.passed;
    } else {
      fail(record, worked ? "it should have failed" : calls_.errmsg(db_), {});
    }
  }

  void run_query(const Record& record) {
    ++report_.queries;
    void* statement = nullptr;
    if (calls_.prepare_v2(db_, record.sql.c_str(), -1, &statement, nullptr) != kOk) {
      fail(record, calls_.errmsg(db_), {});
      return;
    }
    const int columns = calls_.column_count(statement);
    if (columns != static_cast<int>(record.types.size())) {
      calls_.finalize(statement);
      fail(record, "it has " + std::to_string(columns) + " columns", {});
      return;
    }
    values_.clear();
    // An error while stepping ends the result; the rows so far are compared.
    while (calls_.step(statement) == kRow) {
      for (int column = 0; column < columns; ++column) {
        values_.push_back(render(statement, column, record.types[static_cast<size_t>(column)]));
      }
    }
    calls_.finalize(statement);
    sort(record.sort, static_cast<size_t>(columns));
    compare(record);
  }

  // The column's letter, not the value's type, decides how it is shown.
  std::string render(void* statement, int column, char letter) {
    if (calls_.column_type(statement, column) == kTypeNull) return "NULL";
    if (letter == 'I') return std::to_string(calls_.column_int(statement, column));
    if (letter == 'R') {
      // The engine's own printf: it rounds to 16 significant digits, which libc's does not.
      char* text = calls_.mprintf("%.3f", calls_.column_double(statement, column));
      std::string value = text != nullptr ? text : "";
      calls_.free(text);
      return value;
    }
    const unsigned char* text = calls_.column_text(statement, column);
    if (text == nullptr || *text == 0) return "(empty)";
    std::string value(reinterpret_cast<const char*>(text));
    for (char& c : value) {
      if (c < ' ' || c > '~') c = '@';
    }
    return value;
  }

  void sort(SortMode mode, size_t columns) {
    if (mode == SortMode::kValueSort || (mode == SortMode::kRowSort && columns == 1)) {
      std::sort(values_.begin(), values_.end());
    } else if (mode == SortMode::kRowSort && columns > 0) {
      std::vector<std::vector<std::string>> rows;
      for (size_t at = 0; at < values_.size(); at += columns) {
        auto first = std::make_move_iterator(values_.begin() + static_cast<std::ptrdiff_t>(at));
        rows.emplace_back(first, first + static_cast<std::ptrdiff_t>(columns));
      }
      std::sort(rows.begin(), rows.end());
      values_.clear();
      for (auto& row : rows) std::move(row.begin(), row.end(), std::back_inserter(values_));
    }
  }

  void compare(const Record& record) {
    std::string hash;
    if (!record.label.empty()) {
      hash = fingerprint(values_);
      auto [known, added] = labels_.emplace(record.label, hash);
      if (!added && known->second != hash) {
        fail(record, "the label '" + record.label + "' had another result before", values_);
        return;
      }
    }
    std::vector<std::string> got;
    const bool hashed = (threshold_ > 0 && values_.size() > threshold_) ||
                        (!recorded_hash(record.expected).empty() && values_.size() > 1);
    if (hashed) {
      if (hash.empty()) hash = fingerprint(values_);
      got.push_back(std::to_string(values_.size()) + " values hashing to " + hash);
    }
    const std::vector<std::string>& shown = hashed ? got : values_;
    if (shown == record.expected || values_ == record.expected) {
      ++report_.passed;
    } else {
      fail(record, "the result differs", shown);
    }
  }

  void fail(const Record& record, std::string why, std::vector<std::string> got) {
    ++report_.failed;
    if (report_.failures.size() >= options_.failures_kept) return;
    report_.failures.push_back(
        {record.line, record.sql, std::move(why), record.expected, std::move(got)});
  }

  const Library::Calls& calls_;
  const RunOptions& options_;
  void* db_ = nullptr;
  u64 threshold_ = kDefaultHashThreshold;
  std::vector<std::string> values_;
  std::unordered_map<std::string, std::string> labels_;
  RunReport report_;
};

}  // namespace

Result<RunReport> run_script(const Library& library, const Script& script,
                             const RunOptions& options) {
  return ScriptRun(library, options).run(script);
}

}  // namespace db::slt
