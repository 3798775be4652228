// The decimal digits of a double as SQLite's formatter sees them: 18 or 19 significant digits, then
// rounded half up to what the caller asked for. Thread-compatible.
#pragma once

#include "base/types.h"

namespace db {

struct Decimal {
  bool negative = false;
  bool nan = false;
  bool infinite = false;
  int count = 0;  // digits in `digits`, no trailing zeros, at least 1
  int point = 0;  // the value is 0.DIGITS times 10^point
  char digits[24] = {};
};

// `round_to` > 0: that many significant digits; <= 0: -round_to digits after the point. At most
// `digits_max` digits stay (SQLite: 16, or 26 for the `!` flag). Where that comes to 17, the digits
// are the shortest that read back as the same double.
Decimal decimal_of(f64 value, int round_to, int digits_max);

}  // namespace db
