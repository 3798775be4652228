// A log record: one change of a workspace, with absolute values, so that applying it twice is the
// same as once. Little-endian:
//
//   offset  size  field
//        0     8  seq, one more than the record before
//        8     8  epoch
//       16     8  time, ns since 1970
//       24     8  ino the operation was about
//       32     8  data id, 0 for none
//       40     4  data length, bytes
//       44     4  uid
//       48     4  pid
//       52     4  session
//       56     1  operation (RecordOp)
//       57     3  call: low bits of the kernel's request number, so that a request that is sent
//                 again after a crash of the daemon is known
//       60     4  length of the changes, bytes
//       64     n  changes: kind u8 (1 put, 2 delete), key length u16, key,
//                 for a put value length u32, value
//       64+n   m  data, when there is some: not part of `record` strings, added by the journal
//
// Errors: decoders return nullopt or kCorruption and never read outside. Thread-safe (no state).
#pragma once

#include "base/result.h"
#include "fs/state/types.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace fs {

inline constexpr size_t kRecordHeaderBytes = 64;

enum class RecordOp : u8 {
  kNone = 0,
  kRoot,
  kSetattr,
  kCreate,
  kMkdir,
  kMknod,
  kSymlink,
  kTmpfile,
  kLink,
  kUnlink,
  kRmdir,
  kRename,
  kWrite,
  kFallocate,
  kCopyRange,
  kSetxattr,
  kRemovexattr,
  kReclaim,
  kDefragment,
  kLast = kDefragment,
};
// "create", "rename", ...: as the audit trail prints it.
const char* name_of(RecordOp op);

struct RecordHeader {
  Seq seq = 0;
  Epoch epoch = 0;
  i64 time_ns = 0;
  Ino ino = 0;
  DataId data = 0;
  u32 data_length = 0;
  u32 uid = 0;
  u32 pid = 0;
  SessionId session = 0;
  RecordOp op = RecordOp::kNone;
  u32 changes_length = 0;
  u32 call = 0;  // below kCallMask
};
inline constexpr u32 kCallMask = 0xffffff;

void encode_put(std::string& out, std::string_view key, std::string_view value);
void encode_delete(std::string& out, std::string_view key);

// Builds one record in a string: start(), any number of put/remove, finish().
class RecordWriter {
 public:
  explicit RecordWriter(std::string& out) : out_(out) {}
  void start();
  void put(std::string_view key, std::string_view value) { encode_put(out_, key, value); }
  void remove(std::string_view key) { encode_delete(out_, key); }
  // Changes encoded elsewhere with the two functions below.
  void append(std::string_view changes) { out_.append(changes); }
  // Fills the header in; changes_length is computed.
  void finish(RecordHeader header);
  bool has_changes() const { return out_.size() > kRecordHeaderBytes; }

 private:
  std::string& out_;
};

// The header, with lengths checked against `record` (header and changes, without data).
std::optional<RecordHeader> decode_header(std::string_view record);

struct Change {
  bool put = false;
  std::string_view key;
  std::string_view value;
};
// Calls `visit` for each change in order; false from it stops with kCorruption.
base::Status for_each_change(std::string_view record,
                             const std::function<bool(const Change&)>& visit);

}  // namespace fs
