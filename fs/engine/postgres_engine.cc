#include "fs/engine/postgres_engine.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/random.h"
#include "fs/engine/postgres_connection.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

constexpr const char* kSchema[] = {
    "CREATE TABLE IF NOT EXISTS agentfs_row(key BYTEA PRIMARY KEY, version BIGINT NOT NULL,"
    " value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS agentfs_log(workspace BIGINT PRIMARY KEY, epoch BIGINT NOT NULL,"
    " head BIGINT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS agentfs_segment(workspace BIGINT NOT NULL, first BIGINT NOT NULL,"
    " last BIGINT NOT NULL, epoch BIGINT NOT NULL, hash TEXT NOT NULL, bytes BYTEA NOT NULL,"
    " PRIMARY KEY(workspace, first))",
    "CREATE TABLE IF NOT EXISTS agentfs_writer(writer TEXT PRIMARY KEY, number BIGINT NOT NULL,"
    " seen TIMESTAMPTZ NOT NULL)",
};

constexpr const char* kGet = "SELECT value, version::bigint FROM agentfs_row WHERE key = $1::bytea";
constexpr const char* kScan =
    "SELECT key, value, version::bigint FROM agentfs_row"
    " WHERE key >= $1::bytea AND key < $2::bytea ORDER BY key";
constexpr const char* kScanAll = "SELECT key, value, version::bigint FROM agentfs_row ORDER BY key";
constexpr const char* kClaim =
    "INSERT INTO agentfs_writer(writer, number, seen)"
    " VALUES($1::text, $2::bigint, CURRENT_TIMESTAMP)"
    " ON CONFLICT (writer) DO UPDATE SET number = excluded.number, seen = excluded.seen"
    " WHERE agentfs_writer.number < excluded.number";
constexpr const char* kForgetWriters =
    "DELETE FROM agentfs_writer WHERE seen < CURRENT_TIMESTAMP - INTERVAL '7 days'";
constexpr const char* kInsert =
    "INSERT INTO agentfs_row(key, version, value) VALUES($1::bytea, 1, $2::text)"
    " ON CONFLICT (key) DO NOTHING";
constexpr const char* kUpdate =
    "UPDATE agentfs_row SET version = version + 1, value = $3::text"
    " WHERE key = $1::bytea AND version = $2::bigint";
constexpr const char* kDelete =
    "DELETE FROM agentfs_row WHERE key = $1::bytea AND version = $2::bigint";
constexpr const char* kCheck =
    "SELECT version::bigint FROM agentfs_row WHERE key = $1::bytea AND version = $2::bigint"
    " FOR SHARE";
constexpr const char* kFence =
    "INSERT INTO agentfs_log(workspace, epoch, head, hash)"
    " VALUES($1::bigint, $2::bigint, $3::bigint, '')"
    " ON CONFLICT (workspace) DO UPDATE SET epoch = excluded.epoch,"
    " head = CASE WHEN agentfs_log.head < excluded.head THEN excluded.head"
    "   ELSE agentfs_log.head END,"
    " hash = CASE WHEN agentfs_log.head < excluded.head THEN '' ELSE agentfs_log.hash END"
    " WHERE agentfs_log.epoch <= excluded.epoch";
// One statement, one round trip, one transaction of its own: nothing is inserted unless the log
// stands where the segment begins, in its epoch.
constexpr const char* kAppend =
    "WITH moved AS (UPDATE agentfs_log SET head = $4::bigint, hash = $5::text"
    " WHERE workspace = $1::bigint AND epoch = $2::bigint AND head = $3::bigint - 1"
    " RETURNING workspace)"
    " INSERT INTO agentfs_segment(workspace, first, last, epoch, hash, bytes)"
    " SELECT workspace, $3::bigint, $4::bigint, $2::bigint, $5::text, $6::bytea FROM moved";
constexpr const char* kSame =
    "SELECT epoch::bigint, hash FROM agentfs_segment"
    " WHERE workspace = $1::bigint AND first = $2::bigint";
constexpr const char* kLogs =
    "SELECT workspace::bigint, epoch::bigint, head::bigint, hash FROM agentfs_log ORDER BY "
    "workspace";
constexpr const char* kLog =
    "SELECT workspace::bigint, epoch::bigint, head::bigint, hash FROM agentfs_log WHERE workspace "
    "= $1::bigint";
constexpr const char* kSegments =
    "SELECT first::bigint, last::bigint, epoch::bigint, hash, bytes FROM agentfs_segment"
    " WHERE workspace = $1::bigint AND last >= $2::bigint ORDER BY first LIMIT $3::bigint";
constexpr const char* kDropSegments =
    "DELETE FROM agentfs_segment WHERE workspace = $1::bigint AND last < $2::bigint";

// The first key behind all that start with `prefix`; "" when there is none.
std::string end_of_prefix(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<u8>(end.back()) == 0xff) end.pop_back();
  if (!end.empty()) ++end.back();
  return end;
}

LogState state_of(const PgRows& rows, int row) {
  return {static_cast<u32>(rows.number(row, 0)), rows.number(row, 1), rows.number(row, 2),
          rows.bytes(row, 3)};
}

class PostgresEngine : public Engine {
 public:
  PostgresEngine(std::string url, PostgresOptions options)
      : url_(std::move(url)), options_(options) {}

  Status open() {
    Status ready = with_connection([&](Slot& slot, i64 deadline_us) -> Status {
      if (options_.create) {
        // Two that create at once may run into each other: it is there then.
        for (const char* sql : kSchema) {
          auto made = slot.connection->run(sql, {}, deadline_us);
          if (!made.ok() && made.error().code() != ErrorCode::kExists) {
            return std::move(made).error();
          }
        }
      }
      TRY(slot.connection->run(kForgetWriters, {}, deadline_us));
      return {};
    });
    if (!ready.ok() && ready.error().code() == ErrorCode::kNotFound) {
      return Error(ErrorCode::kNotFound, without_password(url_) +
                                             " holds no store; make one with agentfs format DIR "
                                             "--engine URL");
    }
    return ready;
  }

  int attempts_max() const override { return 2; }

  Result<Row> get(std::string_view key) override {
    Row row{std::string(key), "", 0};
    PgRows rows = TRY(query(kGet, {key}));
    if (rows.size() == 1) {
      row.value = rows.bytes(0, 0);
      row.version = rows.number(0, 1);
    }
    return row;
  }

  Result<std::vector<Row>> scan(std::string_view prefix) override {
    std::string end = end_of_prefix(prefix);
    PgRows rows = end.empty() ? TRY(query(kScanAll, {})) : TRY(query(kScan, {prefix, end}));
    std::vector<Row> all;
    for (int i = 0; i < rows.size(); ++i) {
      all.push_back({rows.bytes(i, 0), rows.bytes(i, 1), rows.number(i, 2)});
    }
    return all;
  }

  Status commit(const std::vector<RowWrite>& writes) override {
    std::vector<const RowWrite*> ordered;  // two commits take their locks in the same order
    for (const RowWrite& write : writes) ordered.push_back(&write);
    std::sort(ordered.begin(), ordered.end(),
              [](const RowWrite* a, const RowWrite* b) { return a->key < b->key; });
    u64 number = 0;
    return with_connection([&](Slot& slot, i64 deadline_us) {
      if (number == 0) number = ++slot.number;  // the same for every try
      Status done = try_commit(slot, number, ordered, deadline_us);
      if (!done.ok() && !slot.connection->broken()) {
        // When this fails the connection is broken, and the server rolls back by itself.
        (void)slot.connection->run("ROLLBACK", {}, deadline_us);
      }
      return done;
    });
  }

  Status fence(u32 workspace, Epoch epoch, Seq base) override {
    PgRows rows = TRY(query(kFence, {u64{workspace}, epoch, base}));
    return rows.affected() == 1 ? Status() : Status(fenced_out());
  }

  Status append(const LogSegment& segment) override {
    PgRows rows = TRY(query(kAppend, {u64{segment.workspace}, segment.epoch, segment.first,
                                      segment.last, segment.hash, segment.bytes}));
    if (rows.affected() == 1) return {};
    PgRows same = TRY(query(kSame, {u64{segment.workspace}, segment.first}));
    if (same.size() == 1 && same.number(0, 0) == segment.epoch &&
        same.bytes(0, 1) == segment.hash) {
      return {};
    }
    LogState log = TRY(this->log(segment.workspace));
    if (log.epoch != segment.epoch) return fenced_out();
    return not_next(log.head);
  }

  Result<LogState> log(u32 workspace) override {
    PgRows rows = TRY(query(kLog, {u64{workspace}}));
    return rows.size() == 1 ? state_of(rows, 0) : LogState{workspace, 0, 0, ""};
  }

  Result<std::vector<LogState>> logs() override {
    PgRows rows = TRY(query(kLogs, {}));
    std::vector<LogState> all;
    for (int i = 0; i < rows.size(); ++i) all.push_back(state_of(rows, i));
    return all;
  }

  Result<std::vector<LogSegment>> segments(u32 workspace, Seq from, size_t limit) override {
    PgRows rows = TRY(query(kSegments, {u64{workspace}, from, u64{limit}}));
    std::vector<LogSegment> all;
    for (int i = 0; i < rows.size(); ++i) {
      all.push_back({workspace, rows.number(i, 2), rows.number(i, 0), rows.number(i, 1),
                     rows.bytes(i, 3), rows.bytes(i, 4)});
    }
    return all;
  }

  Result<u64> drop_segments(u32 workspace, Seq before) override {
    return TRY(query(kDropSegments, {u64{workspace}, before})).affected();
  }

 private:
  // A connection and the name under which its commits are numbered.
  struct Slot {
    std::string writer;
    u64 number = 0;
    std::unique_ptr<PgConnection> connection;
  };

  std::unique_ptr<Slot> take_slot() {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [&] { return !idle_.empty() || slots_ < options_.connections_max; });
    if (idle_.empty()) {
      ++slots_;
      auto slot = std::make_unique<Slot>();
      u8 name[16];
      base::secure_random_bytes(name);
      slot->writer = base::to_hex(name);
      return slot;
    }
    auto slot = std::move(idle_.back());
    idle_.pop_back();
    return slot;
  }
  void give_back(std::unique_ptr<Slot> slot) {
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(slot));
    returned_.notify_one();
  }

  // Calls `body` on a connection until it does not fail with kBusy or kUnavailable, or patience
  // ends. `body` must be one that may be repeated when its outcome is unknown.
  template <class Body>
  Status with_connection(Body body) {
    base::Clock& clock = base::system_clock();
    i64 end_us = clock.monotonic_us() + options_.patience_us;
    std::unique_ptr<Slot> slot = take_slot();
    i64 pause_us = 5'000;
    for (;;) {
      i64 deadline_us = std::min(clock.monotonic_us() + options_.statement_us, end_us);
      Status done = connect(*slot, deadline_us);
      if (done.ok()) done = body(*slot, deadline_us);
      if (slot->connection && slot->connection->broken()) slot->connection.reset();
      bool again = !done.ok() && (done.error().code() == ErrorCode::kBusy ||
                                  done.error().code() == ErrorCode::kUnavailable);
      // Full jitter: many clients of one server that comes back must not come at once.
      i64 nap_us = 1'000 + static_cast<i64>(jitter(static_cast<u64>(pause_us)));
      if (!again || clock.monotonic_us() + nap_us >= end_us) {
        give_back(std::move(slot));
        // Some try may have happened although its answer was lost.
        if (again) return Error(ErrorCode::kUnavailable, done.error().message());
        return done;
      }
      clock.sleep_us(nap_us);
      pause_us = std::min<i64>(pause_us * 2, 1'000'000);
    }
  }
  u64 jitter(u64 bound) {
    std::lock_guard lock(mutex_);
    return rng_.below(bound);
  }

  Status connect(Slot& slot, i64 deadline_us) {
    if (slot.connection == nullptr) slot.connection = TRY(PgConnection::open(url_, deadline_us));
    return {};
  }

  Result<PgRows> query(const char* sql, const std::vector<PgValue>& values) {
    PgRows rows;
    TRY(with_connection([&](Slot& slot, i64 deadline_us) -> Status {
      rows = TRY(slot.connection->run(sql, values, deadline_us));
      return {};
    }));
    return rows;
  }

  static Status try_commit(Slot& slot, u64 number, const std::vector<const RowWrite*>& writes,
                           i64 deadline_us) {
    PgConnection& connection = *slot.connection;
    TRY(connection.run("BEGIN", {}, deadline_us));
    if (TRY(connection.run(kClaim, {slot.writer, number}, deadline_us)).affected() == 0) {
      // An earlier try did it, and only its answer was lost.
      TRY(connection.run("ROLLBACK", {}, deadline_us));
      return {};
    }
    for (const RowWrite* write : writes) TRY(apply(connection, *write, deadline_us));
    PgRows ended = TRY(connection.run("COMMIT", {}, deadline_us));
    if (ended.tag() != "COMMIT") {
      return Error(ErrorCode::kBusy, "the engine's server rolled a commit back");
    }
    return {};
  }

  static Status apply(PgConnection& connection, const RowWrite& write, i64 deadline_us) {
    Error conflict(ErrorCode::kConflict, write.key + " was changed by somebody else");
    u64 matched = 0;
    if (write.expected == 0) {
      std::string value = write.value.value_or("");
      matched = TRY(connection.run(kInsert, {write.key, value}, deadline_us)).affected();
      // Checking for absence is to be there for a moment: only an index entry can be locked.
      bool stays = write.value.has_value() && !write.check_only;
      if (matched == 1 && !stays) {
        TRY(connection.run(kDelete, {write.key, u64{1}}, deadline_us));
      }
    } else if (write.check_only) {
      PgRows rows = TRY(connection.run(kCheck, {write.key, write.expected}, deadline_us));
      matched = static_cast<u64>(rows.size());
    } else if (write.value) {
      matched = TRY(connection.run(kUpdate, {write.key, write.expected, *write.value}, deadline_us))
                    .affected();
    } else {
      matched = TRY(connection.run(kDelete, {write.key, write.expected}, deadline_us)).affected();
    }
    return matched == 1 ? Status() : Status(std::move(conflict));
  }

  const std::string url_;
  const PostgresOptions options_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Slot>> idle_;
  size_t slots_ = 0;
  base::Rng rng_{base::random_seed()};
};

}  // namespace

Result<std::unique_ptr<Engine>> open_postgres_engine(const std::string& url,
                                                     const PostgresOptions& options) {
  auto engine = std::make_unique<PostgresEngine>(url, options);
  TRY(engine->open());
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace fs
