// Keys and values of the tree may come from a hostile log or page: decoders refuse them or give
// values that encode and decode to themselves.
#include "base/check.h"
#include "fs/state/inode.h"
#include "fs/state/keys.h"

namespace {

void check_key(std::string_view bytes) {
  auto key = fs::parse_key(bytes);
  if (!key) return;
  switch (key->kind) {
    case 'D':
      CHECK(fs::entry_key(key->ino, key->name) == bytes);
      break;
    case 'X':
      CHECK(fs::xattr_key(key->ino, key->name) == bytes);
      break;
    case 'I':
      CHECK(fs::inode_key(key->ino) == bytes);
      break;
    case 'C':
      CHECK(fs::extent_key(key->ino, key->offset) == bytes);
      break;
    case 'O':
      CHECK(fs::orphan_key(key->ino) == bytes);
      break;
    default:
      CHECK(bytes == fs::kUsageKey);
  }
}

void check_inode(std::string_view bytes) {
  auto value = fs::decode_inode(bytes);
  if (!value) return;
  std::string again;
  fs::encode_inode(value->attr, value->symlink, value->extents, again);
  auto same = fs::decode_inode(again);
  CHECK(same && same->attr == value->attr && same->symlink == value->symlink);
  CHECK(same->extents == value->extents);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_key(bytes);
  check_inode(bytes);
  if (auto extent = fs::decode_extent(4096, bytes)) {
    std::string again;
    fs::encode_extent(*extent, again);
    CHECK(fs::decode_extent(4096, again) == extent);
  }
  if (auto entry = fs::decode_entry(bytes)) {
    std::string again;
    fs::encode_entry(*entry, again);
    CHECK(fs::decode_entry(again)->ino == entry->ino);
  }
  if (auto usage = fs::decode_usage(bytes)) {
    std::string again;
    fs::encode_usage(*usage, again);
    CHECK(fs::decode_usage(again) == usage);
  }
  return 0;
}
