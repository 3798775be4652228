// Power cuts. A run of transactions on a recorded disk; then, for crash points all over the run, a
// disk as it may be found afterwards, opened by FleetDB and by stock SQLite. Both must find a whole
// transaction's state, no later one than was tried and no earlier one than was promised.
//
// FLEET_CRASH_POINTS sets how many states each engine is shown (default 1,200 over all
// configurations).
#include "base/files.h"
#include "db/storage/multi_commit.h"
#include "db/storage/sim_vfs.h"
#include "db/storage/test_records.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace db {
namespace {

constexpr const char* kPath = "/sim/a.db";

struct DiskSetup {
  JournalMode journal;
  Synchronous synchronous;
  u32 page_bytes;
  AutoVacuum vacuum;
  u32 sector_bytes;
  // How many acknowledged transactions a power cut may take: 0 is full durability. DELETE mode with
  // synchronous=FULL may lose the last one (the removal of the journal is not synced), as
  // documented for SQLite; NORMAL in WAL mode may lose any that were not checkpointed.
  int may_lose;
};

using Model = std::map<i64, std::string>;

struct History {
  SimVfs vfs;
  std::vector<Model> states;     // after each commit; states[0]: the empty table
  std::vector<size_t> acked_at;  // calls made when commit i was acknowledged
  PageNo root = 0;
};

std::unique_ptr<Store> open_on(Vfs& vfs, const DiskSetup& setup) {
  StoreOptions options;
  options.pager.vfs = &vfs;
  auto store = Store::open(kPath, std::move(options)).value();
  store->pager().set_synchronous(setup.synchronous);
  return store;
}

void write_history(History& run, const DiskSetup& setup, u64 seed) {
  base::Rng rng(seed);
  auto store = open_on(run.vfs, setup);
  store->set_page_size(setup.page_bytes, 0).value();
  store->set_auto_vacuum(setup.vacuum).value();
  store->pager().set_wal_autocheckpoint(12);
  store->begin_write().value();
  run.root = create_table_t(*store);
  store->commit().value();
  store->end_read();
  // The file itself is there for good: creation is not what is tested.
  (void)run.vfs.sync_directory_of(kPath);
  ASSERT_TRUE(store->set_journal_mode(setup.journal).ok());
  Model model;
  run.states.push_back(model);
  run.acked_at.push_back(run.vfs.operations());
  for (int commit = 1; commit <= 14; commit++) {
    store->begin_write().value();
    {
      Cursor cursor(*store, run.root, nullptr);
      for (u64 i = rng.below(6) + 1; i > 0; i--) {
        i64 id = rng.between(1, 40);
        if (rng.chance(0.7)) {
          std::string row = row_of(random_text(rng, rng.chance(0.2) ? 6000 : 200));
          ASSERT_EQ(cursor.insert(id, bytes(row)), Hit::kRow);
          model[id] = row;
        } else if (cursor.seek_equal(id) == Hit::kRow) {
          ASSERT_EQ(cursor.erase(), Hit::kRow);
          model.erase(id);
        }
      }
      // Row 0 says which state this is.
      std::string number = row_of(std::to_string(commit));
      ASSERT_EQ(cursor.insert(0, bytes(number)), Hit::kRow);
      model[0] = number;
    }
    store->commit().value();
    run.states.push_back(model);
    run.acked_at.push_back(run.vfs.operations());
    store->end_read();
  }
}

// The number of the state that these rows are, or -1.
int state_of(const History& run, const Model& rows) {
  for (size_t i = 0; i < run.states.size(); i++)
    if (run.states[i] == rows) return static_cast<int>(i);
  return -1;
}

// Opens the image with FleetDB; the vfs shows what recovery did.
int our_state(const History& run, const DiskSetup& setup, SimVfs& vfs, std::string* why) {
  auto store = open_on(vfs, setup);
  base::Status begun = store->begin_read();
  if (!begun.ok()) {
    *why = begun.error().message();
    return -1;
  }
  auto found = store->integrity_check({run.root});
  if (!found.ok() || !found->empty()) {
    *why = found.ok() ? (*found)[0] : found.error().message();
    return -1;
  }
  Model rows;
  Cursor cursor(*store, run.root, nullptr);
  Hit hit = cursor.first();
  for (; hit == Hit::kRow; hit = cursor.next()) rows[cursor.rowid()] = payload_of(cursor);
  if (hit == Hit::kError) *why = cursor.error().message();
  cursor.close();
  store->end_read();
  return hit == Hit::kError ? -1 : state_of(run, rows);
}

int stock_state(const History& run, const DiskImage& image, const std::string& folder,
                std::string* why) {
  for (const char* suffix : {"", "-journal", "-wal", "-shm"})
    ::unlink((folder + "/a.db" + suffix).c_str());
  for (const auto& [name, content] : image) {
    std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
    base::write_file(folder + "/" + name.substr(5), text).value();
  }
  Stock stock(folder + "/a.db");
  stock.run("PRAGMA synchronous=OFF");
  std::string check = stock.run("PRAGMA integrity_check");
  if (check != "ok\n") {
    *why = check;
    return -1;
  }
  Model rows;
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(stock.handle(), "SELECT id, a FROM t", -1, &statement, nullptr);
  while (sqlite3_step(statement) == SQLITE_ROW) {
    auto* blob = static_cast<const char*>(sqlite3_column_blob(statement, 1));
    rows[sqlite3_column_int64(statement, 0)] = row_of(
        std::string(blob ? blob : "", static_cast<size_t>(sqlite3_column_bytes(statement, 1))));
  }
  sqlite3_finalize(statement);
  return state_of(run, rows);
}

class PowerCut : public ::testing::TestWithParam<DiskSetup> {};

TEST_P(PowerCut, LeavesAWholeTransactionForBothEngines) {
  const DiskSetup& setup = GetParam();
  const char* wanted = std::getenv("FLEET_CRASH_POINTS");
  const int points = (wanted ? std::atoi(wanted) : 1200) / 8;
  base::TempDir dir;
  u64 seed = static_cast<u64>(setup.journal) * 100 + setup.page_bytes;
  int shown = 0;
  int again = 0;
  for (int history = 0; shown < points; history++) {
    History run;
    ASSERT_NO_FATAL_FAILURE(write_history(run, setup, seed + static_cast<u64>(history)));
    base::Rng rng(seed * 7 + static_cast<u64>(history));
    size_t first = run.acked_at[0];
    for (size_t after = first; after <= run.vfs.operations() && shown < points; after++) {
      SimVfs::CrashOptions options{.after = after, .sector_bytes = setup.sector_bytes};
      options.keep = rng.chance(0.2) ? 0.0 : rng.chance(0.25) ? 1.0 : rng.unit();
      options.garbage = rng.chance(0.3);
      DiskImage image = run.vfs.crash_image(options, rng);
      int acked = -1;
      for (size_t at : run.acked_at) acked += at <= after ? 1 : 0;
      std::string why;
      int theirs = stock_state(run, image, dir.path(), &why);
      std::string place = " after call " + std::to_string(after) + " of history " +
                          std::to_string(history) + ", " + std::to_string(acked) +
                          " acknowledged: " + why;
      ASSERT_GE(theirs, std::max(0, acked - setup.may_lose)) << "stock SQLite" << place;
      ASSERT_LE(theirs, acked + 1) << "stock SQLite" << place;
      SimVfs recovered(image);
      int ours = our_state(run, setup, recovered, &why);
      ASSERT_EQ(ours, theirs) << "FleetDB" << place << why;
      shown++;
      // And a second power cut during recovery.
      if (recovered.operations() == 0 || !rng.chance(0.5)) continue;
      options.after = rng.below(recovered.operations() + 1);
      SimVfs twice(recovered.crash_image(options, rng));
      ASSERT_EQ(our_state(run, setup, twice, &why), ours) << "twice" << place << why;
      again++;
    }
  }
  std::printf("%d states after a power cut, %d of them cut again in recovery\n", shown, again);
}

constexpr auto kNone = AutoVacuum::kNone;
INSTANTIATE_TEST_SUITE_P(
    All, PowerCut,
    ::testing::Values(
        DiskSetup{JournalMode::kDelete, Synchronous::kExtra, 4096, kNone, 512, 0},
        DiskSetup{JournalMode::kDelete, Synchronous::kFull, 1024, AutoVacuum::kFull, 4096, 1},
        DiskSetup{JournalMode::kTruncate, Synchronous::kFull, 512, kNone, 512, 0},
        DiskSetup{JournalMode::kPersist, Synchronous::kFull, 4096, kNone, 4096, 0},
        DiskSetup{JournalMode::kWal, Synchronous::kFull, 4096, kNone, 512, 0},
        DiskSetup{JournalMode::kWal, Synchronous::kFull, 1024, AutoVacuum::kFull, 4096, 0},
        DiskSetup{JournalMode::kWal, Synchronous::kNormal, 4096, kNone, 4096, 1000},
        DiskSetup{JournalMode::kWal, Synchronous::kNormal, 512, kNone, 512, 1000}));

// Two files, one transaction: after a power cut both hold it or neither does, for both engines.
TEST(PowerCutOverTwoFiles, LeavesBothOrNeither) {
  base::TempDir dir;
  base::Rng rng(11);
  int shown = 0;
  int split = 0;
  for (JournalMode mode : {JournalMode::kDelete, JournalMode::kTruncate, JournalMode::kPersist}) {
    // Real paths: the super-journal names its journals, and stock SQLite must find them.
    std::string paths[2] = {dir / "a.db", dir / "b.db"};
    SimVfs vfs;
    std::unique_ptr<Store> stores[2];
    PageNo root = 0;
    for (int i = 0; i < 2; i++) {
      StoreOptions options;
      options.pager.vfs = &vfs;
      stores[i] = Store::open(paths[i], std::move(options)).value();
      stores[i]->pager().set_synchronous(Synchronous::kExtra);
      stores[i]->begin_write().value();
      root = create_table_t(*stores[i]);
      stores[i]->commit().value();
      stores[i]->end_read();
      ASSERT_TRUE(stores[i]->set_journal_mode(mode).ok());
    }
    (void)vfs.sync_directory_of(paths[0]);
    size_t first = vfs.operations();
    std::vector<size_t> acked_at{first};
    for (int commit = 1; commit <= 6; commit++) {
      for (auto& store : stores) {
        store->begin_write().value();
        Cursor cursor(*store, root, nullptr);
        ASSERT_EQ(cursor.insert(commit, bytes(row_of(random_text(rng, 5000)))), Hit::kRow);
      }
      Store* both[] = {stores[0].get(), stores[1].get()};
      commit_together(both).value();
      acked_at.push_back(vfs.operations());
      for (auto& store : stores) store->end_read();
    }
    for (size_t after = first; after <= vfs.operations(); after += 1 + rng.below(4)) {
      SimVfs::CrashOptions options{.after = after};
      options.keep = rng.unit();
      DiskImage image = vfs.crash_image(options, rng);
      int acked = -1;
      for (size_t at : acked_at) acked += at <= after ? 1 : 0;
      std::vector<std::string> left = base::list_directory(dir.path()).value();
      for (const std::string& name : left) ::unlink((dir / name).c_str());
      for (const auto& [name, content] : image)
        base::write_file(name, {reinterpret_cast<const char*>(content.data()), content.size()})
            .value();
      std::string theirs[2];
      i64 ours[2];
      SimVfs recovered(image);
      for (int i = 0; i < 2; i++) {
        Stock stock(paths[i]);
        stock.run("PRAGMA synchronous=OFF");
        theirs[i] = stock.run("PRAGMA integrity_check; SELECT count(*) FROM t");
        StoreOptions open;
        open.pager.vfs = &recovered;
        auto store = Store::open(paths[i], std::move(open)).value();
        store->begin_read().value();
        ours[i] = Cursor(*store, root, nullptr).count().value();
        store->end_read();
      }
      ASSERT_EQ(theirs[0], theirs[1]) << "after call " << after;
      ASSERT_EQ(ours[0], ours[1]) << "after call " << after;
      ASSERT_EQ(theirs[0], "ok\n" + std::to_string(ours[0]) + "\n");
      ASSERT_GE(ours[0], acked);
      ASSERT_LE(ours[0], acked + 1);
      split += ours[0] == acked ? 0 : 1;
      shown++;
    }
  }
  EXPECT_GT(split, 0) << "no crash point showed a transaction that was not acknowledged yet";
  std::printf("%d states after a power cut over two files\n", shown);
}

// Every call of a run fails once, or for good, with "full" or "I/O error": the transaction fails,
// the data stays, and once the disk is well again work goes on.
TEST(FailingDisk, LosesNothingAndWorkGoesOn) {
  int failures = 0;
  for (JournalMode journal : {JournalMode::kDelete, JournalMode::kPersist, JournalMode::kWal}) {
    DiskSetup setup{journal, Synchronous::kFull, 1024, kNone, 512, 0};
    for (base::ErrorCode code : {base::ErrorCode::kFull, base::ErrorCode::kIo}) {
      for (bool forever : {false, true}) {
        for (size_t nth = 0;; nth++) {
          SimVfs vfs;
          auto store = open_on(vfs, setup);
          store->set_page_size(1024, 0).value();
          store->begin_write().value();
          PageNo root = create_table_t(*store);
          store->commit().value();
          store->end_read();
          ASSERT_TRUE(store->set_journal_mode(journal).ok());
          vfs.fail_at(vfs.operations() + nth, code, forever);
          int acked = 0;
          bool failed = false;
          for (int i = 1; i <= 3 && !failed; i++) {
            base::Status begun = store->begin_write();
            ASSERT_TRUE(begun.ok()) << begun.error().message();
            Cursor cursor(*store, root, nullptr);
            for (int row = 0; row < 5; row++)
              ASSERT_EQ(cursor.insert(i * 10 + row, bytes(row_of(std::string(700, 'a')))),
                        Hit::kRow);
            cursor.close();
            base::Status done = store->commit();
            if (done.ok()) {
              acked = i;
            } else {
              failed = true;
              (void)store->rollback();
            }
            store->end_read();
          }
          vfs.heal();
          if (!failed) break;
          failures++;
          // What is on the disk: what was acknowledged, perhaps with the one that failed at the
          // end.
          History run;
          auto reopened = forever ? open_on(vfs, setup) : std::move(store);
          base::Status begun = reopened->begin_write();
          ASSERT_TRUE(begun.ok()) << begun.error().message() << " nth " << nth << " mode "
                                  << static_cast<int>(journal);
          Cursor cursor(*reopened, root, nullptr);
          i64 rows = cursor.count().value();
          ASSERT_TRUE(rows == acked * 5 || rows == (acked + 1) * 5)
              << rows << " of " << acked << " nth " << nth;
          ASSERT_EQ(cursor.insert(1000, bytes(row_of("after"))), Hit::kRow);
          cursor.close();
          reopened->commit().value();
          ASSERT_TRUE(reopened->integrity_check({root}).value().empty());
          reopened->end_read();
        }
      }
    }
  }
  EXPECT_GT(failures, 60);
  std::printf("%d failing calls\n", failures);
}

}  // namespace
}  // namespace db
