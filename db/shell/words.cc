#include "db/shell/words.h"

#include <algorithm>

namespace db::shell {

std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    switch (c) {
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'a':
        out += '\a';
        break;
      case '0':
      case '1':
      case '2':
      case '3': {
        int value = 0;
        size_t digits = 0;
        while (digits < 3 && i < text.size() && text[i] >= '0' && text[i] <= '7') {
          value = value * 8 + (text[i++] - '0');
          ++digits;
        }
        --i;
        out += static_cast<char>(value);
        break;
      }
      default:
        out += c;
    }
  }
  return out;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (size_t at = 0; at < line.size();) {
    const char c = line[at];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at;
    } else if (c == '\'' || c == '"') {
      size_t end = at + 1;
      while (end < line.size() && line[end] != c) end += c == '"' && line[end] == '\\' ? 2 : 1;
      end = std::min(end, line.size());
      const std::string_view inner = line.substr(at + 1, end - at - 1);
      words.push_back(c == '"' ? unescape(inner) : std::string(inner));
      at = end + 1;
    } else {
      const size_t end = std::min(line.find_first_of(" \t\r\n", at), line.size());
      words.emplace_back(line.substr(at, end - at));
      at = end;
    }
  }
  return words;
}

}  // namespace db::shell
