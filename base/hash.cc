#include "base/hash.h"

#include <nmmintrin.h>
#include <openssl/sha.h>
#include <xxhash.h>

namespace base {

u32 crc32c(ByteView bytes, u32 seed) {
  u64 crc = ~seed;
  const u8* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) crc = _mm_crc32_u64(crc, load_le<u64>(at));
  u32 narrow = static_cast<u32>(crc);
  for (; left > 0; --left, ++at) narrow = _mm_crc32_u8(narrow, *at);
  return ~narrow;
}

u64 xxh3(ByteView bytes, u64 seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

Sha256 sha256(ByteView bytes) {
  Sha256 digest;
  SHA256(bytes.data(), bytes.size(), digest.data());
  return digest;
}

std::string to_hex(ByteView bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (u8 byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view text) {
  return to_hex(sha256(as_bytes(text)));
}

}  // namespace base
