// Messages survive the wire, damage does not pass for a message, tokens open only what they say.
#include "base/files.h"
#include "base/random.h"
#include "fs/wire/connection.h"
#include "fs/wire/message.h"
#include "fs/wire/token.h"

#include <gtest/gtest.h>

#include <thread>

namespace fs::wire {
namespace {

TEST(Call, CarriesEveryFieldOfAWrite) {
  Request request;
  request.who = {1, 2, 3};
  request.now_ns = -5;
  request.operation = Write{77, 1ull << 40, 5, true, true};
  std::string payload = encode_call(request, base::as_bytes("hello"));
  auto call = decode_call(payload);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->request.who.gid, 2u);
  EXPECT_EQ(call->request.now_ns, -5);
  const auto& write = std::get<Write>(call->request.operation);
  EXPECT_EQ(write.ino, 77u);
  EXPECT_EQ(write.offset, 1ull << 40);
  EXPECT_TRUE(write.append);
  EXPECT_EQ(call->data, "hello");
}

TEST(Call, MustCarryAsManyBytesAsItsWriteSays) {
  Request request;
  request.operation = Write{1, 0, 6, false, false};
  EXPECT_FALSE(decode_call(encode_call(request, base::as_bytes("hello"))));
  request.operation = Getattr{1};
  EXPECT_FALSE(decode_call(encode_call(request, base::as_bytes("hello"))));
}

TEST(Call, OptionalFieldsStayAbsent) {
  Request request;
  Setattr change;
  change.size = 9;
  request.operation = change;
  auto call = decode_call(encode_call(request, {}));
  ASSERT_TRUE(call);
  const auto& got = std::get<Setattr>(call->request.operation);
  EXPECT_FALSE(got.mode);
  EXPECT_EQ(got.size, 9u);
}

TEST(Answer, CarriesListingsAndBytes) {
  Effects effects;
  effects.seq = 12;
  effects.reply.entries.push_back({"name", 5, 6, FileType::kRegular, {}});
  effects.reply.pieces = {{1, 0, 3}, {0, 0, 2}};
  std::string payload = encode_answer(effects, std::string_view("abc\0\0", 5));
  auto answer = decode_answer(payload);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->seq, 12u);
  ASSERT_EQ(answer->reply.entries.size(), 1u);
  EXPECT_EQ(answer->reply.entries[0].name, "name");
  EXPECT_EQ(answer->bytes.size(), 5u);
  EXPECT_FALSE(decode_answer(encode_answer(effects, "ab"))) << "fewer bytes than the pieces say";
}

TEST(Decoders, SurviveEveryCutAndRandomDamage) {
  Request request;
  request.operation = Rename{1, "from", 2, "to", 1};
  std::string good = encode_call(request, {});
  for (size_t cut = 0; cut < good.size(); cut++) {
    EXPECT_FALSE(decode_call(std::string_view(good).substr(0, cut))) << cut;
  }
  base::Rng rng(3);
  for (int round = 0; round < 20000; round++) {
    std::string bad = good;
    bad[rng.below(bad.size())] = static_cast<char>(rng.next());
    (void)decode_call(bad);
    (void)decode_answer(bad);
    (void)decode_invalidations(bad);
    (void)decode_hello(bad);
  }
}

TEST(Connection, MovesFramesBothWaysAndNoticesTheEnd) {
  auto listener = Listener::open("127.0.0.1:0");
  ASSERT_TRUE(listener.ok());
  auto client = Connection::dial("127.0.0.1:" + std::to_string((*listener)->port()));
  ASSERT_TRUE(client.ok());
  auto server = (*listener)->accept();
  std::string big(300'000, 'b');
  std::thread sender([&] {
    EXPECT_TRUE((*client)->send(MessageType::kCall, 7, big).ok());
    EXPECT_TRUE((*client)->send(MessageType::kSync, 8, "").ok());
  });
  auto first = server->receive();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->header.id, 7u);
  EXPECT_TRUE(first->payload == big);
  EXPECT_EQ(server->receive()->header.type, MessageType::kSync);
  sender.join();
  (*client)->shutdown();
  EXPECT_FALSE(server->receive().ok());
}

TEST(Token, OpensWhatItSaysAndNothingElse) {
  base::TempDir place("agentfs-token");
  auto key = TokenKey::load_or_make(place / "key");
  ASSERT_TRUE(key.ok());
  std::string token = key->sign({"main", true, "agent-1", 1000});
  auto claims = key->verify(token, 999);
  ASSERT_TRUE(claims.ok());
  EXPECT_EQ(claims->workspace, "main");
  EXPECT_TRUE(claims->write);
  EXPECT_FALSE(key->verify(token, 1000).ok()) << "expired";
  for (size_t i = 0; i < token.size(); i += 3) {
    std::string forged = token;
    forged[i] = forged[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(key->verify(forged, 1).ok()) << i;
  }
  auto same = TokenKey::load_or_make(place / "key");
  EXPECT_TRUE(same->verify(token, 1).ok());
  auto other = TokenKey::load_or_make(place / "other");
  EXPECT_FALSE(other->verify(token, 1).ok());
}

}  // namespace
}  // namespace fs::wire
