// The client against a server that drops connections, lies about ranges and changes content.
#include "llm/cli/download.h"

#include "base/files.h"
#include "base/hash.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

namespace llm {
namespace {

std::string content_of(u32 seed, size_t size = 200'000) {
  std::string out;
  for (u32 x = seed; out.size() < size; x = x * 1664525 + 1013904223)
    out.push_back(static_cast<char>(x >> 24));
  return out;
}

struct Request {
  std::string path, range, if_range;
};

// Answers each connection with the bytes that `handler` makes of its request, then closes it: so
// it can break off, lie and change its mind as no server library would.
class RawServer {
 public:
  explicit RawServer(std::function<std::string(const Request&)> handler)
      : handler_(std::move(handler)), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    CHECK(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    CHECK(::listen(socket_, 8) == 0);
    CHECK(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~RawServer() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  void run() {
    for (;;) {
      const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      std::string head;
      char piece[4096];
      while (head.find("\r\n\r\n") == head.npos) {
        const ssize_t n = ::recv(connection, piece, sizeof piece, 0);
        if (n <= 0) break;
        head.append(piece, static_cast<size_t>(n));
      }
      const std::string reply = handler_(parse(head));
      for (size_t at = 0; at < reply.size();) {
        const ssize_t n = ::send(connection, reply.data() + at, reply.size() - at, MSG_NOSIGNAL);
        if (n <= 0) break;
        at += static_cast<size_t>(n);
      }
      ::close(connection);
    }
  }
  static std::string header(const std::string& head, const std::string& name) {
    const size_t at = head.find("\r\n" + name + ": ");
    if (at == head.npos) return "";
    const size_t from = at + name.size() + 4;
    return head.substr(from, head.find("\r\n", from) - from);
  }
  static Request parse(const std::string& head) {
    const size_t from = head.find(' ') + 1;
    return {head.substr(from, head.find(' ', from) - from), header(head, "range"),
            header(head, "if-range")};
  }

  std::function<std::string(const Request&)> handler_;
  int socket_;
  int port_ = 0;
  std::thread thread_;
};

std::string response(const std::string& status, const std::string& headers,
                     const std::string& body = "") {
  return "HTTP/1.1 " + status + "\r\nConnection: close\r\n" + headers + "\r\n" + body;
}

std::string length_of(size_t size) {
  return "Content-Length: " + std::to_string(size) + "\r\n";
}

class DownloadTest : public testing::Test {
 protected:
  void serve(std::function<std::string(const Request&)> handler) {
    server_.reset();
    server_ = std::make_unique<RawServer>([this, handler](const Request& request) {
      ++requests_;
      return handler(request);
    });
  }
  // `body` from the asked offset on; after `at_most` bytes of it the connection breaks off.
  static std::string piece(const Request& request, const std::string& body, size_t at_most,
                           const std::string& tag) {
    const bool same = request.if_range.empty() || request.if_range == tag;
    const size_t from = request.range.empty() || !same ? 0 : std::stoul(request.range.substr(6));
    const std::string size = std::to_string(body.size());
    std::string headers = length_of(body.size() - from);
    if (!tag.empty()) headers += "ETag: " + tag + "\r\n";
    if (from > 0) {
      headers += "Content-Range: bytes " + std::to_string(from) + "-" +
                 std::to_string(body.size() - 1) + "/" + size + "\r\n";
    }
    return response(from > 0 ? "206 Partial Content" : "200 OK", headers,
                    body.substr(from, at_most));
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
  std::unique_ptr<RawServer> server_;
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
    if (down) return response("503 Busy", length_of(0));
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
    if (requests_ == 2) {  // says 206 and sends another part
      return response(
          "206 Partial Content",
          length_of(body.size()) + "ETag: \"one\"\r\nContent-Range: bytes 0-199999/200000\r\n",
          body);
    }
    return piece(request, body, requests_ == 1 ? 50'000 : 1 << 20, "\"one\"");
  });
  ASSERT_TRUE(fetch().ok());
  EXPECT_EQ(written(), body);
  EXPECT_EQ(requests_, 3);
}

TEST_F(DownloadTest, AServerThatIgnoresRangesSendsTheWholeFile) {
  const std::string body = content_of(6);
  serve([&](const auto&) {
    return piece(Request{}, body, requests_ == 1 ? 50'000 : 1 << 20, "\"one\"");
  });
  ASSERT_TRUE(fetch().ok());
  EXPECT_EQ(written(), body);
}

TEST_F(DownloadTest, WithoutProofOfSamenessItStartsAgain) {
  const std::string body = content_of(7);
  std::atomic<int> ranges = 0;
  serve([&](const auto& request) {
    ranges += request.range.empty() ? 0 : 1;
    return requests_ == 1 ? piece(request, body, 50'000, "") : response("500 No", length_of(0));
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
      return response("302 Found", length_of(0) + "Location: /real\r\nX-Linked-ETag: \"" +
                                       base::sha256_hex(body) + "\"\r\n");
    }
    return piece(request, body, 1 << 20, "\"one\"");
  });
  const auto got = fetch();
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_TRUE(got->checked);
  EXPECT_EQ(written(), body);
}

TEST_F(DownloadTest, NothingThereIsSaidAtOnce) {
  serve([](const auto&) { return response("404 No", length_of(0)); });
  EXPECT_EQ(fetch().error().code(), base::ErrorCode::kNotFound);
  EXPECT_EQ(requests_, 1);
}

TEST_F(DownloadTest, AServerThatAlwaysSpoilsTheRestIsGivenUp) {
  const std::string body = content_of(10);
  serve([&](const auto& request) {
    return request.range.empty() ? piece(request, body, 60'000, "\"one\"")
                                 : response("416 No", length_of(0));
  });
  EXPECT_EQ(fetch().error().code(), base::ErrorCode::kUnavailable);
  EXPECT_LT(requests_, 20);
}

}  // namespace
}  // namespace llm
