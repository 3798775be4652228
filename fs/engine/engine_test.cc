// One contract for every engine: memory, memory behind a faulty connection, SQLite, and a real
// PostgreSQL server where one is installed.
#include "base/clock.h"
#include "base/files.h"
#include "fs/engine/memory_engine.h"
#include "fs/engine/postgres_engine.h"
#include "fs/engine/sqlite_engine.h"
#include "fs/engine/testing/postgres_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace fs {
namespace {

class EngineTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "postgres") {
      std::string why;
      fs::testing::PostgresServer* server = fs::testing::shared_postgres(why);
      if (server == nullptr) GTEST_SKIP() << why;
      auto opened = open_postgres_engine(server->new_store(), {.create = true});
      ASSERT_TRUE(opened.ok()) << opened.error().message();
      engine_ = std::move(*opened);
    } else if (GetParam() == "sqlite") {
      auto opened = open_sqlite_engine(folder_ / "engine.db");
      EXPECT_TRUE(opened.ok());
      engine_ = std::move(*opened);
    } else if (GetParam() == "faulty") {
      engine_ = std::make_unique<FaultyEngine>(below_, 7, 0.5);
    } else {
      engine_ = std::make_unique<MemoryEngine>();
    }
  }
  base::ErrorCode code(base::Status status) {
    return status.ok() ? base::ErrorCode::kInternal : status.error().code();
  }
  // An append until its outcome is known: repeating it is harmless.
  base::Status append(const LogSegment& segment) {
    for (;;) {
      base::Status done = engine_->append(segment);
      if (done.ok() || done.error().code() != base::ErrorCode::kUnavailable) return done;
    }
  }
  base::TempDir folder_{"engine"};
  MemoryEngine below_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(EngineTest, ChangesARowOnlyFromTheExpectedVersion) {
  ASSERT_TRUE(commit_surely(*engine_, {{"a", "1", 0}}).ok());
  EXPECT_EQ(code(commit_surely(*engine_, {{"a", "2", 0}})), base::ErrorCode::kConflict);
  ASSERT_TRUE(commit_surely(*engine_, {{"a", "2", 1}}).ok());
  auto row = engine_->get("a");
  EXPECT_EQ(row->value, "2");
  EXPECT_EQ(row->version, 2u);
  ASSERT_TRUE(commit_surely(*engine_, {{"a", std::nullopt, 2}}).ok());
  EXPECT_EQ(engine_->get("a")->version, 0u);
}

TEST_P(EngineTest, CommitsAllOrNothing) {
  ASSERT_TRUE(commit_surely(*engine_, {{"a", "1", 0}}).ok());
  EXPECT_EQ(code(commit_surely(*engine_, {{"b", "x", 0}, {"a", "x", 5, true}})),
            base::ErrorCode::kConflict);
  EXPECT_EQ(engine_->get("b")->version, 0u);
  ASSERT_TRUE(commit_surely(*engine_, {{"b", "x", 0}, {"a", {}, 1, true}}).ok());
  EXPECT_EQ(engine_->get("a")->version, 1u);
}

TEST_P(EngineTest, ScansByPrefixInOrder) {
  for (std::string key : {"p/b", "q", "p/a", "o", "p"}) {
    ASSERT_TRUE(commit_surely(*engine_, {{key, key, 0}}).ok());
  }
  auto rows = engine_->scan("p/");
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].key, "p/a");
  EXPECT_EQ((*rows)[1].value, "p/b");
}

TEST_P(EngineTest, ChecksThatARowIsMissingAndLeavesItMissing) {
  ASSERT_TRUE(commit_surely(*engine_, {{"a", "1", 0}, {"none", {}, 0, true}}).ok());
  EXPECT_EQ(engine_->get("none")->version, 0u);
  EXPECT_EQ(code(commit_surely(*engine_, {{"b", "1", 0}, {"a", {}, 0, true}})),
            base::ErrorCode::kConflict);
  EXPECT_EQ(engine_->get("b")->version, 0u);
}

TEST_P(EngineTest, OfManyThatCountInOneRowNoneIsLost) {
  ASSERT_TRUE(commit_surely(*engine_, {{"count", "0", 0}}).ok());
  constexpr int threads = 4, times = 15;
  std::vector<std::thread> counters;
  std::atomic<int> counted{0};
  for (int i = 0; i < threads; ++i) {
    counters.emplace_back([&, i] {
      for (int done = 0; done < times;) {
        auto row = engine_->get("count");
        if (!row.ok()) continue;
        std::string next = std::to_string(std::stoi(row->value) + 1);
        std::string own = "by/" + std::to_string(i) + "/" + std::to_string(done);
        if (!commit_surely(*engine_, {{own, "", 0}, {"count", next, row->version}}).ok()) continue;
        ++done;
        ++counted;
      }
    });
  }
  for (std::thread& counter : counters) counter.join();
  EXPECT_EQ(engine_->get("count")->value, std::to_string(threads * times));
  EXPECT_EQ(engine_->scan("by/")->size(), static_cast<size_t>(counted));
}

TEST_P(EngineTest, AppendsWithoutGapsOnceAndOnlyInTheFencingEpoch) {
  ASSERT_TRUE(engine_->fence(1, 5, 0).ok());
  LogSegment segment{1, 5, 1, 10, "h1", std::string("a\0b", 3)};
  ASSERT_TRUE(append(segment).ok());
  ASSERT_TRUE(append(segment).ok());  // a retry
  EXPECT_EQ(code(append({1, 5, 12, 13, "h2", "x"})), base::ErrorCode::kConflict);
  EXPECT_EQ(code(append({1, 5, 1, 10, "other", "x"})), base::ErrorCode::kConflict);
  ASSERT_TRUE(engine_->fence(1, 6, 0).ok());
  EXPECT_EQ(code(append({1, 5, 11, 12, "h3", "x"})), base::ErrorCode::kConflict);
  EXPECT_EQ(code(engine_->fence(1, 5, 0)), base::ErrorCode::kConflict);
  ASSERT_TRUE(append({1, 6, 11, 12, "h3", "x"}).ok());
  auto segments = engine_->segments(1, 11, 10);
  ASSERT_EQ(segments->size(), 1u);
  EXPECT_EQ((*engine_->segments(1, 1, 10))[0].bytes, segment.bytes);
  EXPECT_EQ(engine_->segments(1, 1, 1)->size(), 1u);
  auto log = engine_->log(1);
  EXPECT_EQ(log->epoch, 6u);
  EXPECT_EQ(log->head, 12u);
  EXPECT_EQ(log->hash, "h3");
  EXPECT_EQ(engine_->log(2)->head, 0u);
}

TEST_P(EngineTest, ALogBeginsBehindItsBaseAndKeepsItsHeadWhenSegmentsAreDropped) {
  ASSERT_TRUE(engine_->fence(7, 1, 100).ok());
  EXPECT_EQ(code(append({7, 1, 1, 5, "h", "x"})), base::ErrorCode::kConflict);
  ASSERT_TRUE(append({7, 1, 101, 105, "h1", "x"}).ok());
  ASSERT_TRUE(append({7, 1, 106, 110, "h2", "y"}).ok());
  ASSERT_TRUE(engine_->fence(7, 2, 100).ok());
  EXPECT_EQ(engine_->log(7)->head, 110u);
  EXPECT_EQ(engine_->drop_segments(7, 106).value_or(99), 1u);
  EXPECT_EQ(engine_->segments(7, 1, 10)->size(), 1u);
  EXPECT_EQ(engine_->drop_segments(7, 1000).value_or(99), 1u);
  EXPECT_EQ(engine_->log(7)->head, 110u);
  EXPECT_EQ(engine_->log(7)->hash, "h2");
  ASSERT_TRUE(append({7, 2, 111, 111, "h3", "z"}).ok());
  EXPECT_EQ(engine_->logs()->size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(All, EngineTest,
                         ::testing::Values("memory", "faulty", "sqlite", "postgres"));

TEST(SqliteEngine, KeepsRowsAcrossReopening) {
  base::TempDir folder("engine");
  {
    ASSERT_TRUE((*open_sqlite_engine(folder / "e.db"))->commit({{"a", "1", 0}}).ok());
  }
  EXPECT_EQ((*open_sqlite_engine(folder / "e.db"))->get("a")->value, "1");
}

class PostgresEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    server_ = fs::testing::shared_postgres(why);
    if (server_ == nullptr) GTEST_SKIP() << why;
    url_ = server_->new_store();
  }
  std::unique_ptr<Engine> open(PostgresOptions options = {.create = true}) {
    auto opened = open_postgres_engine(url_, options);
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return opened.ok() ? std::move(*opened) : nullptr;
  }
  fs::testing::PostgresServer* server_ = nullptr;
  std::string url_;
};

// Appends and commits until told to stop; every acknowledged change must be there.
struct Worker {
  Engine& engine;
  int id;
  std::atomic<bool>& stop;
  std::atomic<int>& done;
  int acknowledged = 0;
  std::string failure;

  void run() {
    u32 log = static_cast<u32>(100 + id);
    if (!engine.fence(log, 1, 0).ok()) failure = "fence";
    while (!stop && failure.empty()) {
      u64 next = static_cast<u64>(acknowledged) + 1;
      std::string name = std::to_string(id) + "/" + std::to_string(next);
      base::Status stored = engine.append({log, 1, next, next, name, "bytes of " + name});
      if (stored.ok()) stored = engine.commit({{name, "value of " + name, 0}});
      if (!stored.ok()) {
        failure = stored.error().message();
      } else {
        ++acknowledged;
        ++done;
      }
    }
  }
};

TEST_F(PostgresEngineTest, AServerThatCrashesUnderLoadLosesNothingAndNobodyNotices) {
  auto engine = open();
  std::atomic<bool> stop{false};
  std::atomic<int> done{0};
  std::vector<Worker> workers;
  for (int i = 0; i < 3; ++i) workers.push_back({*engine, i, stop, done, 0, ""});
  std::vector<std::thread> threads;
  for (Worker& worker : workers) threads.emplace_back([&worker] { worker.run(); });
  for (int crash = 0; crash < 4; ++crash) {
    int before = done;
    i64 give_up = base::system_clock().monotonic_us() + 20'000'000;
    while (done < before + 30 && base::system_clock().monotonic_us() < give_up) {
      base::system_clock().sleep_us(3'000);
    }
    EXPECT_GE(done, before + 30) << "it goes on after crash " << crash;
    server_->stop_immediately();
    auto started = server_->start_again();
    ASSERT_TRUE(started.ok()) << started.error().message();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (const Worker& worker : workers) {
    EXPECT_EQ(worker.failure, "");
    auto log = engine->log(static_cast<u32>(100 + worker.id));
    EXPECT_EQ(log->head, static_cast<Seq>(worker.acknowledged));
    auto segments = engine->segments(static_cast<u32>(100 + worker.id), 1, 1'000'000);
    EXPECT_EQ(segments->size(), static_cast<size_t>(worker.acknowledged));
    auto rows = engine->scan(std::to_string(worker.id) + "/");
    ASSERT_EQ(rows->size(), static_cast<size_t>(worker.acknowledged));
    for (const Row& row : *rows) EXPECT_EQ(row.version, 1u) << "once, not twice";
  }
}

TEST_F(PostgresEngineTest, AFencedWriterStaysFencedAcrossARestart) {
  auto engine = open();
  ASSERT_TRUE(engine->fence(1, 1, 0).ok());
  ASSERT_TRUE(engine->append({1, 1, 1, 1, "h", "x"}).ok());
  ASSERT_TRUE(open({})->fence(1, 2, 0).ok());
  server_->stop_immediately();
  ASSERT_TRUE(server_->start_again().ok());
  auto refused = engine->append({1, 1, 2, 2, "h2", "y"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), base::ErrorCode::kConflict);
  EXPECT_EQ(engine->log(1)->head, 1u);
}

TEST_F(PostgresEngineTest, AServerThatHangsCostsItsDeadlineAndThenHasDoneItOnceOrNotAtAll) {
  auto engine = open({.create = true, .patience_us = 1'500'000, .statement_us = 400'000});
  ASSERT_TRUE(engine->commit({{"a", "1", 0}}).ok());
  server_->freeze(true);
  i64 began = base::system_clock().monotonic_us();
  auto hung = engine->commit({{"a", "2", 1}});
  i64 took_us = base::system_clock().monotonic_us() - began;
  server_->freeze(false);
  ASSERT_FALSE(hung.ok());
  EXPECT_EQ(hung.error().code(), base::ErrorCode::kUnavailable) << hung.error().message();
  EXPECT_LT(took_us, 4'000'000);
  ASSERT_TRUE(commit_surely(*engine, {{"a", "3", engine->get("a")->version}}).ok());
  EXPECT_EQ(engine->get("a")->value, "3");
  EXPECT_LE(engine->get("a")->version, 3u);
}

TEST_F(PostgresEngineTest, NoMessageHoldsThePassword) {
  EXPECT_EQ(open_postgres_engine(url_, {}).error().code(), base::ErrorCode::kNotFound);
  std::string wrong = url_;
  wrong.replace(wrong.find(server_->password()), server_->password().size(), "not%20it");
  std::string refused = open_postgres_engine(wrong, {}).error().message();
  EXPECT_NE(refused.find("password authentication failed"), std::string::npos) << refused;
  std::string bad = "postgres://me:" + server_->password() + "%zz@host/db";
  std::string nowhere = "postgres://me:" + server_->password() + "@/db?host=/nowhere";
  for (const std::string& url : {url_, wrong, bad, nowhere}) {
    auto failed = open_postgres_engine(url, {.patience_us = 50'000});
    ASSERT_FALSE(failed.ok());
    std::string message = failed.error().message();
    EXPECT_EQ(message.find(server_->password()), std::string::npos) << message;
    EXPECT_EQ(message.find("not it"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace fs
