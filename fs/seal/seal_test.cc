// What is sealed comes back only with the same key, nonce and bound bytes; keys are found in files.
#include "fs/seal/seal.h"

#include "base/files.h"
#include "fs/seal/key_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>

namespace fs {
namespace {

base::Bytes bytes_of(std::string& text) {
  return {reinterpret_cast<u8*>(text.data()), text.size()};
}

TEST(SealKey, OpensWhatItSealedAndNothingElse) {
  SealKey key(random_data_key()), other(random_data_key());
  std::string sealed = "the content of a file";
  SealTag tag = key.seal({7, 1}, base::as_bytes("head"), bytes_of(sealed));
  EXPECT_EQ(sealed.find("content"), std::string::npos);
  auto opens = [&](const SealKey& with, SealKey::Nonce nonce, std::string_view bound,
                   std::string bytes, SealTag with_tag) {
    bool good = with.open(nonce, base::as_bytes(bound), bytes_of(bytes), with_tag);
    return good && bytes == "the content of a file";
  };
  EXPECT_TRUE(opens(key, {7, 1}, "head", sealed, tag));
  EXPECT_FALSE(opens(other, {7, 1}, "head", sealed, tag));
  EXPECT_FALSE(opens(key, {8, 1}, "head", sealed, tag));
  EXPECT_FALSE(opens(key, {7, 2}, "head", sealed, tag));
  EXPECT_FALSE(opens(key, {7, 1}, "Head", sealed, tag));
  for (size_t i = 0; i < sealed.size(); i++) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 4);
    EXPECT_FALSE(opens(key, {7, 1}, "head", changed, tag)) << i;
  }
  for (size_t i = 0; i < tag.size(); i++) {
    SealTag changed = tag;
    changed[i] ^= 4;
    EXPECT_FALSE(opens(key, {7, 1}, "head", sealed, changed)) << i;
  }
  EXPECT_TRUE(opens(key, {7, 1}, "head", sealed, tag)) << "a failure leaves the key as it was";
}

TEST(SealKey, AgreesWithAPublishedTestVector) {
  // The GCM specification's test case 14: key, nonce and 16 bytes of plain text all zero.
  SealKey key(DataKey{});
  std::string zeros(16, '\0');
  SealTag tag = key.seal({}, {}, bytes_of(zeros));
  const u8 text[] = {0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60, 0x6b, 0x6e,
                     0x07, 0x4e, 0xc5, 0xd3, 0xba, 0xf3, 0x9d, 0x18};
  const SealTag expected = {0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99, 0x6b, 0xf0,
                            0x26, 0x5b, 0x98, 0xb5, 0xd4, 0x8a, 0xb9, 0x19};
  EXPECT_EQ(zeros, std::string(reinterpret_cast<const char*>(text), sizeof text));
  EXPECT_EQ(tag, expected);
}

TEST(StoreSeal, DerivesOneKeyForEachUseAndSalt) {
  StoreSeal seal(random_data_key());
  std::set<std::string> results;
  Salt one = random_salt(), two = random_salt();
  for (auto use : {StoreSeal::Use::kLog, StoreSeal::Use::kPack}) {
    for (const Salt& salt : {one, two}) {
      std::string text = "same";
      seal.key(use, salt)->seal({}, {}, bytes_of(text));
      results.insert(text);
    }
  }
  EXPECT_EQ(results.size(), 4u);
  EXPECT_EQ(seal.key(StoreSeal::Use::kLog, one), seal.key(StoreSeal::Use::kLog, one));
}

TEST(StoreSeal, TextsAreBoundToTheirNames) {
  StoreSeal seal(random_data_key());
  std::string sealed = seal.seal_text("token", "secret");
  EXPECT_EQ(seal.open_text("token", sealed), "secret");
  EXPECT_NE(seal.seal_text("token", "secret"), sealed);
  EXPECT_FALSE(seal.open_text("tls", sealed));
  EXPECT_FALSE(seal.open_text("token", "secret"));
  EXPECT_FALSE(StoreSeal(random_data_key()).open_text("token", sealed));
}

TEST(KeyFile, IsMadeOnceAndOpensWhatItWrapped) {
  base::TempDir place("agentfs-key");
  bool made = false;
  auto first = read_or_make_key_file(place / "key", made);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(made);
  struct stat status{};
  ASSERT_EQ(::stat((place / "key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  auto again = read_or_make_key_file(place / "key", made);
  EXPECT_FALSE(made);
  EXPECT_EQ(first->bytes, again->bytes);
  DataKey data = random_data_key();
  std::string wrapped = wrap_key(data, *first);
  EXPECT_EQ(*unwrap_key(wrapped, *again), data);
  auto other = read_or_make_key_file(place / "other", made);
  auto refused = unwrap_key(wrapped, *other);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("is not this store's"), std::string::npos);
}

TEST(KeyFile, RefusesWhatIsNoKey) {
  base::TempDir place("agentfs-key");
  for (const char* text : {"", "password", "0123", "g123456789abcdef0123456789abcdef"}) {
    ASSERT_TRUE(base::write_file(place / "key", text).ok());
    EXPECT_FALSE(read_key_file(place / "key").ok()) << text;
  }
  EXPECT_FALSE(read_key_file(place / "missing").ok());
}

}  // namespace
}  // namespace fs
