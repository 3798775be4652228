#include "fs/log/record.h"

#include "base/bytes.h"
#include "base/check.h"

namespace fs {

namespace {
constexpr char kPut = 1;
constexpr char kDelete = 2;
}  // namespace

const char* name_of(RecordOp op) {
  switch (op) {
    case RecordOp::kNone:
      return "none";
    case RecordOp::kRoot:
      return "root";
    case RecordOp::kSetattr:
      return "setattr";
    case RecordOp::kCreate:
      return "create";
    case RecordOp::kMkdir:
      return "mkdir";
    case RecordOp::kMknod:
      return "mknod";
    case RecordOp::kSymlink:
      return "symlink";
    case RecordOp::kTmpfile:
      return "tmpfile";
    case RecordOp::kLink:
      return "link";
    case RecordOp::kUnlink:
      return "unlink";
    case RecordOp::kRmdir:
      return "rmdir";
    case RecordOp::kRename:
      return "rename";
    case RecordOp::kWrite:
      return "write";
    case RecordOp::kFallocate:
      return "fallocate";
    case RecordOp::kCopyRange:
      return "copy_range";
    case RecordOp::kSetxattr:
      return "setxattr";
    case RecordOp::kRemovexattr:
      return "removexattr";
    case RecordOp::kReclaim:
      return "reclaim";
    case RecordOp::kDefragment:
      return "defragment";
  }
  return "unknown";
}

void RecordWriter::start() {
  out_.assign(kRecordHeaderBytes, '\0');
}

void encode_put(std::string& out, std::string_view key, std::string_view value) {
  char head[3] = {kPut};
  base::store_le<u16>(head + 1, static_cast<u16>(key.size()));
  out.append(head, sizeof head).append(key);
  char length[4];
  base::store_le<u32>(length, static_cast<u32>(value.size()));
  out.append(length, sizeof length).append(value);
}

void encode_delete(std::string& out, std::string_view key) {
  char head[3] = {kDelete};
  base::store_le<u16>(head + 1, static_cast<u16>(key.size()));
  out.append(head, sizeof head).append(key);
}

void RecordWriter::finish(RecordHeader header) {
  CHECK(out_.size() >= kRecordHeaderBytes);
  char* at = out_.data();
  base::store_le<u64>(at, header.seq);
  base::store_le<u64>(at + 8, header.epoch);
  base::store_le<i64>(at + 16, header.time_ns);
  base::store_le<u64>(at + 24, header.ino);
  base::store_le<u64>(at + 32, header.data);
  base::store_le<u32>(at + 40, header.data_length);
  base::store_le<u32>(at + 44, header.uid);
  base::store_le<u32>(at + 48, header.pid);
  base::store_le<u32>(at + 52, header.session);
  base::store_le<u32>(at + 56, static_cast<u32>(header.op) | (header.call & kCallMask) << 8);
  base::store_le<u32>(at + 60, static_cast<u32>(out_.size() - kRecordHeaderBytes));
}

std::optional<RecordHeader> decode_header(std::string_view record) {
  if (record.size() < kRecordHeaderBytes) return std::nullopt;
  const char* at = record.data();
  RecordHeader header;
  header.seq = base::load_le<u64>(at);
  header.epoch = base::load_le<u64>(at + 8);
  header.time_ns = base::load_le<i64>(at + 16);
  header.ino = base::load_le<u64>(at + 24);
  header.data = base::load_le<u64>(at + 32);
  header.data_length = base::load_le<u32>(at + 40);
  header.uid = base::load_le<u32>(at + 44);
  header.pid = base::load_le<u32>(at + 48);
  header.session = base::load_le<u32>(at + 52);
  u32 op = base::load_le<u32>(at + 56) & 0xff;
  header.call = base::load_le<u32>(at + 56) >> 8;
  header.changes_length = base::load_le<u32>(at + 60);
  bool fits = op <= static_cast<u32>(RecordOp::kLast) && header.seq != 0 &&
              header.changes_length == record.size() - kRecordHeaderBytes &&
              header.data_length <= kWriteBytesMax &&
              (header.data != 0) == (header.data_length != 0);
  if (!fits) return std::nullopt;
  header.op = static_cast<RecordOp>(op);
  return header;
}

base::Status for_each_change(std::string_view record,
                             const std::function<bool(const Change&)>& visit) {
  auto damaged = [] {
    return base::Error(base::ErrorCode::kCorruption,
                       "a log record's changes are malformed; run fsck on the workspace");
  };
  if (record.size() < kRecordHeaderBytes) return damaged();
  std::string_view rest = record.substr(kRecordHeaderBytes);
  while (!rest.empty()) {
    if (rest.size() < 3) return damaged();
    char kind = rest[0];
    size_t key_length = base::load_le<u16>(rest.data() + 1);
    rest.remove_prefix(3);
    if (key_length > rest.size() || (kind != kPut && kind != kDelete)) return damaged();
    Change change{kind == kPut, rest.substr(0, key_length), {}};
    rest.remove_prefix(key_length);
    if (change.put) {
      if (rest.size() < 4) return damaged();
      size_t value_length = base::load_le<u32>(rest.data());
      rest.remove_prefix(4);
      if (value_length > rest.size()) return damaged();
      change.value = rest.substr(0, value_length);
      rest.remove_prefix(value_length);
    }
    if (!visit(change)) return damaged();
  }
  return {};
}

}  // namespace fs
