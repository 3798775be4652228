#include "base/hash.h"

#include <gtest/gtest.h>

namespace base {
namespace {

// Check values of RFC 3720 (B.4) and FIPS 180-4.
TEST(Hash, Crc32cMatchesTheRfc) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xE3069283u);
  std::string zeros(32, '\0');
  EXPECT_EQ(crc32c(as_bytes(zeros)), 0x8A9136AAu);
}

TEST(Hash, Crc32cContinuesFromASeed) {
  EXPECT_EQ(crc32c(as_bytes("456789"), crc32c(as_bytes("123"))), crc32c(as_bytes("123456789")));
}

TEST(Hash, Sha256MatchesTheStandard) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hash, Xxh3DependsOnSeedAndContent) {
  EXPECT_NE(xxh3(as_bytes("a")), xxh3(as_bytes("b")));
  EXPECT_NE(xxh3(as_bytes("a"), 1), xxh3(as_bytes("a"), 2));
}

}  // namespace
}  // namespace base
