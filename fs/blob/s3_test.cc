// The S3 client against a small server that fails in all the ways stores do.
#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/http_server.h"
#include "fs/blob/cached_blobs.h"
#include "fs/blob/s3_blobs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>

namespace fs {
namespace {

// Objects in memory; `fault` may answer instead of it.
class FakeS3 {
 public:
  FakeS3() {
    server_ = std::move(*base::HttpServer::start(
        {.threads = 8, .read_timeout_ms = 500}, [this](const base::HttpServerRequest& request) {
          int number = ++requests;
          auto faulty = fault ? fault(number, request) : std::nullopt;
          return faulty ? *faulty : answer(request);
        }));
  }
  std::string url() const { return server_->url(); }

  std::atomic<int> requests = 0;
  std::function<std::optional<base::HttpReply>(int, const base::HttpServerRequest&)> fault;
  std::map<std::string, std::string> objects;
  std::string authorization;  // of the last request
  size_t page = 1000;

  base::HttpReply answer(const base::HttpServerRequest& request) {
    std::lock_guard lock(mutex_);
    authorization = request.header("authorization");
    base::HttpReply reply;
    reply.content_type = "application/octet-stream";
    if (request.path == "/bucket/") return list(request);
    if (request.method == "PUT") {
      bool whole = request.header("x-amz-content-sha256") == base::sha256_hex(request.body);
      reply.status = whole ? 200 : 400;
      if (whole) objects[request.path] = request.body;
      return reply;
    }
    auto at = objects.find(request.path);
    if (at == objects.end()) {
      reply.status = 404;
    } else if (request.method == "DELETE") {
      objects.erase(at);
      reply.status = 204;
    } else {
      reply.body = at->second;  // the server cuts what "Range" asks for
      if (!request.header("range").empty()) reply.status = 206;
    }
    return reply;
  }

 private:
  base::HttpReply list(const base::HttpServerRequest& request) {
    std::string prefix = "/bucket/" + request.parameter("prefix");
    std::string after = request.parameter("continuation-token");
    std::string keys;
    size_t shown = 0;
    std::string last;
    bool more = false;
    for (const auto& [key, bytes] : objects) {
      if (!key.starts_with(prefix) || key <= after) continue;
      more = shown++ == page;
      if (more) break;
      last = key;
      keys += "<Contents><Key>" + key.substr(8) + "</Key></Contents>";
    }
    if (more) keys += "<NextContinuationToken>" + last + "</NextContinuationToken>";
    base::HttpReply reply;
    reply.body = "<ListBucketResult><IsTruncated>" + std::string(more ? "true" : "false") +
                 "</IsTruncated>" + keys + "</ListBucketResult>";
    return reply;
  }
  std::mutex mutex_;
  std::unique_ptr<base::HttpServer> server_;
};

class S3Test : public ::testing::Test {
 protected:
  std::unique_ptr<S3Blobs> store(i64 give_up_ms = 5'000) {
    auto url = parse_s3_url("s3://bucket/some/prefix?region=r&endpoint=" + s3_.url());
    return std::make_unique<S3Blobs>(
        *url, S3Credentials{"id", "secret", ""},
        S3Patience{.first_pause_ms = 2, .give_up_ms = give_up_ms, .stall_timeout_ms = 300});
  }
  static std::string read(BlobStore& blobs, const std::string& name) {
    auto blob = blobs.open(name);
    if (!blob.ok()) return blob.error().message();
    std::string bytes((*blob)->size().value_or(0), '\0');
    auto got = (*blob)->read_at(0, {reinterpret_cast<u8*>(bytes.data()), bytes.size()});
    return got.ok() && *got == bytes.size() ? bytes : "short";
  }
  static base::HttpReply status(int code) {
    base::HttpReply reply;
    reply.status = code;
    return reply;
  }
  FakeS3 s3_;
};

TEST_F(S3Test, PutsReadsListsAndRemovesObjects) {
  auto blobs = store();
  s3_.page = 2;
  for (const char* name : {"a1", "a2", "a3", "b1"}) {
    ASSERT_TRUE(blobs->put(name, std::string("bytes of ") + name).ok());
  }
  EXPECT_TRUE(s3_.objects.contains("/bucket/some/prefix/a1"));
  EXPECT_EQ(read(*blobs, "a2"), "bytes of a2");
  EXPECT_EQ(*blobs->range("a2", 6, 5), "of a2");
  EXPECT_EQ(blobs->list("a").value_or({}), (std::vector<std::string>{"a1", "a2", "a3"}));
  EXPECT_TRUE(blobs->remove("a2").ok());
  EXPECT_TRUE(blobs->remove("a2").ok());
  EXPECT_EQ(blobs->open("a2").error().code(), base::ErrorCode::kNotFound);
  EXPECT_NE(s3_.authorization.find("AWS4-HMAC-SHA256 Credential=id/"), std::string::npos);
  EXPECT_EQ(s3_.authorization.find("secret"), std::string::npos);
}

TEST_F(S3Test, AnErrorInEveryTenthRequestIsNotSeen) {
  s3_.fault = [](int number, const auto&) -> std::optional<base::HttpReply> {
    if (number % 10 == 0) return status(number % 20 == 0 ? 503 : 500);
    return std::nullopt;
  };
  auto blobs = store();
  for (int i = 0; i < 50; ++i) {
    std::string name = std::to_string(i);
    ASSERT_TRUE(blobs->put(name, std::string(1000 + i, 'x')).ok());
    ASSERT_EQ(read(*blobs, name).size(), 1000u + i);
  }
  EXPECT_EQ(blobs->list("")->size(), 50u);
}

TEST_F(S3Test, ABodyThatIsCutIsAskedForAgain) {
  s3_.fault = [this](int number, const auto& request) -> std::optional<base::HttpReply> {
    if (request.method != "GET" || number % 2 == 0) return std::nullopt;
    base::HttpReply reply = s3_.answer(request);
    std::string half = reply.body.substr(0, reply.body.size() / 2);
    reply.body.clear();
    reply.stream = [half](const base::HttpWriter& write) {
      write(half);
      return false;
    };
    return reply;
  };
  auto blobs = store();
  std::string bytes(100'000, 'y');
  ASSERT_TRUE(blobs->put("x", bytes).ok());
  for (int i = 0; i < 6; ++i) EXPECT_EQ(*blobs->range("x", 0, bytes.size()), bytes);
}

TEST_F(S3Test, AStoreThatDoesNotAnswerIsAskedAgainAndThenGivenUp) {
  s3_.fault = [](int number, const auto&) -> std::optional<base::HttpReply> {
    if (number == 1) base::system_clock().sleep_us(3'000'000);
    return std::nullopt;
  };
  EXPECT_TRUE(store()->put("x", "slow at first").ok());
  s3_.fault = [](int, const auto&) -> std::optional<base::HttpReply> { return status(503); };
  int before = s3_.requests;
  auto given_up = store(200)->put("x", "never");
  EXPECT_EQ(given_up.error().code(), base::ErrorCode::kUnavailable);
  EXPECT_NE(given_up.error().message().find("HTTP 503"), std::string::npos);
  EXPECT_GT(s3_.requests, before + 2);
}

TEST_F(S3Test, ARefusalIsNotTriedAgain) {
  s3_.fault = [](int, const auto&) -> std::optional<base::HttpReply> { return status(403); };
  auto refused = store()->put("x", "bytes");
  EXPECT_EQ(refused.error().code(), base::ErrorCode::kPermission);
  EXPECT_EQ(refused.error().message().find("secret"), std::string::npos);
  EXPECT_EQ(s3_.requests, 1);
}

TEST_F(S3Test, TheCacheReadsOnceStaysWithinItsLimitAndHealsItself) {
  base::TempDir place("agentfs-cache");
  CachedBlobs cache(store(), place / "cache", 25'000);
  ASSERT_TRUE(cache.put("a", std::string(10'000, 'a')).ok());
  int gets = 0;
  s3_.fault = [&](int, const auto& request) -> std::optional<base::HttpReply> {
    gets += request.method == "GET";
    return std::nullopt;
  };
  EXPECT_EQ(read(cache, "a"), std::string(10'000, 'a'));
  EXPECT_EQ(gets, 0) << "what was written is there";
  ASSERT_TRUE(base::write_file(place / "cache/a", "cut").ok());
  EXPECT_EQ(read(cache, "a"), std::string(10'000, 'a'));
  EXPECT_EQ(gets, 1);
  for (const char* name : {"b", "c", "d"}) {
    ASSERT_TRUE(cache.put(name, std::string(10'000, *name)).ok());
  }
  EXPECT_EQ(base::list_directory(place / "cache")->size(), 2u);
  for (const char* name : {"a", "b", "c", "d"}) {
    EXPECT_EQ(read(cache, name), std::string(10'000, *name));
  }
  ASSERT_TRUE(cache.remove("d").ok());
  EXPECT_EQ(cache.open("d").error().code(), base::ErrorCode::kNotFound);
}

TEST(S3Url, SaysWhereEverythingIs) {
  auto url = parse_s3_url("s3://b/p/q/?endpoint=http%3A%2F%2Fh:9000/&region=eu-1&cache_mb=3");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->base(), "http://h:9000/b");
  EXPECT_EQ(url->prefix, "p/q/");
  EXPECT_EQ(url->cache_bytes, 3u << 20);
  EXPECT_EQ(parse_s3_url("s3://b?region=eu-1")->base(), "https://b.s3.eu-1.amazonaws.com");
  for (const char* bad : {"s3://", "s3://b/a b", "s3://b?what=1", "s3://b?endpoint=h:9000",
                          "s3://b?endpoint=http://me:secret@h", "s3://b/../c?cache_mb=x"}) {
    EXPECT_FALSE(parse_s3_url(bad).ok()) << bad;
  }
}

TEST(S3Url, CredentialsComeFromTheNamedFile) {
  base::TempDir place("agentfs-s3");
  auto url = *parse_s3_url("s3://b?credentials=" + (place / "keys"));
  EXPECT_FALSE(find_s3_credentials(url).ok());
  ASSERT_TRUE(base::write_file(place / "keys",
                               "[default]\naws_access_key_id = ID\naws_secret_access_key=a+b/c=\n")
                  .ok());
  EXPECT_EQ(find_s3_credentials(url)->key_id, "ID");
  EXPECT_EQ(find_s3_credentials(url)->secret, "a+b/c=");
}

}  // namespace
}  // namespace fs
