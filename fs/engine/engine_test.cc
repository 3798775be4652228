// One contract for every engine: memory, memory behind a faulty connection, SQLite.
#include "base/files.h"
#include "fs/engine/memory_engine.h"
#include "fs/engine/sqlite_engine.h"

#include <gtest/gtest.h>

namespace fs {
namespace {

class EngineTest : public ::testing::TestWithParam<std::string> {
 protected:
  EngineTest() {
    if (GetParam() == "sqlite") {
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

TEST_P(EngineTest, AppendsWithoutGapsOnceAndOnlyInTheFencingEpoch) {
  ASSERT_TRUE(engine_->fence(1, 5).ok());
  LogSegment segment{1, 5, 1, 10, "h1", std::string("a\0b", 3)};
  ASSERT_TRUE(append(segment).ok());
  ASSERT_TRUE(append(segment).ok());  // a retry
  EXPECT_EQ(code(append({1, 5, 12, 13, "h2", "x"})), base::ErrorCode::kConflict);
  EXPECT_EQ(code(append({1, 5, 1, 10, "other", "x"})), base::ErrorCode::kConflict);
  ASSERT_TRUE(engine_->fence(1, 6).ok());
  EXPECT_EQ(code(append({1, 5, 11, 12, "h3", "x"})), base::ErrorCode::kConflict);
  EXPECT_EQ(code(engine_->fence(1, 5)), base::ErrorCode::kConflict);
  ASSERT_TRUE(append({1, 6, 11, 12, "h3", "x"}).ok());
  auto segments = engine_->segments(1, 11);
  ASSERT_EQ(segments->size(), 1u);
  EXPECT_EQ((*engine_->segments(1, 1))[0].bytes, segment.bytes);
}

INSTANTIATE_TEST_SUITE_P(All, EngineTest, ::testing::Values("memory", "faulty", "sqlite"));

TEST(SqliteEngine, KeepsRowsAcrossReopening) {
  base::TempDir folder("engine");
  {
    ASSERT_TRUE((*open_sqlite_engine(folder / "e.db"))->commit({{"a", "1", 0}}).ok());
  }
  EXPECT_EQ((*open_sqlite_engine(folder / "e.db"))->get("a")->value, "1");
}

}  // namespace
}  // namespace fs
