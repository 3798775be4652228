#include "db/shell/source.h"

#include <editline/readline.h>

#include <cstdlib>
#include <cstring>

namespace db::shell {
namespace {

class FileSource : public LineSource {
 public:
  explicit FileSource(FILE* file) : file_(file) {}
  ~FileSource() override {
    if (file_ != stdin) std::fclose(file_);
    std::free(line_);
  }
  std::optional<std::string> next(bool) override {
    const ssize_t got = ::getline(&line_, &capacity_, file_);
    if (got < 0) return std::nullopt;
    std::string text(line_, static_cast<size_t>(got));
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return text;
  }

 private:
  FILE* file_;
  char* line_ = nullptr;
  size_t capacity_ = 0;
};

// Completion runs inside libedit, which calls back without a context.
Shell* g_completing = nullptr;

std::vector<std::string> candidates_for(const std::string& prefix) {
  std::vector<std::string> found;
  const auto add = [&](const std::string& word) {
    if (sqlite3_strnicmp(word.c_str(), prefix.c_str(), static_cast<int>(prefix.size())) == 0)
      found.push_back(word);
  };
  for (int i = 0; i < sqlite3_keyword_count(); ++i) {
    const char* name = nullptr;
    int length = 0;
    sqlite3_keyword_name(i, &name, &length);
    add({name, static_cast<size_t>(length)});
  }
  if (g_completing == nullptr) return found;
  for (const std::string& name :
       g_completing->column_of("SELECT name FROM sqlite_schema UNION SELECT c.name FROM "
                               "sqlite_schema AS t, pragma_table_info(t.name) AS "
                               "c WHERE t.type='table' ORDER BY 1")) {
    add(name);
  }
  return found;
}

char* next_candidate(const char* prefix, int state) {
  static std::vector<std::string> found;
  static size_t at = 0;
  if (state == 0) {
    found = candidates_for(prefix);
    at = 0;
  }
  return at < found.size() ? ::strdup(found[at++].c_str()) : nullptr;
}

char** complete(const char* text, int, int) {
  return rl_completion_matches(text, next_candidate);
}

class TerminalSource : public LineSource {
 public:
  explicit TerminalSource(Shell& shell) : shell_(shell) {
    g_completing = &shell;
    rl_attempted_completion_function = complete;
    using_history();
    if (const char* home = std::getenv("HOME")) history_ = std::string(home) + "/.fleetdb_history";
    if (!history_.empty()) read_history(history_.c_str());
    stifle_history(2000);
  }
  ~TerminalSource() override {
    g_completing = nullptr;
    if (!history_.empty()) write_history(history_.c_str());
  }
  std::optional<std::string> next(bool continues) override {
    const Settings& settings = shell_.settings();
    char* line = readline((continues ? settings.continue_prompt : settings.prompt).c_str());
    if (line == nullptr) {
      std::printf("\n");
      return std::nullopt;
    }
    std::string text = line;
    std::free(line);
    return text;
  }
  bool interactive() const override { return true; }
  void remember(const std::string& text) override { add_history(text.c_str()); }

 private:
  Shell& shell_;
  std::string history_;
};

}  // namespace

std::unique_ptr<LineSource> file_source(const std::string& path) {
  FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "r");
  if (file == nullptr) return nullptr;
  return std::make_unique<FileSource>(file);
}

std::unique_ptr<LineSource> terminal_source(Shell& shell) {
  return std::make_unique<TerminalSource>(shell);
}

}  // namespace db::shell
