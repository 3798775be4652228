#include "fs/state/inode.h"

#include "fs/state/codec.h"

namespace fs {

namespace {

constexpr u8 kInodeVersion = 1;
constexpr u8 kHasSymlink = 1;
constexpr u8 kHasExtents = 2;

bool fits(const Extent& extent) {
  return extent.length > 0 && extent.data != 0 && extent.offset <= kFileBytesMax &&
         extent.offset + extent.length <= kFileBytesMax &&
         u64{extent.data_offset} + extent.length <= kWriteBytesMax;
}

void put_extent_body(const Extent& extent, std::string& out) {
  put_varint(out, extent.length);
  put_varint(out, extent.data_offset);
  put_varint(out, extent.data);
}

Extent read_extent_body(FieldReader& in, u64 offset) {
  Extent extent;
  extent.offset = offset;
  extent.length = in.varint32();
  extent.data_offset = in.varint32();
  extent.data = in.varint();
  return extent;
}

bool read_extents(FieldReader& in, InodeValue& value) {
  if (value.attr.extent_count > kEmbeddedExtents) return false;
  u64 end = 0;
  for (u32 i = 0; i < value.attr.extent_count; ++i) {
    Extent extent = read_extent_body(in, in.varint());
    if (!in.ok() || !fits(extent) || extent.offset < end) return false;
    end = extent.end();
    value.extents.push_back(extent);
  }
  return true;
}

}  // namespace

void encode_inode(const Attributes& attr, std::string_view symlink,
                  const std::vector<Extent>& extents, std::string& out) {
  bool embed = attr.extent_count > 0 && attr.extent_count <= kEmbeddedExtents;
  out.push_back(static_cast<char>(kInodeVersion));
  out.push_back(static_cast<char>((symlink.empty() ? 0 : kHasSymlink) | (embed ? kHasExtents : 0)));
  put_varint(out, attr.mode);
  put_varint(out, attr.uid);
  put_varint(out, attr.gid);
  put_varint(out, attr.nlink);
  put_varint(out, attr.size);
  put_varint(out, attr.allocated);
  put_fixed<i64>(out, attr.atime_ns);
  put_fixed<i64>(out, attr.mtime_ns);
  put_fixed<i64>(out, attr.ctime_ns);
  put_fixed<i64>(out, attr.btime_ns);
  put_varint(out, attr.parent);
  put_varint(out, attr.next_cookie);
  put_varint(out, attr.rdev);
  put_varint(out, attr.xattrs);
  put_varint(out, attr.extent_count);
  if (!symlink.empty()) put_text(out, symlink);
  if (!embed) return;
  for (const Extent& extent : extents) {
    put_varint(out, extent.offset);
    put_extent_body(extent, out);
  }
}

std::optional<InodeValue> decode_inode(std::string_view bytes) {
  FieldReader in(bytes);
  if (in.fixed<u8>() != kInodeVersion) return std::nullopt;
  u8 flags = in.fixed<u8>();
  InodeValue value;
  Attributes& attr = value.attr;
  attr.mode = in.varint32();
  attr.uid = in.varint32();
  attr.gid = in.varint32();
  attr.nlink = in.varint32();
  attr.size = in.varint();
  attr.allocated = in.varint();
  attr.atime_ns = in.fixed<i64>();
  attr.mtime_ns = in.fixed<i64>();
  attr.ctime_ns = in.fixed<i64>();
  attr.btime_ns = in.fixed<i64>();
  attr.parent = in.varint();
  attr.next_cookie = in.varint();
  attr.rdev = in.varint32();
  attr.xattrs = in.varint32();
  attr.extent_count = in.varint32();
  if (flags & kHasSymlink) value.symlink = in.text();
  if ((flags & kHasExtents) && !read_extents(in, value)) return std::nullopt;
  if (!in.done() || attr.size > kFileBytesMax) return std::nullopt;
  return value;
}

void encode_extent(const Extent& extent, std::string& out) {
  put_extent_body(extent, out);
}

std::optional<Extent> decode_extent(u64 offset, std::string_view value) {
  FieldReader in(value);
  Extent extent = read_extent_body(in, offset);
  if (!in.done() || !fits(extent)) return std::nullopt;
  return extent;
}

void encode_entry(const EntryValue& entry, std::string& out) {
  put_varint(out, entry.ino);
  put_varint(out, entry.cookie);
  out.push_back(static_cast<char>(entry.type));
}

std::optional<EntryValue> decode_entry(std::string_view value) {
  FieldReader in(value);
  EntryValue entry;
  entry.ino = in.varint();
  entry.cookie = in.varint();
  entry.type = static_cast<FileType>(in.fixed<u8>());
  if (!in.done() || entry.ino == 0) return std::nullopt;
  return entry;
}

void encode_usage(const Usage& usage, std::string& out) {
  put_varint(out, usage.inodes);
  put_varint(out, usage.bytes);
  put_varint(out, usage.next_ino);
  put_varint(out, usage.next_data);
}

std::optional<Usage> decode_usage(std::string_view value) {
  FieldReader in(value);
  Usage usage;
  usage.inodes = in.varint();
  usage.bytes = in.varint();
  usage.next_ino = in.varint();
  usage.next_data = in.varint();
  if (!in.done()) return std::nullopt;
  return usage;
}

}  // namespace fs
