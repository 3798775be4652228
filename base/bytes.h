// Little- and big-endian loads and stores, and LEB-style varints, for wire and disk formats.
// All take unaligned pointers; the caller has checked the bounds.
#pragma once

#include "base/types.h"

#include <bit>
#include <cstring>
#include <span>
#include <string_view>

namespace base {

using ByteView = std::span<const u8>;
using Bytes = std::span<u8>;

static_assert(std::endian::native == std::endian::little, "the formats assume little-endian hosts");

template <class T>
inline T load_le(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
template <class T>
inline void store_le(void* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}
inline u16 load_be16(const void* at) {
  return __builtin_bswap16(load_le<u16>(at));
}
inline u32 load_be32(const void* at) {
  return __builtin_bswap32(load_le<u32>(at));
}
inline u64 load_be64(const void* at) {
  return __builtin_bswap64(load_le<u64>(at));
}
inline void store_be16(void* at, u16 value) {
  store_le<u16>(at, __builtin_bswap16(value));
}
inline void store_be32(void* at, u32 value) {
  store_le<u32>(at, __builtin_bswap32(value));
}
inline void store_be64(void* at, u64 value) {
  store_le<u64>(at, __builtin_bswap64(value));
}

inline ByteView as_bytes(std::string_view text) {
  return {reinterpret_cast<const u8*>(text.data()), text.size()};
}
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace base
