#include "team/ledger/ledger.h"

#include "base/files.h"
#include "team/ledger/strand.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace team {
namespace {

using base::Json;

Json id(const char* text) {
  return Json::object({{"id", text}});
}

std::unique_ptr<Ledger> open_ledger(const std::string& path,
                                    std::function<void(i64, bool)> on_commit = {}) {
  auto ledger = Ledger::open(
      {.path = path, .run = "r-test", .create = true, .on_commit = std::move(on_commit)});
  EXPECT_TRUE(ledger.ok()) << ledger.error().message();
  return ledger.ok() ? std::move(*ledger) : nullptr;
}

TEST(Ledger, KeepsEventsAndTheirFoldAcrossReopening) {
  base::TempDir dir;
  {
    auto ledger = open_ledger(dir / "l.db");
    ASSERT_TRUE(ledger->append("main", 1, "engine", {{"task.proposed", id("T1")}}).ok());
    ASSERT_TRUE(ledger->append("main", 2, "engine", {{"task.ready", id("T1")}}).ok());
  }
  auto ledger = open_ledger(dir / "l.db");
  EXPECT_EQ(ledger->state().state_of("task", "T1"), "ready");
  auto report = ledger->verify();
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->intact) << report->problem;
  EXPECT_EQ(report->events, 2);
}

TEST(Ledger, StoresNothingWhenAMoveIsNotAllowed) {
  base::TempDir dir;
  auto ledger = open_ledger(dir / "l.db");
  auto refused =
      ledger->append("main", 1, "engine", {{"task.proposed", id("T1")}, {"task.merged", id("T1")}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), base::ErrorCode::kConflict);
  EXPECT_EQ(ledger->events()->size(), 0u);
  EXPECT_EQ(ledger->state().state_of("task", "T1"), "");
}

TEST(Ledger, RefusesASecondEventAtOnePositionOfAStream) {
  base::TempDir dir;
  auto ledger = open_ledger(dir / "l.db");
  ASSERT_TRUE(ledger->append("main", 1, "engine", {{"note.said", id("a")}}).ok());
  EXPECT_FALSE(ledger->append("main", 1, "engine", {{"note.said", id("b")}}).ok());
  EXPECT_TRUE(ledger->append("main", 2, "engine", {{"note.said", id("b")}}).ok());
}

TEST(Ledger, RefusesTheLateResultOfALostLease) {
  base::TempDir dir;
  auto ledger = open_ledger(dir / "l.db");
  auto lease = [](i64 fence) {
    return Json::object({{"id", "T1"}, {"worker", "w"}, {"fence", fence}});
  };
  ASSERT_TRUE(ledger->append("main", 1, "engine", {{"task.proposed", id("T1")}}).ok());
  ASSERT_TRUE(ledger->append("main", 2, "engine", {{"task.ready", id("T1")}}).ok());
  ASSERT_TRUE(ledger->append("main", 3, "engine", {{"task.leased", lease(1)}}).ok());
  ASSERT_TRUE(ledger->append("main", 4, "engine", {{"task.ready", id("T1")}}).ok());
  ASSERT_TRUE(ledger->append("main", 5, "engine", {{"task.leased", lease(2)}}).ok());
  NewEvent late{.type = "task.submitted", .body = id("T1"), .fence = 1};
  auto refused = ledger->append("T1", 1, "worker:1", {late});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), base::ErrorCode::kConflict);
  late.fence = 2;
  EXPECT_TRUE(ledger->append("T1", 1, "worker:2", {late}).ok());
}

TEST(Ledger, ShowsEveryKindOfTampering) {
  for (const char* damage :
       {"UPDATE event SET body = '{\"id\":\"T9\"}' WHERE seq = 2",
        "DELETE FROM event WHERE seq = 2", "UPDATE event SET at_us = at_us + 1 WHERE seq = 1",
        "UPDATE event SET actor = 'x' WHERE seq = 3", "UPDATE blob SET data = 'other'"}) {
    base::TempDir dir;
    auto ledger = open_ledger(dir / "l.db");
    for (int i = 1; i <= 3; ++i) {
      std::string name = "N" + std::to_string(i);
      ASSERT_TRUE(ledger->append("main", i, "engine", {{"note.said", id(name.c_str())}}).ok());
    }
    ASSERT_TRUE(ledger->put_blob("some bytes").ok());
    ASSERT_TRUE(ledger->verify()->intact);
    auto other = Database::open(dir / "l.db", Database::Mode::kWrite);
    ASSERT_TRUE(other.ok());
    ASSERT_TRUE((*other)->run(damage).ok());
    auto report = ledger->verify();
    ASSERT_TRUE(report.ok());
    EXPECT_FALSE(report->intact) << damage;
    EXPECT_NE(report->problem, "");
  }
}

TEST(Ledger, AFileThatIsNoLedgerIsCalledDamaged) {
  base::TempDir dir;
  ASSERT_TRUE(base::write_file(dir / "l.db", std::string(8192, 'x')).ok());
  auto ledger = Ledger::open({.path = dir / "l.db"});
  ASSERT_FALSE(ledger.ok());
  EXPECT_EQ(ledger.error().code(), base::ErrorCode::kCorruption);
}

// A workflow with every class of effect. `world` counts what really happened.
struct World {
  std::string path;
  void happened(const std::string& what) const {
    ASSERT_TRUE(base::append_file(path, what + "\n").ok());
  }
};

base::Status workflow(Ledger& ledger, const World& world) {
  auto strand = TRY(Strand::open(ledger, {.stream = "main"}));
  TRY(strand->emit("budget.capped", Json::object({{"scope", "run"}, {"cap", 10'000}})));
  for (int i = 1; i <= 3; ++i) {
    std::string task = "T" + std::to_string(i);
    TRY(strand->emit("task.proposed",
                     Json::object({{"id", task}, {"title", "x"}, {"role", "coder"}})));
    EffectIntent call{.key = task + ".c",
                      .kind = "model.call",
                      .cls = EffectClass::kPaid,
                      .request = Json::object({{"n", i}}),
                      .reserve_nusd = 1000};
    Json reply = TRY(strand->once_booked(
        call,
        [&]() -> base::Result<Json> {
          world.happened("call " + task);
          return Json::object({{"text", std::string(i == 2 ? 5000 : 5, 'x')}, {"cost", 100 * i}});
        },
        [](const Json& result) {
          return std::vector<Json>{
              Json::object({{"outcome", "ok"}, {"role", "coder"}, {"cost_nusd", result["cost"]}})};
        }));
    Json stored =
        TRY(strand->once({.key = task + ".t",
                          .kind = "tool.write",
                          .cls = EffectClass::kExternal,
                          .request = Json::object({{"size", reply["text"].as_string().size()}})},
                         [&]() -> base::Result<Json> {
                           world.happened("write " + task);
                           return Json(i);
                         }));
    TRY(strand->emit("task.ready", Json::object({{"id", task}, {"prio", stored}})));
  }
  auto failed =
      strand->once({.key = "bad", .kind = "x", .request = Json()}, []() -> base::Result<Json> {
        return base::Error(base::ErrorCode::kInvalidArgument, "no such thing");
      });
  return strand->emit("note.said",
                      Json::object({{"id", "end"}, {"failed", failed.error().message()}}));
}

struct Outcome {
  std::string comparable;
  std::string projections;
  i64 spent = 0;
  i64 ambiguous = 0;
};

Outcome finish(const std::string& dir) {
  auto ledger = open_ledger(dir + "/l.db");
  auto status = workflow(*ledger, {dir + "/world"});
  EXPECT_TRUE(status.ok()) << status.error().message();
  EXPECT_TRUE(ledger->verify()->intact);
  std::string before = *ledger->projections();
  EXPECT_TRUE(ledger->rebuild().ok());
  EXPECT_EQ(*ledger->projections(), before) << "projections are a view of the events";
  EXPECT_EQ(ledger->budget().at("run").reserved, 0);
  EXPECT_EQ(ledger->budget().at("run").spent, ledger->state().spent_nusd());
  return {ledger->state().comparable().dump_canonical(), before, ledger->state().spent_nusd(),
          ledger->state().ambiguous_nusd()};
}

TEST(Strand, ASecondRunDoesNothingAgain) {
  base::TempDir dir;
  Outcome first = finish(dir.path());
  std::string world = *base::read_file(dir / "world");
  Outcome second = finish(dir.path());
  EXPECT_EQ(*base::read_file(dir / "world"), world);
  EXPECT_EQ(first.projections, second.projections);
}

// kill -9 at every commit, before and after it, then resume.
TEST(Strand, SurvivesKillAtEveryCommitOnBothSides) {
  base::TempDir golden_dir;
  Outcome golden = finish(golden_dir.path());
  int points = 0;
  for (i64 at = 1; points == 0 || at <= 64; ++at) {
    bool reached = false;
    for (bool after : {false, true}) {
      base::TempDir dir;
      pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        i64 commits = 0;
        auto ledger = open_ledger(dir / "l.db", [&](i64, bool is_after) {
          commits += !is_after;
          if (commits == at && is_after == after) raise(SIGKILL);
        });
        (void)workflow(*ledger, {dir / "world"});
        _exit(0);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      reached = WIFSIGNALED(status);
      if (!reached) break;
      ++points;
      Outcome resumed = finish(dir.path());
      EXPECT_EQ(resumed.comparable, golden.comparable)
          << "commit " << at << (after ? " after" : " before");
      EXPECT_LE(resumed.ambiguous, 1000) << "at most one call in doubt";
      EXPECT_EQ(resumed.spent - resumed.ambiguous, golden.spent);
    }
    if (!reached) break;
  }
  EXPECT_GE(points, 40);
}

TEST(Strand, SaysWhenTheCodeDivergesFromTheRecord) {
  base::TempDir dir;
  auto ledger = open_ledger(dir / "l.db");
  auto first = Strand::open(*ledger, {.stream = "main"});
  ASSERT_TRUE((*first)->emit("note.said", id("a")).ok());
  auto again = Strand::open(*ledger, {.stream = "main"});
  auto status = (*again)->emit("note.said", id("b"));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), base::ErrorCode::kConflict);
  EXPECT_NE(status.error().message().find("diverged"), std::string::npos);
}

TEST(Strand, RefusesACallTheBudgetHasNoRoomFor) {
  base::TempDir dir;
  auto ledger = open_ledger(dir / "l.db");
  auto strand = Strand::open(*ledger, {.stream = "main", .scope = "run/build"});
  ASSERT_TRUE((*strand)->emit("budget.capped", Json::object({{"scope", "run"}, {"cap", 50}})).ok());
  bool called = false;
  auto refused = (*strand)->once({.key = "c",
                                  .kind = "model.call",
                                  .cls = EffectClass::kPaid,
                                  .request = Json(),
                                  .reserve_nusd = 51},
                                 [&]() -> base::Result<Json> {
                                   called = true;
                                   return Json();
                                 });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), base::ErrorCode::kLimit);
  EXPECT_FALSE(called);
}

TEST(Strand, TriesAgainWhatFailedForAPassingReason) {
  base::TempDir dir;
  auto ledger = open_ledger(dir / "l.db");
  for (int run = 1; run <= 2; ++run) {
    auto strand = Strand::open(*ledger, {.stream = "main"});
    auto result =
        (*strand)->once({.key = "c", .kind = "x", .request = Json()}, [&]() -> base::Result<Json> {
          if (run == 1) return base::Error(base::ErrorCode::kUnavailable, "nobody there");
          return Json(7);
        });
    EXPECT_EQ(result.ok(), run == 2);
  }
}

}  // namespace
}  // namespace team
