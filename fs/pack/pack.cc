#include "fs/pack/pack.h"

#include "base/check.h"
#include "base/hash.h"

#include <openssl/evp.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace fs {

using base::Error;
using base::ErrorCode;

namespace {

constexpr size_t kHeaderBytes = 64;
constexpr size_t kIndexEntryBytes = 40;
constexpr size_t kTrailerBytes = 28;
constexpr u32 kSlotBytesMax = 64u << 20;
constexpr std::string_view kHeaderMagic = "AFSPACK1";
constexpr std::string_view kSealedMagic = "AFSPACK2";
constexpr std::string_view kTrailerMagic = "AFSPACKE";

Error damaged(const std::string& path, std::string_view what) {
  return Error(ErrorCode::kCorruption, path + ": " + std::string(what) + "; run fsck on the store");
}

// What a slot is besides its bytes.
std::array<u8, 16> head_of(u64 id, u32 raw_length, size_t stored_length) {
  std::array<u8, 16> head{};
  base::store_le<u64>(head.data(), id);
  base::store_le<u32>(head.data() + 8, raw_length);
  base::store_le<u32>(head.data() + 12, static_cast<u32>(stored_length));
  return head;
}

}  // namespace

SlotCheck slot_check(const StoreKey& key, u64 id, u32 raw_length, std::string_view stored) {
  // The lengths come before the bytes, so no slot's input is the beginning of another's.
  auto head = head_of(id, raw_length, stored.size());
  u8 digest[32];
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  bool good = context != nullptr && EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1 &&
              EVP_DigestUpdate(context, key.data(), key.size()) == 1 &&
              EVP_DigestUpdate(context, head.data(), head.size()) == 1 &&
              EVP_DigestUpdate(context, stored.data(), stored.size()) == 1 &&
              EVP_DigestFinal_ex(context, digest, nullptr) == 1;
  EVP_MD_CTX_free(context);
  CHECK(good);
  SlotCheck check;
  std::memcpy(check.data(), digest, check.size());
  return check;
}

PackWriter::PackWriter(BlobStore& blobs, std::string name, const StoreKey& key,
                       const SealPointer& seal)
    : blobs_(blobs), name_(std::move(name)), key_(key) {
  buffer_.assign(kHeaderBytes, '\0');
  std::string_view magic = seal == nullptr ? kHeaderMagic : kSealedMagic;
  std::memcpy(buffer_.data(), magic.data(), magic.size());
  if (seal != nullptr) {
    Salt salt = random_salt();
    std::memcpy(buffer_.data() + magic.size(), salt.data(), salt.size());
    seal_ = seal->key(StoreSeal::Use::kPack, salt);
  }
  offset_ = kHeaderBytes;
}

SlotCheck PackWriter::sealed(u64 id, u32 raw, base::Bytes stored) {
  return seal_->seal({offset_, 0}, head_of(id, raw, stored.size()), stored);
}

void PackWriter::add(u64 id, std::string_view bytes) {
  CHECK(bytes.size() <= kSlotBytesMax);
  size_t start = buffer_.size();
  buffer_.resize(start + ZSTD_compressBound(bytes.size()));
  size_t stored =
      ZSTD_compress(buffer_.data() + start, buffer_.size() - start, bytes.data(), bytes.size(), 1);
  bool smaller = !ZSTD_isError(stored) && stored < bytes.size();
  if (smaller) {
    buffer_.resize(start + stored);
  } else {
    buffer_.resize(start);
    buffer_.append(bytes);
    stored = bytes.size();
  }
  u32 raw = static_cast<u32>(bytes.size());
  SlotCheck check;
  if (seal_ == nullptr) {
    check = slot_check(key_, id, raw, std::string_view(buffer_).substr(start));
  } else {
    check = sealed(id, raw, {reinterpret_cast<u8*>(buffer_.data()) + start, stored});
  }
  index_.push_back({id, offset_, static_cast<u32>(stored), raw, check});
  offset_ += stored;
  if (seal_ != nullptr && stored == 0) {  // no two slots at one offset: it is the nonce
    buffer_ += '\0';
    ++offset_;
  }
}

base::Status PackWriter::finish() {
  std::sort(index_.begin(), index_.end(), [](const Slot& a, const Slot& b) { return a.id < b.id; });
  std::string index(index_.size() * kIndexEntryBytes, '\0');
  char* at = index.data();
  for (const Slot& slot : index_) {
    base::store_le<u64>(at, slot.id);
    base::store_le<u64>(at + 8, slot.offset);
    base::store_le<u32>(at + 16, slot.stored);
    base::store_le<u32>(at + 20, slot.raw);
    std::memcpy(at + 24, slot.check.data(), slot.check.size());
    at += kIndexEntryBytes;
  }
  char trailer[kTrailerBytes];
  std::memcpy(trailer, kTrailerMagic.data(), kTrailerMagic.size());
  base::store_le<u64>(trailer + 8, offset_);
  base::store_le<u32>(trailer + 16, static_cast<u32>(index_.size()));
  base::store_le<u32>(trailer + 20, base::crc32c(base::as_bytes(index)));
  base::store_le<u32>(trailer + 24, base::crc32c(base::as_bytes({trailer, 24})));
  buffer_.append(index).append(trailer, sizeof trailer);
  offset_ += index.size() + sizeof trailer;
  std::string whole = std::move(buffer_);
  return blobs_.put(name_, whole);
}

base::Result<std::shared_ptr<PackReader>> PackReader::open(BlobStore& blobs,
                                                           const std::string& name,
                                                           const StoreKey& key,
                                                           const SealPointer& seal) {
  auto reader = std::shared_ptr<PackReader>(new PackReader());
  reader->file_ = TRY(blobs.open(name));
  reader->path_ = blobs.address(name);
  reader->key_ = key;
  TRY(reader->read_header(seal));
  TRY(reader->read_index(TRY(reader->file_->size())));
  return reader;
}

// Only a sealed pack has something in its header that nothing else says.
base::Status PackReader::read_header(const SealPointer& seal) {
  if (seal == nullptr) return {};
  u8 header[kHeaderBytes] = {};
  TRY(file_->read_at(0, header));
  if (base::as_text({header, kSealedMagic.size()}) != kSealedMagic) {
    return damaged(path_, "the header is not an encrypted pack's");
  }
  Salt salt;
  std::memcpy(salt.data(), header + kSealedMagic.size(), salt.size());
  seal_ = seal->key(StoreSeal::Use::kPack, salt);
  return {};
}

// Whether it is what was stored; decrypts it.
bool PackReader::check(const Slot& slot, std::string& stored) const {
  if (seal_ == nullptr) return slot_check(key_, slot.id, slot.raw, stored) == slot.check;
  return seal_->open({slot.offset, 0}, head_of(slot.id, slot.raw, stored.size()),
                     {reinterpret_cast<u8*>(stored.data()), stored.size()}, slot.check);
}

base::Status PackReader::read_index(u64 size) {
  if (size < kHeaderBytes + kTrailerBytes) return damaged(path_, "too short for a pack");
  u8 trailer[kTrailerBytes];
  if (TRY(file_->read_at(size - kTrailerBytes, trailer)) != kTrailerBytes) {
    return damaged(path_, "the trailer is cut off");
  }
  u64 offset = base::load_le<u64>(trailer + 8);
  u64 count = base::load_le<u32>(trailer + 16);
  bool good = base::as_text({trailer, 8}) == kTrailerMagic &&
              base::load_le<u32>(trailer + 24) == base::crc32c({trailer, 24}) &&
              offset >= kHeaderBytes && offset <= size - kTrailerBytes &&
              size - kTrailerBytes - offset == count * kIndexEntryBytes;
  if (!good) return damaged(path_, "the trailer is damaged");
  std::vector<u8> index(count * kIndexEntryBytes);
  if (TRY(file_->read_at(offset, index)) != index.size() ||
      base::crc32c(index) != base::load_le<u32>(trailer + 20)) {
    return damaged(path_, "the index is damaged");
  }
  for (u64 i = 0; i < count; ++i) {
    const u8* at = index.data() + i * kIndexEntryBytes;
    Slot slot{base::load_le<u64>(at),
              base::load_le<u64>(at + 8),
              base::load_le<u32>(at + 16),
              base::load_le<u32>(at + 20),
              {}};
    std::memcpy(slot.check.data(), at + 24, slot.check.size());
    bool inside = slot.offset <= offset && slot.stored <= offset - slot.offset &&
                  slot.raw <= kSlotBytesMax && slot.stored <= slot.raw;
    bool sorted = slots_.empty() || slots_.back().id < slot.id;
    if (!inside || !sorted) return damaged(path_, "the index is damaged");
    slots_.push_back(slot);
  }
  return {};
}

const PackReader::Slot* PackReader::find(u64 id) const {
  auto at = std::lower_bound(slots_.begin(), slots_.end(), id,
                             [](const Slot& slot, u64 value) { return slot.id < value; });
  return at != slots_.end() && at->id == id ? &*at : nullptr;
}

base::Result<std::optional<std::string>> PackReader::read(u64 id) const {
  const Slot* slot = find(id);
  if (slot == nullptr) return std::optional<std::string>();
  std::string stored(slot->stored, '\0');
  size_t got =
      TRY(file_->read_at(slot->offset, {reinterpret_cast<u8*>(stored.data()), stored.size()}));
  if (got != stored.size() || !check(*slot, stored)) {
    return damaged(path_, "slot " + std::to_string(id) + " is damaged");
  }
  if (slot->stored == slot->raw) return std::optional<std::string>(std::move(stored));
  std::string raw(slot->raw, '\0');
  size_t length = ZSTD_decompress(raw.data(), raw.size(), stored.data(), stored.size());
  if (ZSTD_isError(length) || length != raw.size()) {
    return damaged(path_, "slot " + std::to_string(id) + " does not decompress");
  }
  return std::optional<std::string>(std::move(raw));
}

std::vector<u64> PackReader::ids() const {
  std::vector<u64> all;
  for (const Slot& slot : slots_) all.push_back(slot.id);
  return all;
}

u64 PackReader::stored_length(u64 id) const {
  const Slot* slot = find(id);
  return slot == nullptr ? 0 : slot->stored;
}

}  // namespace fs
