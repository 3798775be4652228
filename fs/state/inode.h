// One inode: what stat shows, where its bytes are, and its encoding as the value of an `I` key.
//
// A file's bytes are extents: (offset, length) -> (data id, offset in that data). They are sorted,
// never overlap, and gaps are holes. Up to kEmbeddedExtents ride in the `I` value; a file with more
// keeps one `C` key per extent instead. Overwriting splits extents, so nothing is ever written in
// place. Thread-compatible.
#pragma once

#include "fs/state/types.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fs {

struct Extent {
  u64 offset = 0;       // in the file, bytes
  u32 length = 0;       // bytes
  u32 data_offset = 0;  // where in the data it starts
  DataId data = 0;
  u64 end() const { return offset + length; }
  bool operator==(const Extent&) const = default;
};

inline constexpr size_t kEmbeddedExtents = 4;

// `size` of a directory is its number of entries; `parent` is the directory of a directory (for the
// loop check of rename) and 0 for others; `allocated` is the sum of the extents' lengths.
struct Attributes {
  u32 mode = 0;  // with the S_IFMT bits
  u32 uid = 0;
  u32 gid = 0;
  u32 nlink = 0;
  u64 size = 0;
  u64 allocated = 0;
  i64 atime_ns = 0;
  i64 mtime_ns = 0;
  i64 ctime_ns = 0;
  i64 btime_ns = 0;
  Ino parent = 0;
  u64 next_cookie = 3;  // directories: cookie of the next entry (1 and 2 are "." and "..")
  u32 rdev = 0;
  u32 xattrs = 0;        // number of extended attributes
  u32 extent_count = 0;  // beyond kEmbeddedExtents they are in `C` keys

  FileType type() const { return type_of_mode(mode); }
  bool is_directory() const { return type() == FileType::kDirectory; }
  bool is_regular() const { return type() == FileType::kRegular; }
  bool operator==(const Attributes&) const = default;
};

struct InodeValue {
  Attributes attr;
  std::string symlink;          // target, for symbolic links
  std::vector<Extent> extents;  // empty when extent_count > kEmbeddedExtents
};

void encode_inode(const Attributes& attr, std::string_view symlink,
                  const std::vector<Extent>& extents, std::string& out);
// nullopt when the bytes are not an inode.
std::optional<InodeValue> decode_inode(std::string_view value);

// Value of a `C` key: all but the offset, which is in the key.
void encode_extent(const Extent& extent, std::string& out);
std::optional<Extent> decode_extent(u64 offset, std::string_view value);

// Value of a `D` key.
struct EntryValue {
  Ino ino = 0;
  u64 cookie = 0;
  FileType type = FileType::kUnknown;
};
void encode_entry(const EntryValue& entry, std::string& out);
std::optional<EntryValue> decode_entry(std::string_view value);

// Value of the `Q` key.
struct Usage {
  u64 inodes = 0;
  u64 bytes = 0;     // allocated
  u64 next_ino = 0;  // counters, within the workspace's range
  u64 next_data = 0;
  bool operator==(const Usage&) const = default;
};
void encode_usage(const Usage& usage, std::string& out);
std::optional<Usage> decode_usage(std::string_view value);

}  // namespace fs
