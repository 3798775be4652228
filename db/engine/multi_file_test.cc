// Transactions over attached files, through the engine: a power cut at any call leaves them in all
// files or in none, and a failing file takes the whole transaction back.
#include "db/engine/connection.h"
#include "db/storage/sim_vfs.h"

#include <gtest/gtest.h>

namespace db {
namespace {

constexpr const char* kFiles[] = {"/sim/a.db", "/sim/b.db", "/sim/c.db"};

std::unique_ptr<Connection> open_all(SimVfs& vfs) {
  OpenOptions options;
  options.vfs = &vfs;
  auto connection = std::move(Connection::open(kFiles[0], options)).value();
  for (int i = 1; i < 3; ++i) {
    std::string attach = std::string("ATTACH '") + kFiles[i] + "' AS f" + std::to_string(i);
    EXPECT_TRUE(connection->execute(attach).ok());
  }
  return connection;
}

std::string rows(Connection& connection, const std::string& sql) {
  std::string out;
  Status done = connection.execute(sql, [&](Statement& statement) {
    for (int i = 0; i < statement.column_count(); ++i) out += statement.column(i).to_text() + "|";
    return true;
  });
  return done.ok() ? out : "! " + done.error().message();
}

constexpr const char* kTables =
    "CREATE TABLE main.t(n, filler); CREATE TABLE f1.t1(n, filler); CREATE TABLE f2.t2(n, filler)";
constexpr const char* kCounts =
    "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM t1), (SELECT count(*) FROM t2)";

std::string insert_into_all(int number) {
  std::string values = " VALUES(" + std::to_string(number) + ", randomblob(3000));";
  return "BEGIN; INSERT INTO t" + values + "INSERT INTO t1" + values + "INSERT INTO t2" + values +
         "COMMIT";
}

class SeveralFiles : public testing::TestWithParam<const char*> {};

TEST_P(SeveralFiles, HoldATransactionAllOrNoneAfterAPowerCut) {
  SimVfs vfs;
  auto connection = open_all(vfs);
  ASSERT_TRUE(connection->execute(kTables).ok());
  std::string setup;
  for (const char* name : {"main", "f1", "f2"}) {
    setup += std::string("PRAGMA ") + name + ".journal_mode=" + GetParam() + "; PRAGMA " + name +
             ".synchronous=EXTRA;";
  }
  ASSERT_TRUE(connection->execute(setup).ok());
  (void)vfs.sync_directory_of(kFiles[0]);
  std::vector<size_t> acknowledged = {vfs.operations()};
  for (int i = 1; i <= 5; ++i) {
    ASSERT_EQ(rows(*connection, insert_into_all(i)), "");
    acknowledged.push_back(vfs.operations());
  }
  base::Rng rng(7);
  int unacknowledged = 0;
  for (size_t after = acknowledged[0]; after <= vfs.operations(); after += 1 + rng.below(3)) {
    int promised = -1;
    for (size_t at : acknowledged) promised += at <= after ? 1 : 0;
    SimVfs::CrashOptions options{.after = after};
    options.keep = rng.unit();
    SimVfs found(vfs.crash_image(options, rng));
    auto reopened = open_all(found);
    std::string counts = rows(*reopened, kCounts);
    auto all = [](int number) {
      std::string one = std::to_string(number) + "|";
      return one + one + one;
    };
    ASSERT_TRUE(counts == all(promised) || counts == all(promised + 1))
        << counts << " after call " << after << ", promised " << promised;
    unacknowledged += counts == all(promised) ? 0 : 1;
    for (const char* name : {"main", "f1", "f2"})
      ASSERT_EQ(rows(*reopened, std::string("PRAGMA ") + name + ".integrity_check"), "ok|");
  }
  EXPECT_GT(unacknowledged, 0);
}

TEST_P(SeveralFiles, TakeTheWholeTransactionBackWhenOneFails) {
  int failures = 0;
  for (size_t nth = 0;; ++nth) {
    SimVfs vfs;
    auto connection = open_all(vfs);
    ASSERT_TRUE(connection->execute(kTables).ok());
    std::string setup;
    for (const char* name : {"main", "f1", "f2"})
      setup += std::string("PRAGMA ") + name + ".journal_mode=" + GetParam() + ";";
    ASSERT_TRUE(connection->execute(setup).ok());
    size_t failing = vfs.operations() + nth;
    vfs.fail_at(failing, base::ErrorCode::kFull, false);
    Status done = connection->execute(insert_into_all(1));
    vfs.heal();
    if (!done.ok() && !connection->autocommit()) rows(*connection, "ROLLBACK");
    std::string counts = rows(*connection, kCounts);
    ASSERT_TRUE(counts == "0|0|0|" || counts == "1|1|1|") << counts << " call " << nth;
    if (done.ok()) ASSERT_EQ(counts, "1|1|1|");
    if (done.ok() && vfs.operations() <= failing) break;  // the run makes fewer calls
    failures += done.ok() ? 0 : 1;
  }
  EXPECT_GT(failures, 10);
}

INSTANTIATE_TEST_SUITE_P(Journals, SeveralFiles, testing::Values("delete", "truncate", "persist"));

}  // namespace
}  // namespace db
