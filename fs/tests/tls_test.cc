// Mounts and servers over TLS, with real processes: how a mount knows its server, and what it says
// when it does not.
#include "base/files.h"
#include "fs/tests/mounted.h"
#include "fs/tests/proxy.h"
#include "fs/wire/testing/certificates.h"

#include <gtest/gtest.h>

namespace fs::testing {
namespace {

class Tls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
    store_ = place_ / "store";
    agentfs({"format", store_});
    ASSERT_TRUE(base::make_directories(place_ / "m").ok());
  }
  std::vector<std::string> certificate(const std::string& names, long end_s = 3600) {
    auto identity = authority_.sign(names, end_s);
    EXPECT_TRUE(base::write_file(place_ / "ca.pem", authority_.certificate()).ok());
    EXPECT_TRUE(base::write_file(place_ / "cert.pem", identity.certificate).ok());
    EXPECT_TRUE(base::write_file(place_ / "key.pem", identity.key).ok());
    return {"--tls-cert", place_ / "cert.pem", "--tls-key", place_ / "key.pem"};
  }
  // What mounting says when it must fail.
  std::string refusal(std::string address, std::vector<std::string> options) {
    std::vector<std::string> arguments = {"mount", std::move(address), place_ / "m"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    auto ran = agentfs(arguments, true);
    EXPECT_NE(ran.exit_code, 0);
    return ran.err;
  }
  static std::string with_tls(const Served& served) {
    return "agentfs+tls" + served.address().substr(7);
  }
  base::TempDir place_{"agentfs-tls"};
  wire::testing::Authority authority_;
  std::string store_;
};

TEST_F(Tls, ATokenIsAllThatAMountNeeds) {
  Served served(store_, {"--tls"});
  std::string token = token_file(place_, store_);
  {
    Mount shared(served.address(), {"--token-file", token});
    ASSERT_TRUE(base::write_file(shared / "f", std::string(3'000'000, 'x')).ok());
  }
  Mount alone(served.address(), {"--token-file", token, "--private", "--journal", place_ / "j"});
  EXPECT_EQ(base::read_file(alone / "f").value_or(""), std::string(3'000'000, 'x'));
}

TEST_F(Tls, NothingReadableCrossesTheWire) {
  std::string secret = "a name that nobody else has";
  auto crosses = [&](bool tls) {
    Served served(store_, tls ? std::vector<std::string>{"--tls"} : std::vector<std::string>{});
    Proxy proxy(served.port());
    proxy.record();
    Mount mount("agentfs://127.0.0.1:" + std::to_string(proxy.port()) + "/main",
                {"--token-file", token_file(place_, store_)});
    EXPECT_TRUE(base::write_file(mount / secret, "content").ok());
    mount.unmount();
    EXPECT_GT(proxy.recorded().size(), 500u);
    return proxy.recorded().find(secret) != std::string::npos;
  };
  EXPECT_TRUE(crosses(false)) << "or this test proves nothing";
  EXPECT_FALSE(crosses(true));
}

TEST_F(Tls, ATokenOfAnotherStoreMeetsAnotherCertificate) {
  std::string other = place_ / "other";
  agentfs({"format", other});
  std::string token = token_file(place_, other, {"--tls"});
  Served served(store_, {"--tls"});
  EXPECT_NE(refusal(served.address(), {"--token-file", token}).find("not the one whose"),
            std::string::npos);
}

TEST_F(Tls, TheAuthorityOfAFileIsAsked) {
  Served served(store_, certificate("IP:127.0.0.1"));
  std::string token = token_file(place_, store_);
  Mount mount(with_tls(served), {"--token-file", token, "--tls-ca", place_ / "ca.pem"});
  EXPECT_TRUE(base::write_file(mount / "f", "x").ok());
  EXPECT_NE(refusal(with_tls(served), {"--token-file", token}).find("nobody whom this machine"),
            std::string::npos);
}

TEST_F(Tls, ACertificateForAnotherHostOrOfThePastIsRefused) {
  std::string token = token_file(place_, store_);
  std::vector<std::string> options = {"--token-file", token, "--tls-ca", place_ / "ca.pem"};
  {
    Served served(store_, certificate("DNS:example.org"));
    EXPECT_NE(refusal(with_tls(served), options).find("another name"), std::string::npos);
  }
  Served served(store_, certificate("IP:127.0.0.1", -60));
  EXPECT_NE(refusal(with_tls(served), options).find("expired"), std::string::npos);
}

TEST_F(Tls, WhoDoesNotAgreeIsToldSo) {
  std::string plain_token = token_file(place_, store_);
  std::string tls_token = token_file(place_, store_, {"--tls"});
  {
    Served served(store_, {"--tls"});
    EXPECT_NE(refusal(served.address(), {"--token-file", plain_token}).find("TLS only"),
              std::string::npos);
  }
  Served served(store_);
  EXPECT_NE(refusal(served.address(), {"--token-file", tls_token}).find("speaks no TLS"),
            std::string::npos);
}

TEST_F(Tls, OtherMachinesAreServedPlainOnlyWhenAskedFor) {
  auto refused = agentfs({"serve", store_, "--listen", "0.0.0.0:0"}, true);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("--tls"), std::string::npos) << refused.err;
  auto half = agentfs({"serve", store_, "--tls-cert", place_ / "cert.pem"}, true);
  EXPECT_NE(half.err.find("go together"), std::string::npos) << half.err;
}

}  // namespace
}  // namespace fs::testing
