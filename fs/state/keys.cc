#include "fs/state/keys.h"

#include "base/bytes.h"

namespace fs {

namespace {

std::string numbered(char kind, u64 number, size_t extra) {
  std::string key;
  key.reserve(9 + extra);
  key.push_back(kind);
  char bytes[8];
  base::store_be64(bytes, number);
  key.append(bytes, 8);
  return key;
}

}  // namespace

std::string entry_key(Ino directory, std::string_view name) {
  return numbered('D', directory, name.size()).append(name);
}
std::string entry_prefix(Ino directory) {
  return numbered('D', directory, 0);
}
std::string inode_key(Ino ino) {
  return numbered('I', ino, 0);
}
std::string extent_key(Ino ino, u64 offset) {
  std::string key = numbered('C', ino, 8);
  char bytes[8];
  base::store_be64(bytes, offset);
  return key.append(bytes, 8);
}
std::string extent_prefix(Ino ino) {
  return numbered('C', ino, 0);
}
std::string xattr_key(Ino ino, std::string_view name) {
  return numbered('X', ino, name.size()).append(name);
}
std::string xattr_prefix(Ino ino) {
  return numbered('X', ino, 0);
}
std::string orphan_key(Ino ino) {
  return numbered('O', ino, 0);
}

std::optional<ParsedKey> parse_key(std::string_view key) {
  ParsedKey parsed;
  if (key == kUsageKey) {
    parsed.kind = 'Q';
    return parsed;
  }
  if (key.size() < 9) return std::nullopt;
  parsed.kind = key[0];
  parsed.ino = base::load_be64(key.data() + 1);
  std::string_view rest = key.substr(9);
  switch (parsed.kind) {
    case 'I':
    case 'O':
      if (!rest.empty()) return std::nullopt;
      return parsed;
    case 'C':
      if (rest.size() != 8) return std::nullopt;
      parsed.offset = base::load_be64(rest.data());
      return parsed;
    case 'D':
    case 'X':
      if (rest.empty() || rest.size() > kNameBytesMax) return std::nullopt;
      parsed.name = rest;
      return parsed;
    default:
      return std::nullopt;
  }
}

}  // namespace fs
