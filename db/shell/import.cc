#include "db/shell/import.h"

#include "base/files.h"

namespace db::shell {

bool SeparatedReader::next_field(std::string& field) {
  field.clear();
  bool quoted = false;
  if (at_ < text_.size() && text_[at_] == '"') {
    quoted = true;
    ++at_;
  }
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '\n') ++next_line_;
    if (quoted) {
      if (c != '"') {
        field += c;
      } else if (at_ < text_.size() && text_[at_] == '"') {
        field += text_[at_++];
      } else {
        quoted = false;
      }
    } else if (c == separator_) {
      return true;
    } else if (c == '\n') {
      if (field.ends_with('\r')) field.pop_back();
      return false;
    } else {
      field += c;
    }
  }
  return false;
}

bool SeparatedReader::next(std::vector<std::string>& fields) {
  fields.clear();
  if (at_ >= text_.size()) return false;
  line_ = next_line_;
  std::string field;
  bool more = true;
  while (more) {
    more = next_field(field);
    fields.push_back(field);
  }
  return true;
}

namespace {

struct Plan {
  std::string file, table;
  int skip = 0;
  char separator = '|';
};

bool parse(Shell& shell, const std::vector<std::string>& words, Plan& plan) {
  const Style& style = shell.settings().style;
  if (!style.column_separator.empty()) plan.separator = style.column_separator[0];
  std::vector<std::string> names;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--csv" || words[i] == "-csv") {
      plan.separator = ',';
    } else if ((words[i] == "--skip" || words[i] == "-skip") && i + 1 < words.size()) {
      plan.skip = std::atoi(words[++i].c_str());
    } else {
      names.push_back(words[i]);
    }
  }
  if (names.size() != 2) {
    shell.complain("usage: .import ?--csv? ?--skip N? FILE TABLE");
    return false;
  }
  plan.file = names[0];
  plan.table = names[1];
  return true;
}

size_t column_count(Shell& shell, const std::string& table) {
  return shell
      .column_of("SELECT name FROM pragma_table_info(" + sql_literal({SQLITE_TEXT, table}) + ")")
      .size();
}

bool create_table(Shell& shell, const Plan& plan, const std::vector<std::string>& names) {
  std::string sql = "CREATE TABLE " + sql_name(plan.table) + "(";
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = names[i].empty() ? "c" + std::to_string(i + 1) : names[i];
    sql += (i > 0 ? "," : "") + ("\n" + sql_name(name)) + " ANY";
  }
  return shell.execute(sql + "\n)");
}

void insert_rows(Shell& shell, const Plan& plan, SeparatedReader& reader, size_t columns) {
  std::string sql = "INSERT INTO " + sql_name(plan.table) + " VALUES(?";
  for (size_t i = 1; i < columns; ++i) sql += ",?";
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(shell.db(), (sql + ")").c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    shell.complain(sqlite3_errmsg(shell.db()));
    return;
  }
  // One transaction, unless the user has one open.
  const bool own = sqlite3_get_autocommit(shell.db()) != 0;
  if (own) sqlite3_exec(shell.db(), "BEGIN", nullptr, nullptr, nullptr);
  std::vector<std::string> fields;
  while (reader.next(fields)) {
    if (fields.size() < columns) {
      std::fprintf(stderr,
                   "%s:%d: expected %zu columns but found %zu - filling the rest with NULL\n",
                   plan.file.c_str(), reader.line(), columns, fields.size());
    } else if (fields.size() > columns) {
      std::fprintf(stderr, "%s:%d: expected %zu columns but found %zu - extras ignored\n",
                   plan.file.c_str(), reader.line(), columns, fields.size());
    }
    for (size_t i = 0; i < columns; ++i) {
      const int index = static_cast<int>(i) + 1;
      if (i < fields.size()) {
        sqlite3_bind_text(statement, index, fields[i].data(), static_cast<int>(fields[i].size()),
                          SQLITE_STATIC);
      } else {
        sqlite3_bind_null(statement, index);
      }
    }
    sqlite3_step(statement);
    if (sqlite3_reset(statement) != SQLITE_OK) {
      std::fprintf(stderr, "%s:%d: INSERT failed: %s\n", plan.file.c_str(), reader.line(),
                   sqlite3_errmsg(shell.db()));
      ++shell.errors();
    }
  }
  sqlite3_finalize(statement);
  if (own) sqlite3_exec(shell.db(), "COMMIT", nullptr, nullptr, nullptr);
}

}  // namespace

void import_command(Shell& shell, const std::vector<std::string>& words) {
  Plan plan;
  if (!parse(shell, words, plan)) return;
  base::Result<std::string> text = base::read_file(plan.file);
  if (!text.ok()) {
    shell.complain("cannot open \"" + plan.file + "\"");
    return;
  }
  SeparatedReader reader(*text, plan.separator);
  std::vector<std::string> fields;
  for (int i = 0; i < plan.skip && reader.next(fields); ++i) {
  }
  size_t columns = column_count(shell, plan.table);
  if (columns == 0) {
    // The first record names the columns of a new table.
    if (!reader.next(fields)) {
      shell.complain(plan.file + ": empty file");
      return;
    }
    if (!create_table(shell, plan, fields)) return;
    columns = fields.size();
  }
  insert_rows(shell, plan, reader, columns);
}

}  // namespace db::shell
