#include "team/agent/symbols.h"

#include <re2/re2.h>

#include <map>
#include <memory>

namespace team {
namespace {

constexpr size_t kSymbolTextMax = 120;

struct Language {
  std::vector<std::string_view> endings;
  const char* pattern;  // of a line that defines something
};

const Language kLanguages[] = {
    {{".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh"},
     R"(^(?:(?:typedef\s+)?(?:struct|class|enum|union|namespace)\b[^;]*$|#define\s+\w+|)"
     R"([A-Za-z_][\w:<>,&*\s\[\]]*[\s*&]~?[\w:~]+\s*\([^;]*$|template\s*<))"},
    {{".py"}, R"(^\s*(?:async\s+)?(?:def|class)\s+\w+)"},
    {{".go"}, R"(^(?:func|type|var|const)\s)"},
    {{".rs"},
     R"(^\s*(?:pub(?:\([^)]*\))?\s+)?(?:async\s+|unsafe\s+)*(?:fn|struct|enum|trait|impl|mod|type|const|static|macro_rules!)\s)"},
    {{".js", ".mjs", ".ts", ".tsx", ".jsx"},
     R"(^\s*(?:export\s+)?(?:default\s+)?(?:async\s+)?(?:function|class|interface|enum|type)\s+\w+|^(?:export\s+)?(?:const|let|var)\s+\w+\s*=)"},
    {{".java"},
     R"(^\s*(?:public|private|protected|static|final|abstract|class|interface|enum|record)\b[^;=]*[({]\s*$)"},
    {{".sh"}, R"(^\s*(?:function\s+\w+|\w+\s*\(\)))"},
    {{"Makefile", ".mk"}, R"(^[A-Za-z0-9_./%-]+\s*:[^=])"},
};

const RE2* pattern_for(std::string_view path) {
  static const auto* const compiled = [] {
    auto* all = new std::vector<std::unique_ptr<RE2>>();
    for (const Language& language : kLanguages)
      all->push_back(std::make_unique<RE2>(language.pattern));
    return all;
  }();
  for (size_t i = 0; i < std::size(kLanguages); ++i) {
    for (const std::string_view ending : kLanguages[i].endings) {
      if (path.ends_with(ending)) return (*compiled)[i].get();
    }
  }
  return nullptr;
}

}  // namespace

std::vector<Symbol> symbols_of(std::string_view path, std::string_view content) {
  std::vector<Symbol> symbols;
  const RE2* pattern = pattern_for(path);
  if (pattern == nullptr) return symbols;
  int number = 0;
  while (!content.empty()) {
    const size_t end = content.find('\n');
    const std::string_view line = content.substr(0, end);
    ++number;
    if (RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *pattern)) {
      symbols.push_back({number, std::string(line.substr(0, kSymbolTextMax))});
    }
    if (end == std::string_view::npos) break;
    content.remove_prefix(end + 1);
  }
  return symbols;
}

}  // namespace team
