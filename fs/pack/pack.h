// Packs: immutable blobs (fs/blob/blob.h) that hold slots, each the bytes of one data id or of one
// tree page.
//
//   header   0   8  "AFSPACK1"      then 56 zero bytes
//   frames          stored bytes of each slot, in the order they were added
//   index           40 bytes a slot, sorted by id: id u64, offset u64, stored length u32,
//                   raw length u32, check 16 bytes
//   trailer  0   8  "AFSPACKE"
//            8   8  offset of the index
//           16   4  number of slots
//           20   4  crc32c of the index
//           24   4  crc32c of 0..24     (28 bytes)
// Little-endian. A slot is stored as zstd level 1 where that is smaller, else raw (stored == raw).
// The check is a keyed hash of (id, raw length, stored bytes): whoever lacks the store's key can
// neither forge a slot nor learn from equal checks that bytes are equal. It is verified on every
// read. In an encrypted store (fs/seal/seal.h) the header is "AFSPACK2", a salt of 16 bytes and
// zeros; a slot is sealed after it was compressed, with nonce (offset, 0), bound to what the check
// covers, and the check is the tag. Ids and lengths stay readable. A pack without a good trailer is
// no pack. Errors: kCorruption, kIo, kFull. Readers are
// thread-safe.
#pragma once

#include "base/result.h"
#include "fs/blob/blob.h"
#include "fs/seal/seal.h"
#include "fs/state/types.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fs {

using SlotCheck = std::array<u8, 16>;
using StoreKey = std::array<u8, 32>;
inline constexpr u64 kPackBytes = 16u << 20;

SlotCheck slot_check(const StoreKey& key, u64 id, u32 raw_length, std::string_view stored);

class PackWriter {
 public:
  // `blobs` outlives it.
  PackWriter(BlobStore& blobs, std::string name, const StoreKey& key,
             const SealPointer& seal = nullptr);
  // REQUIRES: each id once.
  void add(u64 id, std::string_view bytes);
  // Index and trailer, and then the whole pack goes where blobs are: durable when it returns. Once.
  base::Status finish();
  u64 bytes() const { return offset_; }
  size_t slots() const { return index_.size(); }

 private:
  struct Slot {
    u64 id;
    u64 offset;
    u32 stored;
    u32 raw;
    SlotCheck check;
  };
  SlotCheck sealed(u64 id, u32 raw, base::Bytes stored);

  BlobStore& blobs_;
  std::string name_;
  StoreKey key_;
  std::shared_ptr<const SealKey> seal_;  // of this file alone; null: not encrypted
  std::string buffer_;
  u64 offset_ = 0;  // of what follows
  std::vector<Slot> index_;
};

class PackReader {
 public:
  static base::Result<std::shared_ptr<PackReader>> open(BlobStore& blobs, const std::string& name,
                                                        const StoreKey& key,
                                                        const SealPointer& seal = nullptr);
  bool has(u64 id) const { return find(id) != nullptr; }
  // The slot's bytes; nullopt when it is not here.
  base::Result<std::optional<std::string>> read(u64 id) const;
  std::vector<u64> ids() const;
  u64 stored_length(u64 id) const;

 private:
  struct Slot {
    u64 id;
    u64 offset;
    u32 stored;
    u32 raw;
    SlotCheck check;
  };
  PackReader() = default;
  base::Status read_header(const SealPointer& seal);
  base::Status read_index(u64 size);
  bool check(const Slot& slot, std::string& stored) const;
  const Slot* find(u64 id) const;
  std::unique_ptr<Blob> file_;
  std::string path_;  // for messages
  StoreKey key_{};
  std::shared_ptr<const SealKey> seal_;
  std::vector<Slot> slots_;
};

}  // namespace fs
