// Codecs and negotiation, without a kernel.
#include "base/random.h"
#include "fs/fuse/negotiate.h"
#include "fs/fuse/reply.h"
#include "fs/fuse/request.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace fs::fuse {
namespace {

std::vector<u8> request_bytes(Op op, std::string_view body) {
  InHeader header{};
  header.len = static_cast<u32>(sizeof(header) + body.size());
  header.opcode = static_cast<u32>(op);
  header.unique = 7;
  header.node = 1;
  std::vector<u8> bytes(header.len);
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), body.data(), body.size());
  return bytes;
}

template <class T>
std::string raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

TEST(Decode, FindsArgumentAndBothNamesOfARename) {
  auto bytes = request_bytes(Op::kRename2, raw(Rename2In{42, 1, 0}) + std::string("old\0new\0", 8));
  auto request = decode(bytes, {});
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->arg<Rename2In>().new_dir, 42u);
  EXPECT_EQ(request->name, "old");
  EXPECT_EQ(request->name2, "new");
}

TEST(Decode, RefusesANameWithoutAnEnd) {
  EXPECT_FALSE(decode(request_bytes(Op::kLookup, "abc"), {}).ok());
  EXPECT_FALSE(decode(request_bytes(Op::kSymlink, std::string("abc\0def", 7)), {}).ok());
}

TEST(Decode, RefusesAWriteThatCarriesLessThanItSays) {
  WriteIn write{};
  write.size = 10;
  EXPECT_FALSE(decode(request_bytes(Op::kWrite, raw(write) + "short"), {}).ok());
  auto request = decode(request_bytes(Op::kWrite, raw(write) + "0123456789 and more"), {});
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(base::as_text(request->data), "0123456789");
}

TEST(Decode, RefusesABatchForgetWithAnAbsurdCount) {
  EXPECT_FALSE(decode(request_bytes(Op::kBatchForget, raw(BatchForgetIn{0xffffffff, 0})), {}).ok());
}

TEST(Decode, TakesTheShortFormsOfOldKernels) {
  InitIn init{};
  init.major = 7;
  init.minor = 31;
  auto old_init = decode(request_bytes(Op::kInit, raw(init).substr(0, kInitInOldBytes)), {});
  ASSERT_TRUE(old_init.ok());
  EXPECT_EQ(old_init->arg<InitIn>().flags2, 0u);
  SetxattrIn set{};
  set.size = 3;
  auto old_set =
      decode(request_bytes(Op::kSetxattr, raw(set).substr(0, 8) + std::string("user.a\0xyz", 10)),
             {false});
  ASSERT_TRUE(old_set.ok());
  EXPECT_EQ(old_set->name, "user.a");
  EXPECT_EQ(base::as_text(old_set->data), "xyz");
}

TEST(Decode, LeavesUnknownOpcodesToTheCaller) {
  auto request = decode(request_bytes(static_cast<Op>(4096), "whatever"), {});
  ASSERT_TRUE(request.ok());
  EXPECT_STREQ(name_of(request->op), "?");
}

TEST(Decode, SurvivesRandomDamage) {
  base::Rng rng(11);
  for (int round = 0; round < 20000; round++) {
    std::string body(rng.below(120), 0);
    for (char& c : body) c = static_cast<char>(rng.below(4) == 0 ? rng.next() : 0);
    auto bytes = request_bytes(static_cast<Op>(rng.below(60)), body);
    if (rng.chance(0.2)) bytes[rng.below(bytes.size())] ^= static_cast<u8>(rng.next());
    auto request = decode(bytes, {rng.chance(0.5)});
    if (request.ok()) {
      EXPECT_LE(request->data.size(), bytes.size());
    }
  }
}

TEST(Reply, ErrorDropsThePayload) {
  Reply reply(64);
  reply.start(9);
  reply.put(WriteOut{5, 0});
  reply.error(ENOENT);
  OutHeader header = base::load_le<OutHeader>(reply.head().data());
  EXPECT_EQ(header.len, sizeof(OutHeader));
  EXPECT_EQ(header.error, -ENOENT);
  EXPECT_EQ(header.unique, 9u);
}

TEST(Reply, CountsAttachedDataInItsLength) {
  Reply reply(64);
  reply.start(3);
  std::vector<u8> data(100, 1);
  reply.attach(data);
  EXPECT_EQ(base::load_le<OutHeader>(reply.head().data()).len, sizeof(OutHeader) + 100);
  EXPECT_EQ(reply.copy().size(), sizeof(OutHeader) + 100);
}

TEST(DirentWriter, StopsBeforeTheSizeTheKernelGave) {
  Reply reply(4096);
  reply.start(1);
  DirentWriter writer(reply, 100);
  EXPECT_TRUE(writer.add("abc", 5, 8, 1));         // 24 + 3 -> 32
  EXPECT_TRUE(writer.add("0123456789", 6, 8, 2));  // 24 + 10 -> 40
  EXPECT_FALSE(writer.add("x", 7, 8, 3));          // 32 > 28
  EXPECT_EQ(reply.payload_bytes(), 72u);
  EXPECT_FALSE(writer.add_plus("x", 8, 4, EntryOut{}));
}

TEST(Negotiate, TakesNothingTheKernelDidNotOffer) {
  InitIn offer{};
  offer.major = 7;
  offer.minor = 31;
  offer.flags = static_cast<u32>(init::kAsyncRead | init::kNoOpenSupport);
  auto result = negotiate(offer, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->agreement.flags, init::kAsyncRead | init::kNoOpenSupport);
  EXPECT_FALSE(result->agreement.no_opendir());
  EXPECT_EQ(result->agreement.max_write_bytes, 128u * 1024);
  EXPECT_EQ(result->reply.minor, 31u);
}

TEST(Negotiate, LeavesTruncationToSetattrSoThatOpensNeedNotReachUs) {
  InitIn offer{};
  offer.major = 7;
  offer.minor = 45;
  offer.flags = ~0u;
  offer.flags2 = ~0u;
  auto with = negotiate(offer, {.no_open = true});
  auto without = negotiate(offer, {.no_open = false});
  EXPECT_FALSE(with->agreement.has(init::kAtomicOTrunc));
  EXPECT_FALSE(without->agreement.has(init::kAtomicOTrunc));
  EXPECT_FALSE(without->agreement.no_open());
}

TEST(Negotiate, AsksANewerMajorAgainAndRefusesOldKernels) {
  InitIn offer{};
  offer.major = 8;
  EXPECT_TRUE(negotiate(offer, {})->again);
  offer.major = 7;
  offer.minor = 23;
  EXPECT_FALSE(negotiate(offer, {}).ok());
}

TEST(Notification, CarriesItsCodeInsteadOfAnError) {
  auto bytes = encode_inval_entry(5, "name", false);
  OutHeader header = base::load_le<OutHeader>(bytes.data());
  EXPECT_EQ(header.unique, 0u);
  EXPECT_EQ(header.error, static_cast<i32>(Notify::kInvalEntry));
  EXPECT_EQ(header.len, sizeof(OutHeader) + sizeof(NotifyInvalEntry) + 5);
}

}  // namespace
}  // namespace fs::fuse
