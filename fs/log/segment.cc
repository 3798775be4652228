#include "fs/log/segment.h"

#include "base/hash.h"

#include <cstring>

namespace fs {

namespace {
constexpr char kSegmentMagic[8] = {'A', 'F', 'S', 'L', 'O', 'G', '1', '\n'};
constexpr char kBatchMagic[4] = {'A', 'F', 'S', 'B'};
constexpr char kSealedMagic[4] = {'A', 'F', 'S', 'E'};
}  // namespace

std::string encode_segment_header(const SegmentHeader& header) {
  std::string bytes(kSegmentHeaderBytes, '\0');
  char* at = bytes.data();
  std::memcpy(at, kSegmentMagic, sizeof kSegmentMagic);
  base::store_le<u32>(at + 16, header.workspace);
  base::store_le<u64>(at + 24, header.epoch);
  std::memcpy(at + 32, header.chain.data(), kChainBytes);
  base::store_le<u32>(at + 8, base::crc32c(base::as_bytes(bytes).subspan(16)));
  return bytes;
}

std::optional<SegmentHeader> decode_segment_header(base::ByteView bytes) {
  if (bytes.size() < kSegmentHeaderBytes) return std::nullopt;
  bytes = bytes.first(kSegmentHeaderBytes);
  bool good = std::memcmp(bytes.data(), kSegmentMagic, sizeof kSegmentMagic) == 0 &&
              base::load_le<u32>(bytes.data() + 8) == base::crc32c(bytes.subspan(16));
  if (!good) return std::nullopt;
  SegmentHeader header;
  header.workspace = base::load_le<u32>(bytes.data() + 16);
  header.epoch = base::load_le<u64>(bytes.data() + 24);
  std::memcpy(header.chain.data(), bytes.data() + 32, kChainBytes);
  return header;
}

void finish_batch(const BatchHeader& header, std::string& batch) {
  char* at = batch.data();
  std::memcpy(at, header.sealed ? kSealedMagic : kBatchMagic, sizeof kBatchMagic);
  base::store_le<u64>(at + 8, header.first);
  base::store_le<u32>(at + 16, header.count);
  base::store_le<u32>(at + 20, header.records_length);
  base::store_le<u64>(at + 24, header.data_length);
  base::store_le<u64>(at + 32, header.synced);
  std::memcpy(at + 40, header.chain.data(), kChainBytes);
  base::store_le<u32>(at + 4, base::crc32c(base::as_bytes(batch).subspan(8)));
}

std::optional<BatchHeader> decode_batch(base::ByteView bytes) {
  if (bytes.size() < kBatchHeaderBytes) return std::nullopt;
  BatchHeader header;
  header.sealed = std::memcmp(bytes.data(), kSealedMagic, sizeof kSealedMagic) == 0;
  bool plain = std::memcmp(bytes.data(), kBatchMagic, sizeof kBatchMagic) == 0;
  if (!header.sealed && !plain) return std::nullopt;
  const u8* at = bytes.data();
  header.first = base::load_le<u64>(at + 8);
  header.count = base::load_le<u32>(at + 16);
  header.records_length = base::load_le<u32>(at + 20);
  header.data_length = base::load_le<u64>(at + 24);
  header.synced = base::load_le<u64>(at + 32);
  std::memcpy(header.chain.data(), at + 40, kChainBytes);
  bool fits = header.records_length <= bytes.size() - kBatchHeaderBytes &&
              header.data_length <= bytes.size() - kBatchHeaderBytes - header.records_length &&
              header.first != 0 && header.count != 0;
  if (!fits) return std::nullopt;
  auto checked = bytes.subspan(8, kBatchHeaderBytes - 8 + header.records_length);
  if (base::load_le<u32>(at + 4) != base::crc32c(checked)) return std::nullopt;
  return header;
}

BatchBound bound_of(const BatchHeader& header, u32 workspace) {
  BatchBound bound{};
  u8* at = bound.data();
  base::store_le<u32>(at, workspace);
  base::store_le<u32>(at + 4, header.count);
  base::store_le<u64>(at + 8, header.first);
  base::store_le<u64>(at + 16, header.records_length);
  base::store_le<u64>(at + 24, header.data_length);
  base::store_le<u64>(at + 32, header.synced);
  return bound;
}

std::optional<OpenedRecords> open_records(const BatchHeader& header, u32 workspace,
                                          base::ByteView section, const StoreSeal& seal) {
  if (section.size() < kSaltBytes + kSealTagBytes) return std::nullopt;
  Salt salt;
  SealTag tag;
  std::memcpy(salt.data(), section.data(), kSaltBytes);
  std::memcpy(tag.data(), section.data() + section.size() - kSealTagBytes, kSealTagBytes);
  section = section.subspan(kSaltBytes, section.size() - kSaltBytes - kSealTagBytes);
  OpenedRecords opened{std::string(base::as_text(section)), seal.key(StoreSeal::Use::kLog, salt)};
  BatchBound bound = bound_of(header, workspace);
  base::Bytes bytes(reinterpret_cast<u8*>(opened.records.data()), opened.records.size());
  if (!opened.key->open({header.first, 0}, bound, bytes, tag)) return std::nullopt;
  return opened;
}

Chain next_chain(const Chain& before, base::ByteView records_section) {
  std::string joined(reinterpret_cast<const char*>(before.data()), before.size());
  joined.append(base::as_text(records_section));
  base::Sha256 digest = base::sha256(base::as_bytes(joined));
  Chain chain;
  std::memcpy(chain.data(), digest.data(), kChainBytes);
  return chain;
}

std::optional<BatchRecord> take_record(std::string_view& rest, bool sealed) {
  size_t prefix = sealed ? kSealedRecordPrefixBytes : kRecordPrefixBytes;
  if (rest.size() < prefix) return std::nullopt;
  u32 length = base::load_le<u32>(rest.data());
  BatchRecord result;
  if (sealed) {
    std::memcpy(result.data_tag.data(), rest.data() + 4, kSealTagBytes);
  } else {
    result.data_check = base::load_le<u64>(rest.data() + 4);
  }
  rest.remove_prefix(prefix);
  if (length > rest.size()) return std::nullopt;
  result.record = rest.substr(0, length);
  rest.remove_prefix(length);
  auto header = decode_header(result.record);
  if (!header) return std::nullopt;
  result.header = *header;
  return result;
}

}  // namespace fs
