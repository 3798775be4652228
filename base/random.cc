#include "base/random.h"

#include "base/check.h"

#include <sys/random.h>

#include <bit>

namespace base {

Rng::Rng(u64 seed) {
  for (u64& word : state_) {
    seed += 0x9E3779B97F4A7C15;
    u64 mixed = seed;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    word = mixed ^ (mixed >> 31);
  }
}

u64 Rng::next() {
  u64 result = std::rotl(state_[1] * 5, 7) * 9;
  u64 shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

u64 Rng::below(u64 bound) {
  CHECK(bound > 0);
  return static_cast<u64>((static_cast<unsigned __int128>(next()) * bound) >> 64);
}

void secure_random_bytes(Bytes out) {
  size_t done = 0;
  while (done < out.size()) {
    ssize_t got = getrandom(out.data() + done, out.size() - done, 0);
    if (got > 0) done += static_cast<size_t>(got);
  }
}

u64 random_seed() {
  u64 seed = 0;
  secure_random_bytes({reinterpret_cast<u8*>(&seed), sizeof seed});
  return seed;
}

}  // namespace base
