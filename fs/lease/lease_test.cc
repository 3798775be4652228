#include "fs/lease/lease.h"

#include <gtest/gtest.h>

namespace fs {
namespace {

using Kind = LeaseMessage::Kind;
constexpr LeaseTerms kTerms{100, 100, 5};  // client 85, server 115

TEST(Lease, TheHolderStopsBeforeTheServerFrees) {
  LeaseServer server(kTerms);
  LeaseClient one(1, kTerms);
  LeaseClient two(2, kTerms);
  one.on(server.on(one.acquire(0, false), 0)[0], 0);
  EXPECT_TRUE(one.may_write(84));
  EXPECT_FALSE(one.may_write(85));
  two.on(server.on(two.acquire(114, false), 114)[0], 114);
  EXPECT_FALSE(two.may_write(114));
  two.on(server.on(two.acquire(115, false), 115)[0], 115);
  EXPECT_TRUE(two.may_write(115));
  EXPECT_FALSE(server.append(1, one.epoch(), 5));
}

TEST(Lease, ALateRenewalFindsItselfFenced) {
  LeaseServer server(kTerms);
  LeaseClient one(1, kTerms);
  LeaseClient two(2, kTerms);
  one.on(server.on(one.acquire(0, false), 0)[0], 0);
  two.on(server.on(two.acquire(200, false), 200)[0], 200);
  auto answers = server.on(one.renew(201), 201);
  EXPECT_EQ(answers[0].kind, Kind::kFenced);
  one.on(answers[0], 201);
  EXPECT_EQ(one.role(), LeaseClient::Role::kNone);
}

TEST(Lease, AViewerDowngradesTheHolderAndSeesOnlyWhatIsStored) {
  LeaseServer server(kTerms);
  LeaseClient writer(1, kTerms);
  LeaseClient viewer(2, kTerms);
  writer.on(server.on(writer.acquire(0, false), 0)[0], 0);
  auto answers = server.on(viewer.view(), 1);
  ASSERT_EQ(answers.size(), 2u);
  viewer.on(answers[0], 1);
  writer.on(answers[1], 1);
  EXPECT_TRUE(writer.must_publish());
  EXPECT_TRUE(writer.may_write(10));
  EXPECT_TRUE(server.on(writer.published(7), 2).empty());
  EXPECT_TRUE(server.append(1, writer.epoch(), 7));
  viewer.on(server.on(writer.published(7), 3)[0], 3);
  EXPECT_EQ(viewer.seen(), 7u);
}

TEST(Lease, HandOverStartsAtWhatTheOldHolderFlushed) {
  LeaseServer server(kTerms);
  LeaseClient one(1, kTerms);
  LeaseClient two(2, kTerms);
  one.on(server.on(one.acquire(0, false), 0)[0], 0);
  auto answers = server.on(two.acquire(1, true), 1);
  ASSERT_EQ(answers.size(), 2u);
  two.on(answers[0], 1);
  one.on(answers[1], 1);
  EXPECT_TRUE(one.recalled());
  EXPECT_TRUE(server.append(1, one.epoch(), 9));
  server.on(one.release(9), 2);
  auto grant = server.on(two.acquire(3, false), 3)[0];
  EXPECT_EQ(grant.kind, Kind::kGranted);
  EXPECT_EQ(grant.seq, 9u);
}

TEST(Lease, ARestartedServerWaitsForOldLeasesToEnd) {
  LeaseServer server(kTerms);
  server.restart(4, 1000);
  LeaseClient one(1, kTerms);
  EXPECT_EQ(server.on(one.acquire(1001, false), 1001)[0].kind, Kind::kRefused);
  auto grant = server.on(one.acquire(1115, false), 1115)[0];
  EXPECT_EQ(grant.kind, Kind::kGranted);
  EXPECT_GT(grant.epoch, 5u);
}

}  // namespace
}  // namespace fs
