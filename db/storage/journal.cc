#include "db/storage/journal.h"

#include "base/random.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

namespace db {

using base::load_be32;
using base::Result;
using base::Status;
using base::store_be32;

static constexpr u8 kMagic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
static constexpr u32 kSectorBytes = 512;
static constexpr u32 kHeaderBytes = 28;

// The nonce plus every 200th byte, from the end of the page on down.
static u32 checksum(u32 nonce, const u8* page, u32 page_bytes) {
  u32 sum = nonce;
  for (i64 i = i64{page_bytes} - 200; i > 0; i -= 200) sum += page[i];
  return sum;
}

static std::vector<u8> super_record(const std::string& name, u32 page_bytes) {
  std::vector<u8> bytes(4 + name.size() + 16);
  store_be32(bytes.data(), lock_page(page_bytes));
  std::memcpy(bytes.data() + 4, name.data(), name.size());
  u8* tail = bytes.data() + 4 + name.size();
  u32 sum = 0;
  for (char c : name) sum += static_cast<u32>(static_cast<i32>(static_cast<signed char>(c)));
  store_be32(tail, static_cast<u32>(name.size()));
  store_be32(tail + 4, sum);
  std::memcpy(tail + 8, kMagic, 8);
  return bytes;
}

Status write_journal(VfsFile& file, const std::vector<JournalPage>& pages,
                     const JournalWrite& how) {
  u32 nonce;
  base::secure_random_bytes({reinterpret_cast<u8*>(&nonce), 4});
  u8 header[kSectorBytes] = {};
  std::memcpy(header, kMagic, 8);
  u32 count = static_cast<u32>(pages.size());
  bool count_later = how.sync && how.sync_twice;
  store_be32(header + 8, count_later ? 0 : count);
  store_be32(header + 12, nonce);
  store_be32(header + 16, how.page_count);
  store_be32(header + 20, kSectorBytes);
  store_be32(header + 24, how.page_bytes);
  std::vector<WritePiece> pieces;
  std::vector<u8> ends(8 * pages.size());  // number and checksum of each record
  pieces.reserve(3 * pages.size() + 2);
  pieces.push_back({0, ByteView(header, kSectorBytes)});
  u64 at = kSectorBytes;
  for (size_t i = 0; i < pages.size(); i++) {
    u8* end = ends.data() + 8 * i;
    store_be32(end, pages[i].number);
    store_be32(end + 4, checksum(nonce, pages[i].image, how.page_bytes));
    pieces.push_back({at, ByteView(end, 4)});
    pieces.push_back({at + 4, ByteView(pages[i].image, how.page_bytes)});
    pieces.push_back({at + 4 + how.page_bytes, ByteView(end + 4, 4)});
    at += how.page_bytes + 8;
  }
  std::vector<u8> super;
  if (!how.super_journal.empty()) {
    super = super_record(how.super_journal, how.page_bytes);
    pieces.push_back({at, ByteView(super)});
    at += super.size();
  }
  TRY(file.write_pieces(pieces));
  if (!super.empty()) {
    // The name counts only at the very end of the file.
    if (TRY(file.size()) > at) TRY(file.truncate(at));
  }
  if (!how.sync) return {};
  TRY(file.sync(false));
  if (!count_later) return {};
  store_be32(header + 8, count);
  TRY(file.write_at(0, ByteView(header, 12)));
  return file.sync(true);
}

namespace {
struct Header {
  u32 records;
  u32 nonce;
  PageNo page_count;
  u32 sector_bytes;
  u32 page_bytes;
};
}  // namespace

// The header at `at`, or false when there is none.
static Result<bool> read_header(VfsFile& journal, u64 at, Header* header) {
  u8 bytes[kHeaderBytes];
  size_t got = TRY(journal.read_at(at, {bytes, kHeaderBytes}));
  if (got < kHeaderBytes || std::memcmp(bytes, kMagic, 8) != 0) return false;
  header->records = load_be32(bytes + 8);
  header->nonce = load_be32(bytes + 12);
  header->page_count = load_be32(bytes + 16);
  u32 sector = load_be32(bytes + 20);
  u32 page = load_be32(bytes + 24);
  if (at == 0) {
    auto power = [](u32 v) { return v != 0 && (v & (v - 1)) == 0; };
    if (!power(page) || !power(sector) || page < kMinPageBytes || page > kMaxPageBytes ||
        sector < 32 || sector > 65536)
      return false;
    header->sector_bytes = sector;
    header->page_bytes = page;
  }
  return true;
}

Result<PlaybackResult> play_back(VfsFile& journal, VfsFile& database) {
  PlaybackResult result;
  u64 size = TRY(journal.size());
  std::unordered_set<PageNo> seen;
  std::vector<u8> record;
  Header header = {};
  u64 at = 0;
  while (TRY(read_header(journal, at, &header))) {
    if (at == 0) {
      result = {.played = true, .page_bytes = header.page_bytes, .page_count = header.page_count};
      record.resize(header.page_bytes + 8);
      // The file grew in the transaction: what it grew by goes.
      if (TRY(database.size()) > u64{header.page_count} * header.page_bytes)
        TRY(database.truncate(u64{header.page_count} * header.page_bytes));
    }
    at += header.sector_bytes;
    u64 records = header.records;
    if (header.records == 0xffffffff) records = size > at ? (size - at) / record.size() : 0;
    bool intact = true;
    for (; records > 0 && intact; records--) {
      size_t got = TRY(journal.read_at(at, record));
      PageNo number = got == record.size() ? load_be32(record.data()) : 0;
      const u8* page = record.data() + 4;
      intact =
          number != 0 && number != lock_page(header.page_bytes) &&
          checksum(header.nonce, page, header.page_bytes) == load_be32(page + header.page_bytes);
      if (!intact) break;
      at += record.size();
      if (number > result.page_count || !seen.insert(number).second) continue;
      TRY(database.write_at(u64{number - 1} * header.page_bytes, {page, header.page_bytes}));
    }
    if (!intact) break;
    at = (at + header.sector_bytes - 1) / header.sector_bytes * header.sector_bytes;
  }
  if (result.played) TRY(database.sync(false));
  return result;
}

Result<std::string> super_name_of(VfsFile& journal) {
  u64 size = TRY(journal.size());
  if (size < 16) return std::string();
  u8 tail[16];
  TRY(journal.read_at(size - 16, tail));
  u32 length = load_be32(tail);
  if (std::memcmp(tail + 8, kMagic, 8) != 0 || length == 0 || length > 4096 || length + 16 > size)
    return std::string();
  std::string name(length, '\0');
  TRY(journal.read_at(size - 16 - length, {reinterpret_cast<u8*>(name.data()), length}));
  u32 sum = load_be32(tail + 4);
  for (char c : name) sum -= static_cast<u32>(static_cast<i32>(static_cast<signed char>(c)));
  return sum == 0 ? name : std::string();
}

Status remove_super_if_done(Vfs& vfs, const std::string& super) {
  Result<std::unique_ptr<VfsFile>> file = vfs.open(super, {.read_only = true});
  if (!file.ok()) return {};
  std::string names(TRY((*file)->size()), '\0');
  TRY((*file)->read_at(0, {reinterpret_cast<u8*>(names.data()), names.size()}));
  for (size_t from = 0; from < names.size();) {
    std::string name = names.c_str() + from;
    from += name.size() + 1;
    Result<std::unique_ptr<VfsFile>> child = vfs.open(name, {.read_only = true});
    if (child.ok() && TRY(super_name_of(**child)) == super) return {};
  }
  return vfs.remove(super, false);
}

}  // namespace db
