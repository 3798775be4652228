#include "db/shell/dump.h"

namespace db::shell {
namespace {

std::string pattern_clause(const std::vector<std::string>& words) {
  if (words.size() < 2) return "1";
  std::string clause;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].starts_with("--")) continue;
    const std::string literal = sql_literal({SQLITE_TEXT, words[i]});
    clause +=
        (clause.empty() ? "" : " OR ") + ("name LIKE " + literal + " OR tbl_name LIKE " + literal);
  }
  return clause.empty() ? "1" : "(" + clause + ")";
}

// The columns that an INSERT can set: not the generated ones.
std::vector<std::string> stored_columns(Shell& shell, const std::string& table) {
  std::vector<std::string> columns;
  shell.query("SELECT name FROM pragma_table_xinfo(" + sql_literal({SQLITE_TEXT, table}) +
                  ") WHERE hidden=0",
              [&](const std::vector<Cell>& cells) { columns.push_back(cells[0].text); });
  return columns;
}

void dump_rows(Shell& shell, const std::string& table) {
  std::string select;
  for (const std::string& column : stored_columns(shell, table)) {
    select += (select.empty() ? "" : ",") + sql_name(column);
  }
  if (select.empty()) return;
  const std::string prefix = "INSERT INTO " + sql_name(table) + " VALUES(";
  shell.query("SELECT " + select + " FROM " + sql_name(table), [&](const std::vector<Cell>& cells) {
    std::string line = prefix;
    for (size_t i = 0; i < cells.size(); ++i)
      line += (i > 0 ? "," : "") + sql_literal_on_one_line(cells[i]);
    shell.print(line + ");\n");
  });
}

void dump_sequence(Shell& shell) {
  shell.print("DELETE FROM sqlite_sequence;\n");
  dump_rows(shell, "sqlite_sequence");
}

// A table with a quoted name may be one that a virtual table keeps: creating that one has made it
// already.
void print_create(Shell& shell, const std::string& sql) {
  constexpr std::string_view kPrefix = "CREATE TABLE ";
  const bool quoted =
      sql.size() > kPrefix.size() && (sql[kPrefix.size()] == '"' || sql[kPrefix.size()] == '\'');
  if (quoted && sql.starts_with(kPrefix)) {
    shell.print("CREATE TABLE IF NOT EXISTS " + sql.substr(kPrefix.size()) + ";\n");
  } else {
    shell.print(sql + ";\n");
  }
}

void dump_tables(Shell& shell, const std::string& which) {
  bool has_sequence = false;
  shell.query("SELECT name, sql FROM sqlite_schema WHERE type='table' AND sql NOT NULL AND " +
                  which + " ORDER BY tbl_name='sqlite_sequence', rowid",
              [&](const std::vector<Cell>& cells) {
                const std::string& name = cells[0].text;
                if (name == "sqlite_sequence") {
                  has_sequence = true;
                } else if (name.starts_with("sqlite_stat")) {
                  shell.print("ANALYZE sqlite_schema;\n");
                  dump_rows(shell, name);
                } else if (!name.starts_with("sqlite_")) {
                  print_create(shell, cells[1].text);
                  dump_rows(shell, name);
                }
              });
  if (has_sequence) dump_sequence(shell);
}

}  // namespace

void dump_command(Shell& shell, const std::vector<std::string>& words) {
  const std::string which = pattern_clause(words);
  shell.print("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n");
  // One snapshot for all of it.
  sqlite3_exec(shell.db(), "SAVEPOINT dump", nullptr, nullptr, nullptr);
  const int before = shell.errors();
  dump_tables(shell, which);
  for (const std::string& sql : shell.column_of("SELECT sql FROM sqlite_schema WHERE sql NOT NULL "
                                                "AND type IN ('index','trigger','view') AND " +
                                                which + " ORDER BY type COLLATE NOCASE")) {
    shell.print(sql + ";\n");
  }
  sqlite3_exec(shell.db(), "RELEASE dump", nullptr, nullptr, nullptr);
  shell.print(shell.errors() == before ? "COMMIT;\n" : "ROLLBACK; -- due to errors\n");
}

void schema_command(Shell& shell, const std::vector<std::string>& words) {
  for (const std::string& sql :
       shell.column_of("SELECT sql FROM sqlite_schema WHERE sql NOT NULL AND name NOT LIKE "
                       "'sqlite__%' ESCAPE '_' AND " +
                       pattern_clause(words) + " ORDER BY tbl_name, type DESC, name")) {
    shell.print(sql + ";\n");
  }
}

}  // namespace db::shell
