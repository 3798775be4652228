#include "db/value/sort_prefix.h"

#include "base/bytes.h"

#include <algorithm>
#include <cstring>

namespace db {

u64 sort_prefix_of_text(std::string_view text, const Collation* collation) {
  if (collation->kind != Collation::Kind::kBinary && collation->kind != Collation::Kind::kNocase)
    return 0;
  u8 bytes[8] = {};  // shorter texts end in zeros
  if (!text.empty()) std::memcpy(bytes, text.data(), std::min<size_t>(8, text.size()));
  if (collation->kind == Collation::Kind::kNocase) {
    for (u8& c : bytes) c = c >= 'A' && c <= 'Z' ? static_cast<u8>(c + 32) : c;
  }
  return base::load_be64(bytes) >> 2;
}

}  // namespace db
