// The local journal of one workspace: every record and its data, durable by group commit.
//
// Files DIR/WWWWWW-SSSSSSSSSSSSSSSS-EEEEEEEE.log, named by workspace number, first record and epoch
// (hex). A segment is a header and batches; a batch is what one commit() wrote. Little-endian.
//
//   header  0  8  "AFSLOG1\n"          batch   0  4  "AFSB"
//           8  4  crc32c of 16..64             4  4  crc32c of 8..64 and the records section
//          12  4  zero                         8  8  seq of its first record
//          16  4  workspace                   16  4  number of records
//          20  4  zero                        20  4  length of the records section
//          24  8  epoch                       24  8  length of the data section
//          32 ..  chain before it             32  8  synced: all up to this seq was durable before
//             32                              40 24  chain: SHA-256 of the chain before and the
//                                                    records section, first 24 bytes
//   records section: per record length u32, xxh3 of its data u64, record (fs/log/record.h)
//   data section: the data of the records, in order; then zeros up to a multiple of 64
//
// In an encrypted store (fs/seal/seal.h) a batch begins with "AFSE", its header is readable, and
//   records section: salt 16, sealed bytes, tag 16; the sealed bytes have per record length u32,
//   the
//                    tag of its data 16 bytes, record. Nonce (first seq, 0)
//   data section:    each record's data sealed by itself. Nonce (first seq, 1 + which record it is)
// Checksum and chain cover the sealed bytes, so logs are copied and compared without the key.
//
// Recovery takes the longest valid prefix. A bad batch ends it, unless the damage lies in what is
// known to have been durable (a later batch or segment says so): that is kCorruption, not a torn
// tail. A segment counts only up to the first seq of the next one: a fenced writer that still
// appends to its old file is not heard. After a failed write or sync the journal refuses everything
// (what the disk holds is unknown); reopening recovers.
// Thread-safe: append and commit belong to one thread, sync and read may run beside them.
#pragma once

#include "base/disk.h"
#include "base/result.h"
#include "fs/log/record.h"
#include "fs/seal/seal.h"

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fs {

inline constexpr size_t kChainBytes = 24;
using Chain = std::array<u8, kChainBytes>;

// How to open data that is sealed.
struct SealedData {
  std::shared_ptr<const SealKey> key;
  SealKey::Nonce nonce;
  SealTag tag{};
};

// Where data lies in a segment.
struct DataPlace {
  std::shared_ptr<base::DiskFile> file;
  u64 offset = 0;
  u32 length = 0;
  u64 check = 0;                             // xxh3, of data that is not sealed
  std::shared_ptr<const SealedData> sealed;  // null: it is not
};
// All of the data at a place. out.size() == place.length. False: it is damaged.
base::Result<bool> read_place(const DataPlace& place, base::Bytes out);

// Data of the log by id; thread-safe. One is shared by all readers of a workspace.
class DataPlaces {
 public:
  void add(DataId id, DataPlace place);
  // Forgets data below `bound` of `workspace`, and all data of other workspaces.
  void drop_below(u32 workspace, DataId bound);
  // nullopt when it is not here.
  std::optional<u32> length(DataId id) const;
  // False when it is not here. The check is verified whatever part is asked for.
  base::Result<bool> read(DataId id, u32 offset, base::Bytes out) const;
  size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<DataId, DataPlace> places_;
  mutable DataId last_id_ = 0;  // the data read last in parts
  mutable std::shared_ptr<const std::string> last_;
};

struct SegmentName {
  u32 workspace = 0;
  Seq first = 0;
  Epoch epoch = 0;
  std::string path;
};
std::string segment_path(const std::string& folder, const SegmentName& name);
// All segments in the folder, sorted by workspace, first record and epoch.
base::Result<std::vector<SegmentName>> list_segments(base::Disk& disk, const std::string& folder);

// A whole batch in a file: what a log ships elsewhere.
struct BatchPlace {
  std::shared_ptr<base::DiskFile> file;
  u64 offset = 0;
  u64 length = 0;  // with its padding, which a torn file may lack
  Seq first = 0;
  Seq last = 0;
  Chain before{};
  Chain after{};
};

// Reads records [from, to] of a workspace in order (to = ~0: to the end of the valid prefix).
struct LogScan {
  base::Disk* disk = nullptr;
  std::string folder;
  std::vector<SegmentName> segments;  // when no folder is named
  u32 workspace = 0;
  Seq from = 1;
  Seq to = ~Seq{0};
  bool check_data = true;        // of batches that may be torn; else only their records
  DataPlaces* places = nullptr;  // learns where the data lies
  std::function<base::Status(const RecordHeader&, std::string_view record)> visit;
  std::function<void(const BatchPlace&)> batch;  // of each batch that was read to its end
  SealPointer seal;                              // of an encrypted store
};
struct LogEnd {
  Seq last = 0;  // last valid record, from - 1 when there is none
  Chain chain{};
  std::string path;                        // segment it is in, or ""
  std::vector<std::string> paths;          // all segments that were read
  u64 bytes = 0;                           // valid length of that segment
  u64 torn_bytes = 0;                      // behind it, to be cut off
  std::vector<std::string> torn_segments;  // after it, never durable, to be removed
};
// Errors: kCorruption for damage in durable bytes or a gap; kIo.
base::Result<LogEnd> scan_log(const LogScan& scan);

class Journal {
 public:
  struct Options {
    base::Disk* disk = nullptr;
    std::string folder;
    u32 workspace = 0;
    Epoch epoch = 0;
    u64 segment_bytes = 64u << 20;
    std::function<void(const BatchPlace&)> committed;  // told of each batch, in order
    SealPointer seal;                                  // of an encrypted store
  };
  // Starts a new segment after `end` (from scan_log), cutting a torn tail off first.
  static base::Result<std::unique_ptr<Journal>> open(Options options, const LogEnd& end,
                                                     DataPlaces* places);

  // Into the batch. `data` is copied; it belongs to the record's data id.
  void append(const RecordHeader& header, std::string_view record, base::ByteView data);
  // The batch into the file, in one write. Does nothing when it is empty.
  base::Status commit();
  // All that was committed before the call is durable after it. Concurrent calls share the work.
  base::Status sync();
  // Ends the segment; the next record begins a new one. Commits first.
  base::Status rotate();
  // Reads from the batch that is not yet written, too.
  base::Result<bool> read(DataId id, u32 offset, base::Bytes out);
  // Removes segments of this workspace all of whose records are below `first_needed`.
  base::Result<u64> drop_segments_before(Seq first_needed);

  Seq appended() const { return appended_; }
  Seq committed() const;
  Seq synced() const;
  u64 bytes_since_rotate() const { return offset_; }

 private:
  Journal(Options options, DataPlaces* places) : options_(std::move(options)), places_(places) {}
  base::Status begin_segment();
  void register_data(std::shared_ptr<base::DiskFile> file, u64 data_offset);
  base::Status fail(base::Error error);
  bool sealing() const { return key_ != nullptr; }
  std::string seal_batch(struct BatchHeader& header);
  base::Status write_batch(const struct BatchHeader& header, const std::string& data);

  struct Pending {
    DataId id;
    u64 offset;  // in data_
    u32 length;
    u64 check;
    u64 prefix_at;  // of its record, in batch_
    std::shared_ptr<SealedData> sealed;
  };

  Options options_;
  DataPlaces* places_;
  Salt salt_{};                         // of this object alone (fs/seal/seal.h)
  std::shared_ptr<const SealKey> key_;  // null: not encrypted
  std::shared_ptr<base::DiskFile> file_;
  u64 offset_ = 0;  // end of the file
  Chain chain_{};
  Seq appended_ = 0;
  Seq batch_first_ = 0;
  u32 batch_count_ = 0;
  std::string batch_;  // header and records section
  std::string data_;
  std::vector<Pending> pending_;

  mutable std::mutex mutex_;  // guards what follows and data_, pending_ against read()
  std::mutex sync_mutex_;     // one sync at a time
  Seq committed_ = 0;
  Seq synced_ = 0;
  u64 segments_begun_ = 0;          // names made ...
  u64 segments_named_durably_ = 0;  // ... and synced
  std::vector<std::shared_ptr<base::DiskFile>> unsynced_;
  std::string failure_;
};

}  // namespace fs
