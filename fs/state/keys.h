// The keys of a workspace, in the log and in the tree. Numbers are big-endian, so that a
// directory's entries, a file's extents and an inode's attributes are each one range.
//
//   D dir name      -> EntryValue      an entry
//   I ino           -> InodeValue
//   C ino offset    -> Extent          only for files with more than kEmbeddedExtents
//   X ino name      -> bytes           extended attribute
//   O ino           -> session         unlinked but still referenced; reclaimed when its session
//   ends Q               -> Usage
// There is no key by cookie: a directory is loaded whole, and its order follows from the values.
#pragma once

#include "fs/state/types.h"

#include <optional>
#include <string>
#include <string_view>

namespace fs {

std::string entry_key(Ino directory, std::string_view name);
std::string entry_prefix(Ino directory);
std::string inode_key(Ino ino);
std::string extent_key(Ino ino, u64 offset);
std::string extent_prefix(Ino ino);
std::string xattr_key(Ino ino, std::string_view name);
std::string xattr_prefix(Ino ino);
std::string orphan_key(Ino ino);
inline constexpr std::string_view kOrphanPrefix = "O";
inline constexpr std::string_view kUsageKey = "Q";

struct ParsedKey {
  char kind = 0;  // one of DICXOQ
  Ino ino = 0;
  u64 offset = 0;         // C
  std::string_view name;  // D and X; points into the key
};
// nullopt when it is no key of ours (hostile or damaged bytes).
std::optional<ParsedKey> parse_key(std::string_view key);

}  // namespace fs
