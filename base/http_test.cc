#include "base/http_client.h"
#include "base/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace base {
namespace {

std::unique_ptr<HttpServer> serve(HttpHandler handler) {
  return HttpServer::start({.threads = 4}, std::move(handler)).value();
}

TEST(Http, EchoesMethodPathQueryHeadersAndBody) {
  auto server = serve([](const HttpServerRequest& request) {
    HttpReply reply;
    reply.status = 201;
    reply.headers = {{"X-Back", std::string(request.header("x-there"))}};
    reply.body =
        request.method + " " + request.path + " " + request.parameter("q") + " " + request.body;
    return reply;
  });
  HttpResponse response = http_request({.method = "POST",
                                        .url = server->url() + "/a/b?q=x%20y",
                                        .headers = {{"X-There", "yes"}},
                                        .body = "hello"})
                              .value();
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.header("x-back"), "yes");
  EXPECT_EQ(response.body, "POST /a/b x y hello");
}

// Answers a few requests on each connection, then closes it without a word; counts connections.
class TiredServer {
 public:
  explicit TiredServer(int requests_each) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    EXPECT_EQ(::listen(listener_, 4), 0);
    url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this, requests_each] {
      for (;;) {
        int client = ::accept(listener_, nullptr, nullptr);
        if (client < 0) return;
        connections++;
        for (int i = 0; i < requests_each && answer(client); i++) {
        }
        ::close(client);
      }
    });
  }
  ~TiredServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  std::string url;
  std::atomic<int> connections{0};

 private:
  static bool answer(int client) {
    std::string asked;
    char buffer[1000];
    while (asked.find("\r\n\r\n") == std::string::npos) {
      ssize_t size = ::recv(client, buffer, sizeof buffer, 0);
      if (size <= 0) return false;
      asked.append(buffer, static_cast<size_t>(size));
    }
    constexpr std::string_view reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    return ::send(client, reply.data(), reply.size(), MSG_NOSIGNAL) > 0;
  }
  int listener_;
  std::thread thread_;
};

TEST(Http, ConnectionsAreKeptForTheNextRequestAndReplacedWhenTheyWereClosed) {
  TiredServer server(3);
  {
    HttpConnections kept;
    for (int i = 0; i < 7; i++) {
      auto response = http_request({.url = server.url, .connections = &kept});
      ASSERT_TRUE(response.ok()) << response.error().message();
      EXPECT_EQ(response->body, "ok");
    }
  }
  EXPECT_EQ(server.connections, 3);
}

TEST(Http, StreamsEventsAsTheyCome) {
  auto server = serve([](const HttpServerRequest&) {
    HttpReply reply;
    reply.content_type = "text/event-stream";
    reply.stream = [](const HttpWriter& write) {
      return write("data: one\n\n") && write("event: last\ndata: two\ndata: lines\n\n");
    };
    return reply;
  });
  SseParser parser;
  std::vector<std::string> seen;
  int status = 0;
  auto done = http_stream(
      {.url = server->url()}, [&](const HttpResponse& head) { status = head.status; },
      [&](std::string_view piece) {
        parser.feed(piece, [&](const SseParser::Event& event) {
          seen.push_back(event.event + "|" + event.data);
        });
        return true;
      });
  EXPECT_TRUE(done.ok());
  EXPECT_EQ(status, 200);
  EXPECT_EQ(seen, (std::vector<std::string>{"|one", "last|two\nlines"}));
}

TEST(Http, AStreamBrokenOffIsAnErrorNotAnEnd) {
  auto server = serve([](const HttpServerRequest&) {
    HttpReply reply;
    reply.stream = [](const HttpWriter& write) { return write("data: half") && false; };
    return reply;
  });
  auto broken = http_stream({.url = server->url()}, nullptr, [](std::string_view) { return true; });
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code(), ErrorCode::kUnavailable);
}

TEST(Http, TheCallerCanCancel) {
  auto server = serve([](const HttpServerRequest&) {
    HttpReply reply;
    reply.stream = [](const HttpWriter& write) {
      while (write("more\n")) {
      }
      return true;
    };
    return reply;
  });
  auto cancelled =
      http_stream({.url = server->url()}, nullptr, [](std::string_view) { return false; });
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.error().code(), ErrorCode::kCancelled);
}

TEST(Http, NobodyListeningIsUnavailable) {
  std::string url;
  {
    auto server = serve([](const HttpServerRequest&) { return HttpReply{}; });
    url = server->url();
  }
  EXPECT_EQ(http_request({.url = url}).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(http_request({.url = "nonsense://x"}).error().code(), ErrorCode::kInvalidArgument);
}

TEST(Http, ATakenPortIsASentence) {
  auto first = serve([](const HttpServerRequest&) { return HttpReply{}; });
  auto second = HttpServer::start({.port = first->port()},
                                  [](const HttpServerRequest&) { return HttpReply{}; });
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), ErrorCode::kBusy);
}

TEST(Sse, HandlesSplitsCarriageReturnsAndComments) {
  const std::string stream = ": hi\r\ndata:a\r\ndata: b\r\nid: 7\r\n\r\ndata: c\n\n";
  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    SseParser parser;
    std::vector<std::string> seen;
    auto sink = [&](const SseParser::Event& event) { seen.push_back(event.id + "|" + event.data); };
    parser.feed(stream.substr(0, cut), sink);
    parser.feed(stream.substr(cut), sink);
    EXPECT_EQ(seen, (std::vector<std::string>{"7|a\nb", "|c"})) << "cut at " << cut;
  }
}

}  // namespace
}  // namespace base
