// The engine's connection over TLS, against a real PostgreSQL server with a certificate.
#include "base/clock.h"
#include "fs/engine/postgres_connection.h"
#include "fs/engine/testing/postgres_server.h"
#include "fs/tests/mounted.h"
#include "fs/wire/testing/certificates.h"

#include <gtest/gtest.h>

namespace fs::testing {
namespace {

class EngineTls : public ::testing::Test {
 protected:
  void start(const std::string& names) {
    auto identity = authority_.sign(names);
    auto started = PostgresServer::start(identity.certificate, identity.key);
    if (!started.ok()) GTEST_SKIP() << started.error().message();
    server_ = std::move(*started);
    ASSERT_TRUE(base::write_file(place_ / "ca.pem", authority_.certificate()).ok());
  }
  std::string verified() const { return "&sslmode=verify-full&sslrootcert=" + place_ / "ca.pem"; }
  static base::Result<std::unique_ptr<PgConnection>> open(const std::string& url) {
    return PgConnection::open(url, base::system_clock().monotonic_us() + 5'000'000);
  }
  static std::string refusal(const std::string& url) {
    auto opened = open(url);
    if (opened.ok()) return "";
    EXPECT_EQ(opened.error().code(), base::ErrorCode::kPermission)
        << "it is no use to try again: " << opened.error().message();
    return opened.error().message();
  }
  // What the server says of the connection: "TLSv1.3", or "" for none.
  static std::string version(const std::string& url) {
    auto connection = open(url);
    if (!connection.ok()) return connection.error().message();
    auto rows =
        (*connection)
            ->run("SELECT coalesce(version, '') FROM pg_stat_ssl WHERE pid = pg_backend_pid()", {},
                  base::system_clock().monotonic_us() + 5'000'000);
    return rows.ok() ? rows->bytes(0, 0) : rows.error().message();
  }
  base::TempDir place_{"agentfs-engine-tls"};
  wire::testing::Authority authority_;
  std::unique_ptr<PostgresServer> server_;
};

TEST_F(EngineTls, TheUrlSaysHowMuchIsWanted) {
  start("IP:127.0.0.1");
  if (!server_) return;
  EXPECT_EQ(version(server_->new_store_over_tcp("&sslmode=require")), "TLSv1.3");
  EXPECT_EQ(version(server_->new_store_over_tcp(verified())), "TLSv1.3");
  EXPECT_EQ(version(server_->new_store_over_tcp("&sslmode=disable")), "");
  // Another name in the address leads to the same server here, and looks like another machine.
  std::string elsewhere = server_->new_store_over_tcp("&hostaddr=127.0.0.1");
  elsewhere.replace(elsewhere.find("@127.0.0.1"), 10, "@db.example.org");
  EXPECT_EQ(version(elsewhere), "TLSv1.3") << "required unless the URL says otherwise";
  EXPECT_EQ(version(elsewhere + "&sslmode=disable"), "");
}

TEST_F(EngineTls, AServerThatIsNotTheRightOneIsRefused) {
  start("DNS:db.example.org");
  if (!server_) return;
  EXPECT_NE(refusal(server_->new_store_over_tcp(verified())).find("does not prove who it is"),
            std::string::npos);
  wire::testing::Authority other;
  ASSERT_TRUE(base::write_file(place_ / "ca.pem", other.certificate()).ok());
  EXPECT_NE(
      refusal(server_->new_store_over_tcp("&sslmode=verify-ca&sslrootcert=" + place_ / "ca.pem"))
          .find("does not prove who it is"),
      std::string::npos);
}

TEST_F(EngineTls, AServerWithoutTlsIsRefusedWithASentence) {
  start("IP:127.0.0.1");
  if (!server_) return;
  // A socket never speaks TLS, whatever is asked.
  EXPECT_EQ(version(server_->new_store() + "&sslmode=require"), "");
  server_->stop_immediately();
  server_->without_tls();
  ASSERT_TRUE(server_->start_again().ok());
  EXPECT_NE(refusal(server_->new_store_over_tcp("&sslmode=require")).find("speaks no TLS"),
            std::string::npos);
}

TEST_F(EngineTls, AStoreLivesOnSuchAConnection) {
  if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
  start("IP:127.0.0.1");
  if (!server_) return;
  std::string engine = server_->new_store_over_tcp(verified());
  agentfs({"format", place_ / "one", "--engine", engine, "--blobs", place_ / "blobs"});
  Served served(place_ / "one");
  Mount mount(served.address(), {"--token-file", token_file(place_, place_ / "one")});
  ASSERT_TRUE(base::write_file(mount / "f", "kept").ok());
  mount.unmount();
  served.stop();
  EXPECT_NE(agentfs({"fsck", place_ / "one"}).out.find("checked"), std::string::npos);
}

}  // namespace
}  // namespace fs::testing
