// Many clients that come, stream, call tools, ask for schemas and leave in the middle: nothing may
// be left behind. FLEETLM_SOAK_SECONDS says for how long (15; the slow test takes three minutes).
#include "base/random.h"
#include "llm/server/testing.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace llm {
namespace {

using Clock = std::chrono::steady_clock;

i32 open_descriptors() {
  i32 count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

i64 resident_kb() {
  long size = 0;
  long resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
  std::fclose(file);
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

struct Tally {
  std::atomic<i64> whole{0}, streamed{0}, left{0}, busy{0}, wrong{0};
};

constexpr const char* kTool =
    R"("tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object",
    "properties":{"a":{"type":"integer"}},"required":["a"]}}}],"tool_choice":"required",)";
constexpr const char* kSchema =
    R"("response_format":{"type":"json_schema","json_schema":{"name":"p","schema":{"type":"object",
    "properties":{"ok":{"type":"boolean"}},"required":["ok"]}}},)";

void one_request(TinyServer* server, base::Rng* rng, Tally* tally) {
  const bool streams = rng->below(3) != 0;
  const u64 kind = rng->below(4);
  base::HttpRequest request;
  request.method = "POST";
  request.url = server->url("/v1/chat/completions");
  request.headers = {{"authorization", "Bearer secret"}};
  request.body =
      std::string("{") +
      (kind == 0   ? kTool
       : kind == 1 ? kSchema
                   : "") +
      (streams ? R"("stream":true,)" : "") + R"("max_tokens":)" +
      std::to_string(10 + rng->below(120)) + R"(,"seed":)" + std::to_string(1 + rng->below(1000)) +
      R"(,"messages":[{"role":"user","content":")" +
      std::string(1 + rng->below(200), static_cast<char>('a' + rng->below(26))) + R"("}]})";
  if (!streams) {
    const auto reply = base::http_request(request);
    const int status = reply.ok() ? reply->status : 0;
    ++(status == 200 ? tally->whole : status == 429 ? tally->busy : tally->wrong);
    return;
  }
  const i64 patience = rng->below(2) == 0 ? 1 + static_cast<i64>(rng->below(12)) : 1 << 30;
  i64 pieces = 0;
  std::string end;
  int status = 0;
  const auto cut = base::http_stream(
      request, [&](const base::HttpResponse& head) { status = head.status; },
      [&](std::string_view piece) {
        end = piece;
        return ++pieces < patience;
      });
  if (pieces >= patience) {
    ++tally->left;
  } else if (status == 429) {
    ++tally->busy;
  } else if (cut.ok() && status == 200 && end.ends_with("[DONE]\n\n")) {
    ++tally->streamed;
  } else {
    ++tally->wrong;
  }
}

void run_clients(TinyServer* server, i32 clients, i64 ms, u64 seed, Tally* tally) {
  const auto until = Clock::now() + std::chrono::milliseconds(ms);
  std::vector<std::thread> threads;
  for (i32 i = 0; i < clients; ++i) {
    threads.emplace_back([=] {
      base::Rng rng(seed + static_cast<u64>(i));
      while (Clock::now() < until) one_request(server, &rng, tally);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 3000 && server->engine_->stats().running + server->engine_->stats().waiting;
       ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST(Soak, ThirtyTwoClientsThatComeAndGoLeaveNothingBehind) {
  const char* wish = std::getenv("FLEETLM_SOAK_SECONDS");
  const i64 ms = (wish == nullptr ? 15 : std::atoi(wish)) * 1000;
  TinyServer server;
  Tally warm;
  run_clients(&server, 32, ms / 4, 1, &warm);  // buffers, thread stacks, cached pages
  const i32 descriptors = open_descriptors();
  const i64 kb = resident_kb();
  Tally tally;
  run_clients(&server, 32, ms - ms / 4, 1000, &tally);
  const EngineStats stats = server.engine_->stats();
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_EQ(stats.pages_available, stats.pages_total);
  EXPECT_EQ(stats.requests, stats.finished);
  EXPECT_EQ(tally.wrong, 0);
  EXPECT_GT(tally.whole, 0);
  EXPECT_GT(tally.streamed, 0);
  EXPECT_GT(tally.left, 0);
  // A connection that was kept alive may close a moment later or earlier.
  EXPECT_LE(open_descriptors(), descriptors + 32);
  EXPECT_LE(resident_kb(), kb + (16 << 10)) << "kB resident, " << kb << " after the warm-up";
  std::printf("%lld whole, %lld streamed, %lld left early, %lld sent away, %lld kB then %lld kB\n",
              static_cast<long long>(tally.whole), static_cast<long long>(tally.streamed),
              static_cast<long long>(tally.left), static_cast<long long>(tally.busy),
              static_cast<long long>(kb), static_cast<long long>(resident_kb()));
}

}  // namespace
}  // namespace llm
