// Checksums and hashes. crc32c guards records on disk and wire, xxh3 keys tables, SHA-256 names
// content. Thread-safe: all are pure functions.
#pragma once

#include "base/bytes.h"
#include "base/types.h"

#include <array>
#include <string>
#include <string_view>

namespace base {

// CRC-32C (Castagnoli, reflected 0x82F63B78), as in RFC 3720. `seed` continues an earlier sum.
u32 crc32c(ByteView bytes, u32 seed = 0);

u64 xxh3(ByteView bytes, u64 seed = 0);

using Sha256 = std::array<u8, 32>;
Sha256 sha256(ByteView bytes);

// Lower-case hexadecimal.
std::string to_hex(ByteView bytes);
// Convenience for content names: to_hex(sha256(text)).
std::string sha256_hex(std::string_view text);

}  // namespace base
