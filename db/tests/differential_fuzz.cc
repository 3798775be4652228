// Random statements on two SQLite-compatible libraries in one process; counts statements and
// differences and prints each. Deterministic: one seed, one sequence.
//
// FUZZ_TRACE=1 writes each statement to stderr before it runs.
//
//   differential_fuzz FLEETDB_LIBRARY [SQLITE_LIBRARY] [STATEMENTS] [SEED]
//
// Compared: success or failure, the number of columns, and the rows with their types, as multisets.
// Libraries before 3.53 print reals in another way, so against them no reals and no blobs are made.
#include "db/tests/loaded_engine.h"
#include "db/tests/random_sql.h"

#include <algorithm>
#include <cctype>

using db_fuzz::Engine;
using db_fuzz::RandomSql;

// Explained: of rows that are equal under NOCASE, UNION keeps the right arm's in 3.53 and the last
// one inserted before. The rows must be the same but for case, and there must be such a UNION.
static bool same_but_for_case(std::string a, std::string b, const std::string& sql) {
  bool merges = sql.find("UNION") != std::string::npos || sql.find("EXCEPT") != std::string::npos ||
                sql.find("INTERSECT") != std::string::npos;
  auto fold = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  return merges && sql.find("NOCASE") != std::string::npos && fold(a) == fold(b);
}

// Explained: a window function must keep every row of its WHERE. 3.40 now and then loses one whose
// condition holds a CASE; then its own answer without the window has another number of rows.
static bool contradicts_itself(Engine& engine, const std::string& answer, const std::string& sql) {
  const size_t from = sql.find(" FROM t1 WHERE ");
  if (sql.find(" OVER ") == std::string::npos || from == std::string::npos) return false;
  std::string message;
  const std::string plain = engine.run("SELECT x" + sql.substr(from), message);
  return message.empty() && std::count(plain.begin(), plain.end(), '\n') !=
                                std::count(answer.begin(), answer.end(), '\n');
}

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FLEETDB_LIBRARY [SQLITE_LIBRARY] [STATEMENTS] [SEED]\n",
                 argv[0]);
    return 2;
  }
  Engine ours(argv[1]);
  Engine theirs(argc > 2 && *argv[2] != 0 ? argv[2] : "libsqlite3.so.0");
  long statements = argc > 3 ? std::atol(argv[3]) : 20000;
  u64 seed = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1;
  RandomSql generator(seed, theirs.version() >= 3053000);
  std::string message;
  std::string other;
  for (const std::string& sql : generator.schema()) {
    ours.run(sql, message);
    theirs.run(sql, other);
  }
  long differences = 0;
  long errors = 0;
  long explained = 0;
  const bool old = theirs.version() < 3053000;
  for (long i = 0; i < statements; ++i) {
    std::string sql = generator.statement();
    if (std::getenv("FUZZ_TRACE") != nullptr) std::fprintf(stderr, "%s;\n", sql.c_str());
    std::string a = ours.run(sql, message);
    std::string b = theirs.run(sql, other);
    errors += b == "error" ? 1 : 0;
    if (a == b) continue;
    if (old && (same_but_for_case(a, b, sql) || contradicts_itself(theirs, b, sql))) {
      ++explained;
      continue;
    }
    if (++differences > 20) continue;
    // The first row that differs.
    size_t at = static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                    a.begin());
    size_t line = at == 0 ? 0 : a.rfind('\n', at - 1) + 1;
    auto row_at = [line](const std::string& text) {
      return line < text.size() ? text.substr(line, text.find('\n', line) - line)
                                : std::string("(end)");
    };
    std::printf("DIFFERENT %s;\n  ours:   %s %s\n  theirs: %s %s\n", sql.c_str(), row_at(a).c_str(),
                message.c_str(), row_at(b).c_str(), other.c_str());
  }
  std::printf(
      "%ld statements with seed %llu against SQLite %d: %ld differences, %ld explained (%ld were "
      "errors)\n",
      statements, static_cast<unsigned long long>(seed), theirs.version(), differences, explained,
      errors);
  return differences == 0 ? 0 : 1;
}
