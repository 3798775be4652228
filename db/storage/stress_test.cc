// FleetDB and stock SQLite processes on one file at the same time: transfers between accounts,
// readers that add everything up, checkpoints, and a parent that kills processes at random. The sum
// never changes, and the file is whole at the end.
//
// FLEET_STRESS_SECONDS sets the time for each journal mode (default 4).
#include "base/clock.h"
#include "base/files.h"
#include "db/storage/test_records.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

namespace db {
namespace {

constexpr int kAccounts = 120;
constexpr i64 kOpening = 1000;

// A balance, with padding behind it so that rows change size.
std::string account(i64 balance, u64 padding) {
  return std::to_string(balance) + std::string(padding, ' ');
}

i64 balance_in(ByteView row) {
  // Skip the record header; the number reads up to the padding.
  std::string text(base::as_text(row.subspan(row[0])));
  return std::atoll(text.c_str());
}

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "worker %d: %s\n", static_cast<int>(::getpid()), why.c_str());
  ::_exit(3);
}

// Busy and stale snapshots are part of the game; all else is a failure.
bool retry(const base::Error& error) {
  if (error.code() == base::ErrorCode::kBusy || error.code() == base::ErrorCode::kConflict)
    return true;
  die(error.message());
}

void our_step(Store& store, PageNo root, base::Rng& rng, JournalMode mode) {
  if (rng.chance(0.4)) {
    base::Status begun = store.begin_read();
    if (!begun.ok()) return (void)retry(begun.error());
    i64 sum = 0;
    Cursor cursor(store, root, nullptr);
    Hit hit = cursor.first();
    for (; hit == Hit::kRow; hit = cursor.next()) {
      ByteView row;
      if (cursor.payload(&row) != Hit::kRow) die(cursor.error().message());
      sum += balance_in(row);
    }
    if (hit == Hit::kError) die(cursor.error().message());
    cursor.close();
    store.end_read();
    if (sum != kAccounts * kOpening) die("FleetDB saw the sum " + std::to_string(sum));
    return;
  }
  if (mode == JournalMode::kWal && rng.chance(0.03)) {
    auto done = store.pager().checkpoint(static_cast<CheckpointMode>(rng.below(4)));
    if (!done.ok()) (void)retry(done.error());
    return;
  }
  base::Status begun = store.begin_write();
  if (!begun.ok()) return (void)retry(begun.error());
  {
    Cursor cursor(store, root, nullptr);
    i64 amount = rng.between(1, 50);
    for (i64 sign : {-1, 1}) {
      i64 id = rng.between(1, kAccounts);
      ByteView row;
      if (cursor.seek_equal(id) != Hit::kRow || cursor.payload(&row) != Hit::kRow)
        die("an account is gone");
      std::string changed = row_of(account(balance_in(row) + sign * amount, rng.below(900)));
      if (cursor.insert(id, bytes(changed)) != Hit::kRow) die(cursor.error().message());
    }
  }
  if (rng.chance(0.1)) {
    if (!store.rollback().ok()) die("rollback failed");
  } else {
    base::Status done = store.commit();
    if (!done.ok()) {
      (void)retry(done.error());
      if (!store.rollback().ok()) die("rollback failed");
    }
  }
  store.end_read();
}

void stock_step(Stock& stock, base::Rng& rng, JournalMode mode) {
  std::string answer;
  if (rng.chance(0.4)) {
    answer = stock.run("SELECT sum(CAST(CAST(a AS TEXT) AS INTEGER)) FROM t");
    if (answer == std::to_string(kAccounts * kOpening) + "\n") return;
  } else if (mode == JournalMode::kWal && rng.chance(0.03)) {
    stock.run(rng.chance(0.5) ? "PRAGMA wal_checkpoint(TRUNCATE)" : "PRAGMA wal_checkpoint");
    return;
  } else {
    std::string sql = "BEGIN IMMEDIATE;";
    i64 amount = rng.between(1, 50);
    for (i64 sign : {-1, 1}) {
      sql += "UPDATE t SET a = CAST(printf('%d%*s', CAST(CAST(a AS TEXT) AS INTEGER) + " +
             std::to_string(sign * amount) + ", " + std::to_string(rng.below(900)) +
             ", '') AS BLOB) WHERE id = " + std::to_string(rng.between(1, kAccounts)) + ";";
    }
    answer = stock.run(sql + (rng.chance(0.1) ? "ROLLBACK" : "COMMIT"));
    if (answer.empty()) return;
  }
  if (answer.find("locked") == std::string::npos) die("stock SQLite says " + answer);
  stock.run("ROLLBACK");
}

[[noreturn]] void work(const std::string& path, bool ours, u64 seed, JournalMode mode,
                       i64 until_us) {
  base::Rng rng(seed);
  // A connection lives for a while, then another takes its place.
  while (base::system_clock().monotonic_us() < until_us) {
    if (ours) {
      StoreOptions options;
      options.pager.busy = [&rng](int calls) {
        ::usleep(static_cast<useconds_t>(rng.below(800)));
        return calls < 1500;
      };
      auto store = Store::open(path, std::move(options));
      if (!store.ok()) die(store.error().message());
      (*store)->pager().set_synchronous(Synchronous::kOff);
      for (int i = 0; i < 200 && base::system_clock().monotonic_us() < until_us; i++)
        our_step(**store, 2, rng, mode);
    } else {
      Stock stock(path);
      stock.run("PRAGMA synchronous=OFF");
      for (int i = 0; i < 200 && base::system_clock().monotonic_us() < until_us; i++)
        stock_step(stock, rng, mode);
    }
  }
  ::_exit(0);
}

class TwoEngines : public ::testing::TestWithParam<JournalMode> {};

TEST_P(TwoEngines, KeepTheSumWhileProcessesAreKilled) {
  const JournalMode mode = GetParam();
  const char* wanted = std::getenv("FLEET_STRESS_SECONDS");
  const i64 seconds = wanted ? std::atoi(wanted) : 4;
  base::TempDir dir;
  std::string path = dir / "bank.db";
  {
    auto store = Store::open(path, {}).value();
    store->begin_write().value();
    PageNo root = create_table_t(*store);
    ASSERT_EQ(root, 2u);
    Cursor cursor(*store, root, nullptr);
    for (i64 id = 1; id <= kAccounts; id++)
      ASSERT_EQ(cursor.insert(id, bytes(row_of(account(kOpening, 10)))), Hit::kRow);
    cursor.close();
    store->commit().value();
    store->end_read();
    ASSERT_EQ(store->set_journal_mode(mode).value(), mode);
  }
  base::Rng rng(static_cast<u64>(mode));
  const i64 until_us = base::system_clock().monotonic_us() + seconds * 1'000'000;
  std::vector<pid_t> workers;
  u64 next_seed = 1;
  auto start = [&](size_t slot) {
    pid_t pid = ::fork();
    if (pid == 0) work(path, slot % 2 == 0, next_seed, mode, until_us);
    next_seed++;
    return pid;
  };
  for (size_t slot = 0; slot < 4; slot++) workers.push_back(start(slot));
  int killed = 0;
  while (base::system_clock().monotonic_us() < until_us - 300'000) {
    ::usleep(static_cast<useconds_t>(rng.below(60'000)));
    size_t slot = rng.below(workers.size());
    ::kill(workers[slot], SIGKILL);
    int status = 0;
    ::waitpid(workers[slot], &status, 0);
    // A machine that stood still may have let the time run out before the signal came.
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
        base::system_clock().monotonic_us() >= until_us) {
      workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(slot));
      break;
    }
    ASSERT_TRUE(WIFSIGNALED(status)) << "a worker failed; see its message";
    killed++;
    workers[slot] = start(slot);
  }
  for (pid_t pid : workers) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "a worker failed; see its message";
  }
  Stock stock(path);
  EXPECT_EQ(stock.run("PRAGMA integrity_check"), "ok\n");
  EXPECT_EQ(stock.run("SELECT sum(CAST(CAST(a AS TEXT) AS INTEGER)) FROM t"),
            std::to_string(kAccounts * kOpening) + "\n");
  auto store = Store::open(path, {}).value();
  store->begin_read().value();
  EXPECT_TRUE(store->integrity_check({2}).value().empty());
  store->end_read();
  EXPECT_GT(killed, 10);
  // Work was done in between: hardly an account is as it was.
  std::string changed =
      stock.run("SELECT count(*) FROM t WHERE CAST(CAST(a AS TEXT) AS INTEGER) != " +
                std::to_string(kOpening));
  EXPECT_GT(std::atoi(changed.c_str()), kAccounts / 2);
  std::printf("%d processes killed\n", killed);
}

// Connections in one process, three of ours and one of stock SQLite, each adding to a row of its
// own: every increment that was acknowledged is there at the end. (Transfers keep their sum when
// one is lost whole.)
class Counters : public ::testing::TestWithParam<JournalMode> {};

void add_ours(const std::string& path, i64 row, int times, Synchronous synchronous) {
  StoreOptions options;
  options.pager.busy = [](int calls) {
    ::usleep(50);
    return calls < 200'000;
  };
  auto store = Store::open(path, std::move(options)).value();
  store->pager().set_synchronous(synchronous);
  store->pager().set_wal_autocheckpoint(30);
  for (int done = 0; done < times;) {
    base::Status begun = store->begin_write();
    if (begun.ok()) {
      Cursor cursor(*store, 2, nullptr);
      ByteView old;
      if (cursor.seek_equal(row) != Hit::kRow || cursor.payload(&old) != Hit::kRow)
        die("a counter is gone");
      std::string next = row_of(account(balance_in(old) + 1, 10));
      if (cursor.insert(row, bytes(next)) != Hit::kRow) die(cursor.error().message());
      cursor.close();
      begun = store->commit();
      if (begun.ok()) {
        done++;
      } else if (!store->rollback().ok()) {
        die("rollback failed");
      }
    }
    if (!begun.ok()) (void)retry(begun.error());
    store->end_read();
  }
}

void add_stock(const std::string& path, i64 row, int times) {
  Stock stock(path);
  stock.run("PRAGMA synchronous=OFF; PRAGMA busy_timeout=20000; PRAGMA wal_autocheckpoint=30");
  for (int done = 0; done < times;) {
    std::string answer = stock.run(
        "UPDATE t SET a = CAST(printf('%d          ', CAST(CAST(a AS TEXT) AS INTEGER) + 1) AS "
        "BLOB)"
        " WHERE id = " +
        std::to_string(row));
    if (answer.empty()) {
      done++;
    } else if (answer.find("locked") == std::string::npos) {
      die("stock SQLite says " + answer);
    }
  }
}

TEST_P(Counters, HoldEveryAcknowledgedIncrement) {
  base::TempDir dir;
  const std::string path = dir / "counters.db";
  constexpr int kTimes = 1000;
  {
    auto store = Store::open(path, {}).value();
    store->begin_write().value();
    ASSERT_EQ(create_table_t(*store), 2u);
    Cursor cursor(*store, 2, nullptr);
    for (i64 id = 1; id <= 4; id++)
      ASSERT_EQ(cursor.insert(id, bytes(row_of(account(0, 10)))), Hit::kRow);
    cursor.close();
    store->commit().value();
    store->end_read();
    ASSERT_EQ(store->set_journal_mode(GetParam()).value(), GetParam());
  }
  {
    // Checkpoints that wait for the disk are checkpoints that others meet.
    const auto synchronous =
        GetParam() == JournalMode::kWal ? Synchronous::kNormal : Synchronous::kOff;
    std::vector<std::jthread> threads;
    for (i64 row = 1; row <= 3; row++)
      threads.emplace_back([&, row] { add_ours(path, row, kTimes, synchronous); });
    threads.emplace_back([&] { add_stock(path, 4, kTimes); });
  }
  Stock stock(path);
  EXPECT_EQ(stock.run("SELECT CAST(CAST(a AS TEXT) AS INTEGER) FROM t ORDER BY id"),
            "1000\n1000\n1000\n1000\n");
  EXPECT_EQ(stock.run("PRAGMA integrity_check"), "ok\n");
}

INSTANTIATE_TEST_SUITE_P(All, Counters, ::testing::Values(JournalMode::kDelete, JournalMode::kWal));

INSTANTIATE_TEST_SUITE_P(All, TwoEngines,
                         ::testing::Values(JournalMode::kDelete, JournalMode::kTruncate,
                                           JournalMode::kPersist, JournalMode::kWal));

}  // namespace
}  // namespace db
