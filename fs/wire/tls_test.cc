// A TLS connection carries what a plain one does, only to the server that was meant, and says what
// is wrong when it does not.
#include "fs/wire/tls.h"

#include "base/files.h"
#include "fs/wire/connection.h"
#include "fs/wire/testing/certificates.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <thread>

namespace fs::wire {
namespace {

using testing::Authority;

TlsIdentity own_identity() {
  return *TlsIdentity::of_text(TlsIdentity::make_text(), "here");
}

std::shared_ptr<const TlsContext> served(const TlsIdentity& identity) {
  auto context = TlsContext::of_server(identity);
  EXPECT_TRUE(context.ok());
  return *context;
}

// One client and one server on this machine, each with its own idea of what they speak.
struct Meeting {
  std::unique_ptr<Connection> client, server;
  std::string client_error, server_error;

  Meeting(std::shared_ptr<const TlsContext> context, const TlsTrust& trust,
          const std::string& host = "127.0.0.1") {
    auto listener = Listener::open("127.0.0.1:0");
    std::thread accepting([&] {
      server = (*listener)->accept();
      base::Status welcomed = server->welcome(context);
      if (!welcomed.ok()) {
        server_error = welcomed.error().message();
        server->shutdown();
      }
    });
    auto dialled = Connection::dial(host + ":" + std::to_string((*listener)->port()), trust);
    if (dialled.ok()) {
      client = std::move(*dialled);
      // A plain client speaks first.
      if (!trust.use) EXPECT_TRUE(client->send(MessageType::kHello, 0, "x").ok());
    } else {
      client_error = dialled.error().message();
    }
    accepting.join();
  }
  bool said(const char* part) const { return client_error.find(part) != std::string::npos; }
};

TlsTrust pinned(const TlsIdentity& identity) {
  return {true, *identity.fingerprint(), ""};
}

TEST(Tls, CarriesFramesOfEverySizeBothWaysAtOnce) {
  TlsIdentity identity = own_identity();
  Meeting meeting(served(identity), pinned(identity));
  ASSERT_TRUE(meeting.client) << meeting.client_error;
  const size_t sizes[] = {0, 1, 16383, 16384, 16385, 1 << 20, kPayloadBytesMax};
  auto talk = [&](Connection& connection, bool posts) {
    std::thread sender([&] {
      for (size_t size : sizes) {
        std::string payload(size, static_cast<char>('a' + size % 26));
        if (posts) {
          connection.post(MessageType::kFetched, size, payload);
        } else {
          EXPECT_TRUE(connection.send(MessageType::kCall, size, payload).ok());
        }
      }
    });
    for (size_t size : sizes) {
      auto frame = connection.receive();
      ASSERT_TRUE(frame.ok()) << frame.error().message();
      EXPECT_EQ(frame->header.id, size);
      EXPECT_TRUE(frame->payload == std::string(size, static_cast<char>('a' + size % 26)));
    }
    sender.join();
  };
  std::thread other([&] { talk(*meeting.server, true); });
  talk(*meeting.client, false);
  other.join();
}

TEST(Tls, ACutConnectionEndsBothSides) {
  TlsIdentity identity = own_identity();
  Meeting meeting(served(identity), pinned(identity));
  ASSERT_TRUE(meeting.client);
  meeting.client->shutdown();
  EXPECT_FALSE(meeting.server->receive().ok());
  EXPECT_FALSE(meeting.client->receive().ok());
}

TEST(Tls, AnotherCertificateThanTheNamedOneIsRefused) {
  Meeting meeting(served(own_identity()), pinned(own_identity()));
  EXPECT_FALSE(meeting.client);
  EXPECT_TRUE(meeting.said("not the one whose fingerprint")) << meeting.client_error;
  EXPECT_NE(meeting.server_error, "");
}

TEST(Tls, AnAuthorityVouchesForANameAndOnlyForThat) {
  Authority authority;
  base::TempDir place("agentfs-tls");
  ASSERT_TRUE(base::write_file(place / "ca.pem", authority.certificate()).ok());
  TlsTrust trust{true, "", place / "ca.pem"};
  EXPECT_TRUE(Meeting(served(authority.sign("IP:127.0.0.1")), trust).client);
  EXPECT_TRUE(Meeting(served(authority.sign("DNS:localhost")), trust, "localhost").client);
  Meeting wrong_ip(served(authority.sign("IP:127.0.0.2")), trust);
  EXPECT_FALSE(wrong_ip.client);
  EXPECT_TRUE(wrong_ip.said("another name")) << wrong_ip.client_error;
  Meeting wrong_name(served(authority.sign("DNS:example.org")), trust, "localhost");
  EXPECT_FALSE(wrong_name.client);
  EXPECT_TRUE(wrong_name.said("another name")) << wrong_name.client_error;
  Meeting expired(served(authority.sign("IP:127.0.0.1", -60)), trust);
  EXPECT_FALSE(expired.client);
  EXPECT_TRUE(expired.said("expired")) << expired.client_error;
  Meeting stranger(served(own_identity()), trust);
  EXPECT_FALSE(stranger.client);
  EXPECT_TRUE(stranger.said("nobody whom this machine trusts")) << stranger.client_error;
  Meeting system(served(authority.sign("IP:127.0.0.1")), {true, "", ""});
  EXPECT_FALSE(system.client) << "the system's authorities do not know ours";
}

TEST(Tls, AServerAndAClientThatDoNotAgreeAreToldSo) {
  TlsIdentity identity = own_identity();
  Meeting plain_client(served(identity), {});
  ASSERT_TRUE(plain_client.client);
  auto refused = plain_client.client->receive();
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->header.type, MessageType::kRefused);
  EXPECT_NE(refused->payload.find("TLS only"), std::string::npos);
  Meeting plain_server(nullptr, pinned(identity));
  EXPECT_FALSE(plain_server.client);
  EXPECT_TRUE(plain_server.said("speaks no TLS")) << plain_server.client_error;
  Meeting both_plain(nullptr, {});
  ASSERT_TRUE(both_plain.client);
  auto hello = both_plain.server->receive();
  ASSERT_TRUE(hello.ok());
  EXPECT_EQ(hello->payload, "x") << "looking at the first bytes takes none away";
}

TEST(Tls, NothingOlderThanVersion13IsSpoken) {
  SSL_CTX* old = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_max_proto_version(old, TLS1_2_VERSION);
  SSL* client = SSL_new(old);
  SSL_set_bio(client, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_connect_state(client);
  SSL_do_handshake(client);
  std::string hello(16384, 0), answer;
  hello.resize(static_cast<size_t>(
      BIO_read(SSL_get_wbio(client), hello.data(), static_cast<int>(hello.size()))));
  TlsSession server(served(own_identity()), "");
  server.feed(hello);
  EXPECT_FALSE(server.handshake(answer).ok());
  SSL_free(client);
  SSL_CTX_free(old);
}

// Two sessions without sockets between them.
class Sessions : public ::testing::Test {
 protected:
  void meet(u64 records_per_key) {
    TlsIdentity identity = own_identity();
    server_ = std::make_unique<TlsSession>(served(identity), "");
    client_ = std::make_unique<TlsSession>(*TlsContext::of_client(pinned(identity)), "anywhere",
                                           records_per_key);
    std::string to_server, to_client;
    for (int i = 0; i < 3; i++) {
      ASSERT_TRUE(client_->handshake(to_server).ok());
      server_->feed(std::exchange(to_server, ""));
      ASSERT_TRUE(server_->handshake(to_client).ok());
      client_->feed(std::exchange(to_client, ""));
    }
  }
  std::unique_ptr<TlsSession> client_, server_;
};

TEST_F(Sessions, ChangeTheirKeyInTime) {
  meet(2);
  for (int i = 0; i < 9; i++) {
    std::string sealed, plain(100, 0);
    ASSERT_TRUE(client_->seal("message", sealed).ok());
    // A change of key is a record more.
    EXPECT_EQ(sealed.size() > 40, i > 0 && i % 2 == 0) << i;
    server_->feed(sealed);
    auto got = server_->open(plain.data(), plain.size());
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(plain.substr(0, *got), "message");
  }
}

TEST_F(Sessions, NoticeEveryChangedByte) {
  std::string sealed;
  for (size_t at = 5; at < 29; at++) {
    meet(kRecordsPerKey);
    sealed.clear();
    ASSERT_TRUE(client_->seal("message", sealed).ok());
    ASSERT_EQ(sealed.size(), 29u);
    EXPECT_EQ(sealed.find("message"), std::string::npos);
    sealed[at] = static_cast<char>(sealed[at] ^ 1);
    server_->feed(sealed);
    char plain[100];
    auto got = server_->open(plain, sizeof(plain));
    ASSERT_FALSE(got.ok()) << at;
    EXPECT_EQ(got.error().code(), base::ErrorCode::kCorruption);
  }
}

TEST(TlsIdentity, IsMadeOnceAndReadByItsOwnerOnly) {
  base::TempDir place("agentfs-tls");
  auto first = TlsIdentity::load_or_make(place / "tls.pem");
  ASSERT_TRUE(first.ok());
  auto again = TlsIdentity::load_or_make(place / "tls.pem");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*first->fingerprint(), *again->fingerprint());
  EXPECT_TRUE(*first->signed_by_itself());
  EXPECT_FALSE(*Authority().sign("DNS:x").signed_by_itself());
  EXPECT_EQ(base::list_directory(place.path())->size(), 1u);
}

TEST(TlsIdentity, FilesThatAreNoneAreRefusedWithASentence) {
  TlsIdentity one = own_identity(), two = own_identity();
  EXPECT_FALSE(TlsContext::of_server({one.certificate, two.key}).ok()) << "another one's key";
  EXPECT_FALSE(TlsContext::of_server({"no", one.key}).ok());
  EXPECT_FALSE(TlsContext::of_server({one.certificate, "no"}).ok());
  EXPECT_FALSE(TlsContext::of_client({true, "abc", ""}).ok());
  EXPECT_FALSE(TlsContext::of_client({true, "", "/does/not/exist"}).ok());
  std::string fingerprint = *one.fingerprint();
  EXPECT_EQ(*parse_fingerprint("AB:" + fingerprint.substr(2) + "\n"), "ab" + fingerprint.substr(2));
}

}  // namespace
}  // namespace fs::wire
