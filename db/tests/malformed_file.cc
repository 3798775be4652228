#include "db/tests/malformed_file.h"

#include <algorithm>
#include <cstring>

namespace db_fuzz {

namespace {

constexpr size_t kWalHeaderBytes = 32;
constexpr size_t kFrameHeaderBytes = 24;
constexpr size_t kJournalHeaderBytes = 512;
constexpr std::string_view kJournalMagic("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8);

u8 byte_at(std::string_view bytes, size_t at) {
  return at < bytes.size() ? static_cast<u8>(bytes[at]) : u8{0};
}

u32 get32(std::string_view bytes, size_t at) {
  u32 value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | byte_at(bytes, at + i);
  return value;
}

void put32(std::string& bytes, size_t at, u32 value) {
  for (size_t i = 0; i < 4 && at + i < bytes.size(); ++i) {
    bytes[at + i] = static_cast<char>(value >> (24 - 8 * i));
  }
}

// The WAL's running checksum over eight bytes at a time, in the byte order that its magic asks for.
struct WalSum {
  bool big_endian;
  u32 first = 0;
  u32 second = 0;

  void add(std::string_view bytes) {
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      u32 x = get32(bytes, at);
      u32 y = get32(bytes, at + 4);
      if (!big_endian) {
        x = __builtin_bswap32(x);
        y = __builtin_bswap32(y);
      }
      first += x + second;
      second += y + first;
    }
  }
};

size_t page_of_journal(std::string_view journal) {
  const u32 bytes = get32(journal, 24);
  return bytes >= 512 && bytes <= 65536 ? bytes : 512;
}

u32 journal_sum(std::string_view page, u32 nonce) {
  u32 sum = nonce;
  for (size_t at = page.size(); at > 200;) {
    at -= 200;
    sum += byte_at(page, at);
  }
  return sum;
}

void damage_byte(char& byte, base::Rng& rng) {
  switch (rng.below(5)) {
    case 0:
      byte = static_cast<char>(byte ^ (1 << rng.below(8)));
      break;
    case 1:
      byte = static_cast<char>(rng.next());
      break;
    case 2:
      byte = rng.chance(0.5) ? '\xff' : '\x7f';
      break;
    case 3:
      byte = 0;
      break;
    default:
      byte = static_cast<char>(byte + (rng.chance(0.5) ? 1 : -1));
  }
}

// Where a page's parts begin in its file.
struct Layout {
  size_t first;   // bytes before the first page
  size_t header;  // bytes before each page
  size_t page;
};

Layout layout_of(size_t file, const DatabaseFiles& files) {
  const size_t page = stated_page_bytes(files.files[0]);
  if (file == 0) return {0, 0, page};
  if (file == 1) return {kWalHeaderBytes, kFrameHeaderBytes, page};
  return {kJournalHeaderBytes, 4, page_of_journal(files.files[2]) + 4};
}

void damage_place(DatabaseFiles& files, base::Rng& rng) {
  size_t file = 0;
  if (rng.chance(0.4) && !files.wal().empty()) file = 1;
  if (rng.chance(0.4) && !files.journal().empty()) file = 2;
  std::string& bytes = files.files[file];
  if (bytes.empty()) return;
  const Layout layout = layout_of(file, files);
  const size_t stride = layout.header + layout.page;
  const size_t pages =
      std::max<size_t>(1, (bytes.size() - std::min(bytes.size(), layout.first)) / stride);
  const size_t start = layout.first + rng.below(pages) * stride;
  auto hit = [&](size_t at) {
    if (at < bytes.size()) damage_byte(bytes[at], rng);
  };
  switch (rng.below(10)) {
    case 0:
      hit(rng.below(bytes.size()));
      break;
    case 1:
      hit(rng.below(100));  // the file's header
      break;
    case 2: {  // a schema text
      const size_t at = bytes.find(rng.chance(0.5) ? "CREATE" : "TABLE", rng.below(bytes.size()));
      if (at != std::string::npos) hit(at + rng.below(80));
      break;
    }
    case 3: {  // a page where another was
      const size_t from = layout.first + rng.below(pages) * stride;
      if (from + stride <= bytes.size() && start + stride <= bytes.size()) {
        std::memmove(bytes.data() + start, bytes.data() + from, stride);
      }
      break;
    }
    case 4:
      if (rng.chance(0.3)) bytes.resize(rng.below(bytes.size()) + 1);
      break;
    case 5:  // a page number, in a pointer or a trunk
      put32(bytes, start + layout.header + rng.below(16), static_cast<u32>(rng.below(40)));
      break;
    default:  // the page's header, its cell pointers and what follows
      hit(start + layout.header + (file == 0 && start == 0 ? 100 : 0) +
          rng.below(rng.chance(0.5) ? 12 : 72));
  }
}

}  // namespace

std::string DatabaseFiles::pack() const {
  std::string out;
  for (const std::string& file : files) {
    out.append(4, '\0');
    put32(out, out.size() - 4, static_cast<u32>(file.size()));
    out += file;
  }
  return out;
}

DatabaseFiles DatabaseFiles::unpack(std::string_view input) {
  DatabaseFiles out;
  for (std::string& file : out.files) {
    if (input.size() < 4) break;
    const size_t bytes = std::min<size_t>(get32(input, 0), input.size() - 4);
    file = input.substr(4, bytes);
    input.remove_prefix(4 + bytes);
  }
  return out;
}

size_t stated_page_bytes(std::string_view database) {
  const size_t bytes = static_cast<size_t>(byte_at(database, 16)) << 8 | byte_at(database, 17);
  if (bytes == 1) return 65536;
  return bytes >= 512 && (bytes & (bytes - 1)) == 0 ? bytes : 512;
}

void sign_wal(std::string& wal) {
  if (wal.size() < kWalHeaderBytes) return;
  WalSum sum{(get32(wal, 0) & 1) != 0};
  sum.add(std::string_view(wal).substr(0, 24));
  put32(wal, 24, sum.first);
  put32(wal, 28, sum.second);
  const size_t stated = get32(wal, 8);
  const size_t page = stated >= 512 && stated <= 65536 ? stated : 512;
  const size_t stride = kFrameHeaderBytes + page;
  for (size_t at = kWalHeaderBytes; at + stride <= wal.size(); at += stride) {
    put32(wal, at + 8, get32(wal, 16));
    put32(wal, at + 12, get32(wal, 20));
    sum.add(std::string_view(wal).substr(at, 8));
    sum.add(std::string_view(wal).substr(at + kFrameHeaderBytes, page));
    put32(wal, at + 16, sum.first);
    put32(wal, at + 20, sum.second);
  }
}

std::string make_journal(std::string_view before, size_t page_bytes, u32 nonce) {
  std::string out(kJournalMagic);
  out.resize(kJournalHeaderBytes, '\0');
  const size_t pages = before.size() / page_bytes;
  put32(out, 8, static_cast<u32>(pages));
  put32(out, 12, nonce);
  put32(out, 16, static_cast<u32>(pages));
  put32(out, 20, kJournalHeaderBytes);
  put32(out, 24, static_cast<u32>(page_bytes));
  for (size_t i = 0; i < pages; ++i) {
    out.append(4, '\0');
    put32(out, out.size() - 4, static_cast<u32>(i + 1));
    out += before.substr(i * page_bytes, page_bytes);
    out.append(4, '\0');
  }
  sign_journal(out);
  return out;
}

void sign_journal(std::string& journal) {
  const size_t page = page_of_journal(journal);
  const u32 nonce = get32(journal, 12);
  for (size_t at = kJournalHeaderBytes; at + page + 8 <= journal.size(); at += page + 8) {
    put32(journal, at + 4 + page,
          journal_sum(std::string_view(journal).substr(at + 4, page), nonce));
  }
}

void damage(DatabaseFiles& files, base::Rng& rng) {
  for (u64 i = rng.below(6) + 1; i > 0; --i) damage_place(files, rng);
  if (rng.chance(0.9)) sign_wal(files.wal());
  if (rng.chance(0.9)) sign_journal(files.journal());
}

}  // namespace db_fuzz
