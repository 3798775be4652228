// The client against a server that drops connections, lies about ranges and changes content.
#include "llm/cli/download.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/http_server.h"

#include <gtest/gtest.h>

#include <atomic>

namespace llm {
namespace {

std::string content_of(u32 seed, size_t size = 200'000) {
  std::string out;
  for (u32 x = seed; out.size() < size; x = x * 1664525 + 1013904223)
    out.push_back(static_cast<char>(x >> 24));
  return out;
}

class DownloadTest : public testing::Test {
 protected:
  void serve(base::HttpHandler handler) {
    server_ = base::HttpServer::start({.threads = 4}, [this, handler](const auto& request) {
                ++requests_;
                return handler(request);
              }).value();
  }
  // Sends `body` from the asked offset on, `at_most` bytes of it, then breaks off.
  static base::HttpReply piece(const base::HttpServerRequest& request, const std::string& body,
                               size_t at_most, const std::string& tag) {
    const std::string_view range = request.header("range");
    const bool same = request.header("if-range").empty() || request.header("if-range") == tag;
    const size_t from = range.empty() || !same ? 0 : std::stoul(std::string(range.substr(6)));
    base::HttpReply reply;
    reply.content_type = "application/octet-stream";
    if (!tag.empty()) reply.headers.emplace_back("ETag", tag);
    if (from > 0) {
      reply.status = 206;
      reply.headers.emplace_back("Content-Range", "bytes " + std::to_string(from) + "-" +
                                                      std::to_string(body.size() - 1) + "/" +
                                                      std::to_string(body.size()));
    }
    if (at_most >= body.size() - from) {
      reply.body = body.substr(from);
      return reply;
    }
    reply.stream = [part = body.substr(from, at_most)](const base::HttpWriter& write) {
      write(part);
      return false;
    };
    return reply;
  }
  base::Result<Downloaded> fetch(const std::string& sha256 = "") {
    DownloadOptions options;
    options.sha256 = sha256;
    options.clock = &clock_;
    return download(server_->url() + "/model.gguf", path_, options);
  }
  std::string written() const { return base::read_file(path_).value_or("(none)"); }

  base::TempDir folder_;
  const std::string path_ = folder_ / "model.gguf";
  base::ManualClock clock_;
  std::atomic<int> requests_ = 0;
  std::unique_ptr<base::HttpServer> server_;
};

TEST_F(DownloadTest, GoesOnAfterEachDroppedConnection) {
  const std::string body = content_of(1);
  serve([&](const auto& request) { return piece(request, body, 60'000, "\"one\""); });
  const auto got = fetch(base::sha256_hex(body));
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_EQ(written(), body);
  EXPECT_TRUE(got->checked);
  EXPECT_EQ(requests_, 4);
  EXPECT_FALSE(base::file_exists(path_ + ".partial"));
}

TEST_F(DownloadTest, ALaterRunGoesOnWhereAnEarlierOneGaveUp) {
  const std::string body = content_of(2);
  std::atomic<bool> down = false;
  serve([&](const auto& request) {
    if (down) return base::HttpReply{.status = 503};
    down = true;
    return piece(request, body, 70'000, "\"one\"");
  });
  EXPECT_FALSE(fetch().ok());
  EXPECT_EQ(written(), "(none)") << "half a model must not look like one";
  serve([&](const auto& request) { return piece(request, body, 1 << 20, "\"one\""); });
  // The same address, another server.
  const auto note = base::read_file(path_ + ".partial.json").value();
  const size_t at = note.find("http");
  const std::string moved =
      note.substr(0, at) + server_->url() + "/model.gguf" + note.substr(note.find('"', at));
  ASSERT_TRUE(base::write_file(path_ + ".partial.json", moved).ok());
  const auto got = fetch();
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_EQ(got->resumed_at, 70'000u);
  EXPECT_EQ(written(), body);
}

TEST_F(DownloadTest, ContentThatChangedMidwayIsFetchedAnewNotMixed) {
  const std::string before = content_of(3);
  const std::string after = content_of(4, 150'000);
  serve([&](const auto& request) {
    return requests_ == 1 ? piece(request, before, 90'000, "\"one\"")
                          : piece(request, after, 1 << 20, "\"two\"");
  });
  ASSERT_TRUE(fetch().ok());
  EXPECT_EQ(written(), after);
}

TEST_F(DownloadTest, AServerThatLiesAboutRangesIsNotBelieved) {
  const std::string body = content_of(5);
  serve([&](const auto& request) {
    auto reply = piece(request, body, requests_ == 1 ? 50'000 : 1 << 20, "\"one\"");
    if (requests_ == 2) {  // says 206 and sends another part
      reply.headers.back().second = "bytes 0-199999/200000";
      reply.body = body;
    }
    return reply;
  });
  ASSERT_TRUE(fetch().ok());
  EXPECT_EQ(written(), body);
  EXPECT_EQ(requests_, 3);
}

TEST_F(DownloadTest, AServerThatIgnoresRangesSendsTheWholeFile) {
  const std::string body = content_of(6);
  serve([&](auto request) {
    request.headers.clear();
    return piece(request, body, requests_ == 1 ? 50'000 : 1 << 20, "\"one\"");
  });
  ASSERT_TRUE(fetch().ok());
  EXPECT_EQ(written(), body);
}

TEST_F(DownloadTest, WithoutProofOfSamenessItStartsAgain) {
  const std::string body = content_of(7);
  std::atomic<int> ranges = 0;
  serve([&](const auto& request) {
    ranges += request.header("range").empty() ? 0 : 1;
    return requests_ == 1 ? piece(request, body, 50'000, "") : base::HttpReply{.status = 500};
  });
  EXPECT_FALSE(fetch().ok());
  EXPECT_FALSE(fetch().ok());
  EXPECT_EQ(ranges, 0) << "neither in the same run nor in a later one";
}

TEST_F(DownloadTest, AWrongChecksumRemovesWhatCame) {
  const std::string body = content_of(8);
  serve([&](const auto& request) { return piece(request, body, 1 << 20, "\"one\""); });
  const auto got = fetch(base::sha256_hex("something else"));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), base::ErrorCode::kCorruption);
  EXPECT_FALSE(base::file_exists(path_));
  EXPECT_FALSE(base::file_exists(path_ + ".partial"));
  EXPECT_EQ(fetch("12").error().code(), base::ErrorCode::kInvalidArgument);
}

TEST_F(DownloadTest, AChecksumSentAsTagIsCheckedAndRedirectsAreFollowed) {
  const std::string body = content_of(9);
  serve([&](const auto& request) {
    if (request.path == "/model.gguf") {
      base::HttpReply reply{.status = 302};
      reply.headers.emplace_back("Location", "/real");
      reply.headers.emplace_back("X-Linked-ETag", "\"" + base::sha256_hex(body) + "\"");
      return reply;
    }
    return piece(request, body, 1 << 20, "\"one\"");
  });
  const auto got = fetch();
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_TRUE(got->checked);
  EXPECT_EQ(written(), body);
}

TEST_F(DownloadTest, NothingThereIsSaidAtOnce) {
  serve([](const auto&) { return base::HttpReply{.status = 404}; });
  EXPECT_EQ(fetch().error().code(), base::ErrorCode::kNotFound);
  EXPECT_EQ(requests_, 1);
}

}  // namespace
}  // namespace llm
