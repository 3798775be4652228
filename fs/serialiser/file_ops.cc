// Attributes and bytes of files. A file's bytes are a map of extents (fs/state/inode.h); every
// change of it is one splice.
#include "base/check.h"
#include "fs/serialiser/step.h"
#include "fs/state/keys.h"
#include "fs/state/mutant.h"

#include <algorithm>
#include <cerrno>

namespace fs {

int Step::perform(const Getattr& op) {
  Node* node = nullptr;
  if (int error = node_of(op.ino, node)) return error;
  effects_.reply.ino = op.ino;
  effects_.reply.attr = node->attr;
  return 0;
}

void Step::kill_privileges(Attributes& attr) {
  if (attr.is_directory()) return;
  attr.mode &= ~u32{S_ISUID};
  if (attr.mode & S_IXGRP) attr.mode &= ~u32{S_ISGID};
}

int Step::perform(const Setattr& op) {
  Node* node = nullptr;
  int error = op.size ? file_of(op.ino, node) : node_of(op.ino, node);
  if (error) return error;
  if (op.size && *op.size > kFileBytesMax) return EFBIG;
  start(RecordOp::kSetattr, op.ino);
  Attributes& attr = node->attr;
  if (op.size) resize(op.ino, *node, *op.size);
  if (op.uid) attr.uid = *op.uid;
  if (op.gid) attr.gid = *op.gid;
  if (op.uid || op.gid || op.kill_suid_sgid) kill_privileges(attr);
  if (op.mode) attr.mode = (attr.mode & S_IFMT) | (*op.mode & 07777);
  if (op.atime_ns) attr.atime_ns = *op.atime_ns;
  if (op.mtime_ns) attr.mtime_ns = *op.mtime_ns;
  attr.ctime_ns = op.ctime_ns.value_or(request_.now_ns);
  touch(op.ino, *node);
  effects_.reply.ino = op.ino;
  effects_.reply.attr = attr;
  return 0;
}

void Step::resize(Ino ino, Node& node, u64 size) {
  if (size < node.attr.size && !FS_MUTANT(kShrinkKeepsBytes))
    splice(ino, node, size, node.attr.size - size, {});
  node.attr.size = size;
  node.attr.mtime_ns = node.attr.ctime_ns = request_.now_ns;
  touch(ino, node);
  publish(Invalidation::Kind::kData, ino);
}

u64 Step::covered(const Node& node, u64 offset, u64 length) {
  u64 sum = 0;
  auto at = std::partition_point(node.extents.begin(), node.extents.end(),
                                 [&](const Extent& e) { return e.end() <= offset; });
  for (; at != node.extents.end() && at->offset < offset + length; ++at) {
    sum += std::min(at->end(), offset + length) - std::max(at->offset, offset);
  }
  return sum;
}

void Step::splice(Ino ino, Node& node, u64 offset, u64 length, const std::vector<Extent>& fresh) {
  std::vector<Extent>& extents = node.extents;
  u64 end = offset + length;
  auto first = std::partition_point(extents.begin(), extents.end(),
                                    [&](const Extent& e) { return e.end() <= offset; });
  auto last =
      std::partition_point(first, extents.end(), [&](const Extent& e) { return e.offset < end; });
  std::vector<Extent> pieces;
  if (first != last && first->offset < offset) {
    pieces.push_back(*first);
    pieces.back().length = static_cast<u32>(offset - first->offset);
  }
  pieces.insert(pieces.end(), fresh.begin(), fresh.end());
  if (first != last && (last - 1)->end() > end) {
    Extent tail = *(last - 1);
    u32 cut = static_cast<u32>(end - tail.offset);
    tail.offset = end;
    tail.length -= cut;
    if (!FS_MUTANT(kTailNotShifted)) tail.data_offset += cut;
    pieces.push_back(tail);
  }
  u64 gone = covered(node, offset, length);
  u64 come = 0;
  for (const Extent& extent : fresh) come += extent.length;

  std::vector<Extent> before(first, last);
  size_t from = static_cast<size_t>(first - extents.begin());
  auto at = extents.erase(first, last);
  extents.insert(at, pieces.begin(), pieces.end());
  put_extent_changes(ino, node, before, from, before.size(), pieces.size());
  node.attr.extent_count = static_cast<u32>(extents.size());
  node.attr.allocated += come - gone;
  s_.usage_.bytes += come - gone;
  if (come != gone) put_usage();
  touch(ino, node);
}

// Keeps the `C` keys equal to the map: `removed` extents (`before`) at position `from` have become
// `added` ones.
void Step::put_extent_changes(Ino ino, const Node& node, const std::vector<Extent>& before,
                              size_t from, size_t removed, size_t added) {
  const std::vector<Extent>& now = node.extents;
  size_t count_before = now.size() + removed - added;
  bool were_keys = count_before > kEmbeddedExtents;
  bool are_keys = now.size() > kEmbeddedExtents;
  auto put = [&](const Extent& extent) {
    scratch_.clear();
    encode_extent(extent, scratch_);
    encode_put(late_, extent_key(ino, extent.offset), scratch_);
  };
  auto gone = [&](const Extent& extent) { encode_delete(late_, extent_key(ino, extent.offset)); };
  if (!were_keys && !are_keys) return;
  if (!were_keys) {
    for (const Extent& extent : now) put(extent);
    return;
  }
  auto fresh_from = now.begin() + static_cast<std::ptrdiff_t>(from);
  auto fresh_to = fresh_from + static_cast<std::ptrdiff_t>(added);
  if (!are_keys) {
    for (auto e = now.begin(); e != fresh_from; ++e) gone(*e);
    for (const Extent& extent : before) gone(extent);
    for (auto e = fresh_to; e != now.end(); ++e) gone(*e);
    return;
  }
  for (const Extent& extent : before) {
    bool stays = std::any_of(fresh_from, fresh_to,
                             [&](const Extent& e) { return e.offset == extent.offset; });
    if (!stays) gone(extent);
  }
  for (auto e = fresh_from; e != fresh_to; ++e) {
    if (std::find(before.begin(), before.end(), *e) == before.end()) put(*e);
  }
}

int Step::perform(const Read& op) {
  Node* node = nullptr;
  if (int error = file_of(op.ino, node)) return error;
  if (op.offset >= node->attr.size) return 0;
  u64 end = std::min(op.offset + op.length, node->attr.size);
  u64 at = op.offset;
  auto& pieces = effects_.reply.pieces;
  auto extent = std::partition_point(node->extents.begin(), node->extents.end(),
                                     [&](const Extent& e) { return e.end() <= op.offset; });
  for (; at < end; ++extent) {
    bool more = extent != node->extents.end() && extent->offset < end;
    u64 data_from = more ? std::max(extent->offset, at) : end;
    if (at < data_from) pieces.push_back({0, 0, static_cast<u32>(data_from - at)});
    if (!more) break;
    u64 data_to = std::min(extent->end(), end);
    u32 skipped = static_cast<u32>(data_from - extent->offset);
    pieces.push_back(
        {extent->data, extent->data_offset + skipped, static_cast<u32>(data_to - data_from)});
    at = data_to;
  }
  return 0;
}

int Step::perform(const Write& op) {
  Node* node = nullptr;
  if (int error = file_of(op.ino, node)) return error;
  if (op.length > kWriteBytesMax) return EINVAL;
  bool append = op.append && !FS_MUTANT(kAppendAtOffset);
  u64 offset = append ? node->attr.size : op.offset;
  effects_.reply.size = op.length;
  effects_.reply.attr = node->attr;
  if (op.length == 0) return 0;
  if (offset > kFileBytesMax - op.length) return EFBIG;
  u64 old = covered(*node, offset, op.length);
  if (int error = room_for_bytes(op.length - old)) return error;
  start(RecordOp::kWrite, op.ino);
  header_.data = s_.usage_.next_data++;
  header_.data_length = op.length;
  put_usage();
  splice(op.ino, *node, offset, op.length, {Extent{offset, op.length, 0, header_.data}});
  Attributes& attr = node->attr;
  if (!FS_MUTANT(kSizeNotGrown)) attr.size = std::max(attr.size, offset + op.length);
  attr.mtime_ns = attr.ctime_ns = request_.now_ns;
  if (op.kill_suid_sgid) kill_privileges(attr);
  note_fragmentation(op.ino, *node);
  publish(Invalidation::Kind::kData, op.ino);
  effects_.reply.ino = op.ino;
  effects_.reply.attr = attr;
  return 0;
}

void Step::note_fragmentation(Ino ino, const Node& node) {
  constexpr size_t kStep = 64;
  constexpr u64 kSmall = 16 * 1024;
  size_t count = node.extents.size();
  bool fragmented = count >= kStep && count % kStep == 0 && node.attr.allocated / count < kSmall;
  if (fragmented && s_.fragmented_.size() < 1000) s_.fragmented_.push_back(ino);
}

int Step::perform(const Fallocate& op) {
  Node* node = nullptr;
  if (int error = file_of(op.ino, node)) return error;
  if (op.length == 0) return EINVAL;
  if (op.offset > kFileBytesMax || op.length > kFileBytesMax - op.offset) return EFBIG;
  bool keep = op.mode & kFallocKeepSize;
  bool punch = op.mode & kFallocPunchHole;
  bool zero = op.mode & kFallocZeroRange;
  if (op.mode & ~u32{kFallocKeepSize | kFallocPunchHole | kFallocZeroRange}) return EOPNOTSUPP;
  if ((punch && !keep) || (punch && zero)) return EOPNOTSUPP;
  start(RecordOp::kFallocate, op.ino);
  // Space is not set aside: a hole reads as zeros, and the quota is asked again at the write.
  if (punch || zero) splice(op.ino, *node, op.offset, op.length, {});
  Attributes& attr = node->attr;
  if (!keep) attr.size = std::max(attr.size, op.offset + op.length);
  attr.mtime_ns = attr.ctime_ns = request_.now_ns;
  kill_privileges(attr);
  touch(op.ino, *node);
  publish(Invalidation::Kind::kData, op.ino);
  effects_.reply.ino = op.ino;
  effects_.reply.attr = attr;
  return 0;
}

int Step::perform(const CopyRange& op) {
  Node* from = nullptr;
  if (int error = file_of(op.from, from)) return error;
  Node* to = nullptr;
  if (int error = file_of(op.to, to)) return error;
  if (op.from_offset >= from->attr.size) return 0;
  u64 length = std::min(op.length, from->attr.size - op.from_offset);
  if (length == 0) return 0;
  if (op.to_offset > kFileBytesMax - length) return EFBIG;
  bool overlap = op.from == op.to && op.from_offset < op.to_offset + length &&
                 op.to_offset < op.from_offset + length;
  if (overlap) return EINVAL;
  std::vector<Extent> shared;
  u64 end = op.from_offset + length;
  for (const Extent& extent : from->extents) {
    if (extent.end() <= op.from_offset || extent.offset >= end) continue;
    u64 start_at = std::max(extent.offset, op.from_offset);
    u64 stop_at = std::min(extent.end(), end);
    u32 skipped = static_cast<u32>(start_at - extent.offset);
    shared.push_back({start_at - op.from_offset + op.to_offset,
                      static_cast<u32>(stop_at - start_at), extent.data_offset + skipped,
                      extent.data});
  }
  if (int error = room_for_bytes(length)) return error;
  start(RecordOp::kCopyRange, op.to);
  splice(op.to, *to, op.to_offset, length, shared);
  Attributes& attr = to->attr;
  attr.size = std::max(attr.size, op.to_offset + length);
  attr.mtime_ns = attr.ctime_ns = request_.now_ns;
  kill_privileges(attr);
  touch(op.to, *to);
  publish(Invalidation::Kind::kData, op.to);
  effects_.reply.size = length;
  effects_.reply.ino = op.to;
  effects_.reply.attr = attr;
  return 0;
}

int Step::perform(const Seek& op) {
  Node* node = nullptr;
  if (int error = file_of(op.ino, node)) return error;
  if (op.offset >= node->attr.size) return ENXIO;
  u64 at = op.offset;
  auto extent = std::partition_point(node->extents.begin(), node->extents.end(),
                                     [&](const Extent& e) { return e.end() <= at; });
  if (op.hole) {
    for (; extent != node->extents.end() && extent->offset <= at; ++extent) at = extent->end();
    effects_.reply.size = std::min(at, node->attr.size);
    return 0;
  }
  if (extent == node->extents.end()) return ENXIO;
  effects_.reply.size = std::max(extent->offset, at);
  return 0;
}

int Step::perform(const Defragment& op) {
  Node* node = nullptr;
  if (int error = file_of(op.ino, node)) return error;
  bool whole = op.length > 0 && op.length <= kWriteBytesMax &&
               covered(*node, op.offset, op.length) == op.length;
  if (!whole) return EINVAL;
  if (s_.extents_fingerprint(op.ino, op.offset, op.length) != op.expected) return EAGAIN;
  start(RecordOp::kDefragment, op.ino);
  header_.data = s_.usage_.next_data++;
  header_.data_length = op.length;
  put_usage();
  splice(op.ino, *node, op.offset, op.length, {Extent{op.offset, op.length, 0, header_.data}});
  return 0;
}

}  // namespace fs
