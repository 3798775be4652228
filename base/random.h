// Seeded random numbers (xoshiro256**, seeded through splitmix64; Blackman and Vigna, 2018). One
// seed reproduces one run. Not for secrets: use secure_random_bytes. Rng is single-threaded.
#pragma once

#include "base/bytes.h"
#include "base/types.h"

namespace base {

class Rng {
 public:
  explicit Rng(u64 seed);
  u64 next();
  // Uniform in [0, bound). REQUIRES: bound > 0.
  u64 below(u64 bound);
  // Uniform in [low, high], both ends included.
  i64 between(i64 low, i64 high) {
    return low + static_cast<i64>(below(static_cast<u64>(high - low) + 1));
  }
  // Uniform in [0, 1).
  f64 unit() { return static_cast<f64>(next() >> 11) * 0x1.0p-53; }
  bool chance(f64 probability) { return unit() < probability; }

 private:
  u64 state_[4];
};

// From the kernel's generator.
void secure_random_bytes(Bytes out);
u64 random_seed();

}  // namespace base
