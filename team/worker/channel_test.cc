#include "team/worker/channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace team {
namespace {

using base::ErrorCode;
using base::Json;

struct Ends {
  Ends() : pair(*Channel::make_pair()), left(pair.first), right(pair.second) {}
  std::pair<int, int> pair;
  Channel left, right;
};

TEST(Channel, CarriesJsonAndRawBytesOfAnySize) {
  Ends ends;
  const std::string big(5 << 20, '\xff');
  std::thread sender([&] {
    ASSERT_TRUE(ends.left.send(Json::object({{"say", "a"}})).ok());
    ASSERT_TRUE(ends.left.send(Json::object({{"say", std::string(3 << 20, 'x')}}), big).ok());
  });
  auto first = ends.right.receive(5'000);
  auto second = ends.right.receive(5'000);
  sender.join();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->head["say"].as_string(), "a");
  EXPECT_EQ(first->bytes, "");
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->head["say"].as_string().size(), 3u << 20);
  EXPECT_EQ(second->bytes, big);
}

TEST(Channel, FramesOfTwoThreadsDoNotMix) {
  Ends ends;
  const auto talk = [&](const char* name) {
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(ends.left.send(Json::object({{name, i}})).ok());
  };
  std::thread a(talk, "a"), b(talk, "b");
  int next_a = 0, next_b = 0;
  for (int i = 0; i < 400; ++i) {
    auto frame = ends.right.receive(5'000);
    ASSERT_TRUE(frame.ok());
    int& next = frame->head.has("a") ? next_a : next_b;
    EXPECT_EQ(frame->head[frame->head.has("a") ? "a" : "b"].as_int(), next++);
  }
  a.join();
  b.join();
}

TEST(Channel, SilenceIsADeadlineAndAClosedEndIsGone) {
  Ends ends;
  EXPECT_EQ(ends.right.receive(10).error().code(), ErrorCode::kDeadline);
  ends.left.close();
  EXPECT_EQ(ends.right.receive(1'000).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(ends.right.send(Json(1)).error().code(), ErrorCode::kUnavailable);
}

TEST(Channel, AFrameCutOffByDeathIsNoFrame) {
  Ends ends;
  const std::string half("\x20\0\0\0\0\0\0\0{\"say\"", 14);
  ASSERT_EQ(::send(ends.pair.first, half.data(), half.size(), 0), 14);
  ends.left.close();
  EXPECT_EQ(ends.right.receive(1'000).error().code(), ErrorCode::kUnavailable);
}

TEST(Channel, NonsenseIsCorruption) {
  Ends ends;
  const std::string mad("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
  ASSERT_EQ(::send(ends.pair.first, mad.data(), mad.size(), 0), 8);
  EXPECT_EQ(ends.right.receive(1'000).error().code(), ErrorCode::kCorruption);
  Ends again;
  const std::string no_json("\x01\0\0\0\0\0\0\0{", 9);
  ASSERT_EQ(::send(again.pair.first, no_json.data(), no_json.size(), 0), 9);
  EXPECT_EQ(again.right.receive(1'000).error().code(), ErrorCode::kCorruption);
}

}  // namespace
}  // namespace team
