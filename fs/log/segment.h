// Byte layout of journal segments (see fs/log/journal.h): building and checking headers and
// batches. Decoders take hostile bytes. Thread-safe (no state).
#pragma once

#include "base/bytes.h"
#include "fs/log/journal.h"

#include <optional>
#include <string>

namespace fs {

inline constexpr size_t kSegmentHeaderBytes = 64;
inline constexpr size_t kBatchHeaderBytes = 64;
inline constexpr size_t kBatchAlign = 64;
inline constexpr size_t kRecordPrefixBytes = 12;        // length u32, data check u64
inline constexpr size_t kSealedRecordPrefixBytes = 20;  // length u32, tag of the data

struct SegmentHeader {
  u32 workspace = 0;
  Epoch epoch = 0;
  Chain chain{};
};
std::string encode_segment_header(const SegmentHeader& header);
std::optional<SegmentHeader> decode_segment_header(base::ByteView bytes);

struct BatchHeader {
  Seq first = 0;
  u32 count = 0;
  u32 records_length = 0;
  u64 data_length = 0;
  Seq synced = 0;
  Chain chain{};
  bool sealed = false;
  u64 total() const {
    u64 length = kBatchHeaderBytes + u64{records_length} + data_length;
    return (length + kBatchAlign - 1) / kBatchAlign * kBatchAlign;
  }
};
// `batch` holds room for the header and then the records section; fills the header in.
void finish_batch(const BatchHeader& header, std::string& batch);
// The batch at the start of `bytes`, complete and with a good checksum; its data is not checked.
std::optional<BatchHeader> decode_batch(base::ByteView bytes);

// What a sealed batch's records are bound to.
using BatchBound = std::array<u8, 40>;
BatchBound bound_of(const BatchHeader& header, u32 workspace);
// The records of a batch's section, and the key of its data; nullopt when they are not what was
// sealed.
struct OpenedRecords {
  std::string records;
  std::shared_ptr<const SealKey> key;
};
std::optional<OpenedRecords> open_records(const BatchHeader& header, u32 workspace,
                                          base::ByteView section, const StoreSeal& seal);

Chain next_chain(const Chain& before, base::ByteView records_section);

// One record of a records section, taken from the front of `rest`.
struct BatchRecord {
  std::string_view record;
  RecordHeader header;
  u64 data_check = 0;
  SealTag data_tag{};  // of a sealed batch
};
std::optional<BatchRecord> take_record(std::string_view& rest, bool sealed = false);

}  // namespace fs
