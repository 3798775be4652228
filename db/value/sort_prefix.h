// A value's place in the sort order as 64 bits: smaller means before, equal means that compare()
// must tell. Two bits for the kind of value, 62 bits of the value. Sorting by it first saves nearly
// all comparisons.
#pragma once

#include "db/value/value.h"

namespace db {

// Of text: collations other than BINARY and NOCASE tell the kind alone.
u64 sort_prefix_of_text(std::string_view text, const Collation* collation);

inline u64 sort_prefix(const Value& value, const Collation* collation) {
  switch (value.type()) {
    case Type::kNull:
      return 0;
    case Type::kInteger:
    case Type::kReal: {
      // 0.0 is added for -0.0, which equals it.
      const f64 real =
          value.is_real() ? value.raw_real() + 0.0 : static_cast<f64>(value.raw_integer());
      const u64 bits = std::bit_cast<u64>(real);
      return u64{1} << 62 | (bits >> 63 != 0 ? ~bits : bits | u64{1} << 63) >> 2;
    }
    case Type::kText:
      return u64{2} << 62 | sort_prefix_of_text(value.bytes(), collation);
    case Type::kBlob:
      return u64{3} << 62 | sort_prefix_of_text(value.bytes(), &kBinary);
  }
  return 0;
}

}  // namespace db
