#include "team/core/glob.h"

#include "base/types.h"

#include <vector>

namespace team {
namespace {

enum class Part : u8 { kChar, kOne, kName, kPath };
struct Token {
  Part part;
  char c = 0;
};

std::vector<Token> tokens_of(std::string_view glob) {
  std::vector<Token> out;
  for (size_t i = 0; i < glob.size(); ++i) {
    if (glob[i] == '?') {
      out.push_back({Part::kOne});
    } else if (glob[i] != '*') {
      out.push_back({Part::kChar, glob[i]});
    } else if (i + 1 < glob.size() && glob[i + 1] == '*') {
      out.push_back({Part::kPath});
      ++i;
    } else {
      out.push_back({Part::kName});
    }
  }
  return out;
}

bool is_run(const Token& token) {
  return token.part == Part::kName || token.part == Part::kPath;
}

// Could one character satisfy both tokens?
bool share_char(const Token& a, const Token& b) {
  auto takes_slash = [](const Token& t) {
    return t.part == Part::kPath || (t.part == Part::kChar && t.c == '/');
  };
  if (a.part == Part::kChar && b.part == Part::kChar) return a.c == b.c;
  if (a.part == Part::kChar) return a.c != '/' || takes_slash(b);
  if (b.part == Part::kChar) return b.c != '/' || takes_slash(a);
  return true;
}

// reach[i][j]: some text is matched by the first i tokens of a and the first j of b.
bool overlap(const std::vector<Token>& a, const std::vector<Token>& b) {
  std::vector<std::vector<bool>> reach(a.size() + 1, std::vector<bool>(b.size() + 1, false));
  reach[0][0] = true;
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (!reach[i][j]) continue;
      // A run may match nothing.
      if (i < a.size() && is_run(a[i])) reach[i + 1][j] = true;
      if (j < b.size() && is_run(b[j])) reach[i][j + 1] = true;
      if (i == a.size() || j == b.size() || !share_char(a[i], b[j])) continue;
      // Both take one character; a run may stay where it is.
      if (is_run(a[i])) reach[i][j + 1] = true;
      if (is_run(b[j])) reach[i + 1][j] = true;
      reach[i + 1][j + 1] = true;
    }
  }
  return reach[a.size()][b.size()];
}

}  // namespace

bool glob_matches(std::string_view glob, std::string_view path) {
  std::vector<Token> literal;
  for (char c : path) literal.push_back({Part::kChar, c});
  return overlap(tokens_of(glob), literal);
}

bool globs_overlap(std::string_view a, std::string_view b) {
  return overlap(tokens_of(a), tokens_of(b));
}

}  // namespace team
