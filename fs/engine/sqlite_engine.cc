#include "fs/engine/sqlite_engine.h"

#include <sqlite3.h>

#include <mutex>

namespace fs {

namespace {

constexpr int kBusyTimeoutMs = 5000;
constexpr const char* kSchema =
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=FULL;"
    "CREATE TABLE IF NOT EXISTS row(key TEXT PRIMARY KEY, version INTEGER NOT NULL,"
    "  value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS log(workspace INTEGER PRIMARY KEY, epoch INTEGER NOT NULL,"
    "  head INTEGER NOT NULL, hash TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS segment(workspace INTEGER NOT NULL, first INTEGER NOT NULL,"
    "  last INTEGER NOT NULL, epoch INTEGER NOT NULL, hash TEXT NOT NULL, bytes BLOB NOT NULL,"
    "  PRIMARY KEY(workspace, first)) WITHOUT ROWID;";

base::Error error_of(sqlite3* db, std::string_view doing) {
  int code = sqlite3_errcode(db);
  base::ErrorCode kind = base::ErrorCode::kIo;
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED) kind = base::ErrorCode::kBusy;
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) kind = base::ErrorCode::kCorruption;
  if (code == SQLITE_FULL) kind = base::ErrorCode::kFull;
  return base::Error(kind, std::string(doing) + ": " + sqlite3_errmsg(db));
}

// One prepared statement in use: bind in order, step, columns; resets itself.
class Statement {
 public:
  Statement(sqlite3* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  ~Statement() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::string_view text) {
    sqlite3_bind_text64(statement_, ++bound_, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    return *this;
  }
  Statement& bind_blob(std::string_view bytes) {
    sqlite3_bind_blob64(statement_, ++bound_, bytes.data(), bytes.size(), SQLITE_STATIC);
    return *this;
  }
  Statement& bind(u64 number) {
    sqlite3_bind_int64(statement_, ++bound_, static_cast<sqlite3_int64>(number));
    return *this;
  }
  // True for a row, false at the end.
  base::Result<bool> step() {
    int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return error_of(db_, "using the engine");
  }
  u64 number(int column) const {
    return static_cast<u64>(sqlite3_column_int64(statement_, column));
  }
  std::string bytes(int column) const {
    const void* at = sqlite3_column_blob(statement_, column);
    size_t length = static_cast<size_t>(sqlite3_column_bytes(statement_, column));
    return at == nullptr ? std::string() : std::string(static_cast<const char*>(at), length);
  }

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_;
  int bound_ = 0;
};

enum Query {
  kGet,
  kScan,
  kPut,
  kDelete,
  kPutLog,
  kGetLog,
  kLogs,
  kSame,
  kAppend,
  kSegments,
  kDropSegments,
  kQueries
};
constexpr const char* kSql[kQueries] = {
    "SELECT value, version FROM row WHERE key = ?",
    "SELECT key, value, version FROM row WHERE key >= ? AND key < ? ORDER BY key",
    "INSERT INTO row(key, version, value) VALUES(?, ?, ?)"
    " ON CONFLICT(key) DO UPDATE SET version = excluded.version, value = excluded.value",
    "DELETE FROM row WHERE key = ?",
    "INSERT INTO log(workspace, epoch, head, hash) VALUES(?, ?, ?, ?) ON CONFLICT(workspace)"
    " DO UPDATE SET epoch = excluded.epoch, head = excluded.head, hash = excluded.hash",
    "SELECT workspace, epoch, head, hash FROM log WHERE workspace = ?",
    "SELECT workspace, epoch, head, hash FROM log ORDER BY workspace",
    "SELECT epoch, hash FROM segment WHERE workspace = ? AND first = ?",
    "INSERT INTO segment(workspace, first, last, epoch, hash, bytes) VALUES(?, ?, ?, ?, ?, ?)",
    "SELECT first, last, epoch, hash, bytes FROM segment WHERE workspace = ? AND last >= ?"
    " ORDER BY first LIMIT ?",
    "DELETE FROM segment WHERE workspace = ? AND last < ?",
};

class SqliteEngine : public Engine {
 public:
  ~SqliteEngine() override {
    for (sqlite3_stmt* statement : statements_) sqlite3_finalize(statement);
    sqlite3_close(db_);
  }

  base::Status open(const std::string& path) {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(path.c_str(), &db_, flags, nullptr) != SQLITE_OK) {
      return error_of(db_, "opening " + path);
    }
    sqlite3_busy_timeout(db_, kBusyTimeoutMs);
    TRY(execute(kSchema));
    for (int i = 0; i < kQueries; ++i) {
      if (sqlite3_prepare_v2(db_, kSql[i], -1, &statements_[i], nullptr) != SQLITE_OK) {
        return error_of(db_, "preparing the engine");
      }
    }
    return {};
  }

  base::Result<Row> get(std::string_view key) override {
    std::lock_guard lock(mutex_);
    Row row{std::string(key), "", 0};
    Statement query = use(kGet);
    if (TRY(query.bind(key).step())) {
      row.value = query.bytes(0);
      row.version = query.number(1);
    }
    return row;
  }

  base::Result<std::vector<Row>> scan(std::string_view prefix) override {
    std::lock_guard lock(mutex_);
    std::string end = std::string(prefix) + "\xf4\x8f\xbf\xbf";  // after all text with the prefix
    std::vector<Row> rows;
    Statement query = use(kScan);
    query.bind(prefix).bind(end);
    while (TRY(query.step())) rows.push_back({query.bytes(0), query.bytes(1), query.number(2)});
    return rows;
  }

  base::Status commit(const std::vector<RowWrite>& writes) override {
    std::lock_guard lock(mutex_);
    return in_transaction([&]() -> base::Status {
      for (const RowWrite& write : writes) TRY(apply(write));
      return {};
    });
  }

  base::Status fence(u32 workspace, Epoch epoch, Seq base) override {
    std::lock_guard lock(mutex_);
    return in_transaction([&]() -> base::Status {
      LogState state = TRY(state_of(workspace));
      if (epoch < state.epoch) return fenced_out();
      state.epoch = epoch;
      if (state.head < base) {
        state.head = base;
        state.hash.clear();
      }
      return put(state);
    });
  }

  base::Status append(const LogSegment& segment) override {
    std::lock_guard lock(mutex_);
    return in_transaction([&]() -> base::Status {
      {
        Statement same = use(kSame);
        if (TRY(same.bind(u64{segment.workspace}).bind(segment.first).step()) &&
            same.number(0) == segment.epoch && same.bytes(1) == segment.hash) {
          return {};
        }
      }
      LogState state = TRY(state_of(segment.workspace));
      if (state.epoch != segment.epoch) return fenced_out();
      if (segment.first != state.head + 1) return not_next(state.head);
      Statement put_segment = use(kAppend);
      put_segment.bind(u64{segment.workspace}).bind(segment.first).bind(segment.last);
      put_segment.bind(segment.epoch).bind(segment.hash).bind_blob(segment.bytes);
      TRY(put_segment.step());
      return put({segment.workspace, segment.epoch, segment.last, segment.hash});
    });
  }

  base::Result<LogState> log(u32 workspace) override {
    std::lock_guard lock(mutex_);
    return state_of(workspace);
  }

  base::Result<std::vector<LogState>> logs() override {
    std::lock_guard lock(mutex_);
    std::vector<LogState> all;
    Statement query = use(kLogs);
    while (TRY(query.step())) all.push_back(state_in(query));
    return all;
  }

  base::Result<std::vector<LogSegment>> segments(u32 workspace, Seq from, size_t limit) override {
    std::lock_guard lock(mutex_);
    std::vector<LogSegment> result;
    Statement query = use(kSegments);
    query.bind(u64{workspace}).bind(from).bind(u64{limit});
    while (TRY(query.step())) {
      result.push_back({workspace, query.number(2), query.number(0), query.number(1),
                        query.bytes(3), query.bytes(4)});
    }
    return result;
  }

  base::Result<u64> drop_segments(u32 workspace, Seq before) override {
    std::lock_guard lock(mutex_);
    Statement drop = use(kDropSegments);
    TRY(drop.bind(u64{workspace}).bind(before).step());
    return static_cast<u64>(sqlite3_changes64(db_));
  }

 private:
  Statement use(Query query) { return Statement(db_, statements_[query]); }
  base::Status execute(const char* sql) {
    if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
    return error_of(db_, "using the engine");
  }
  template <class Body>
  base::Status in_transaction(Body body) {
    TRY(execute("BEGIN IMMEDIATE"));
    base::Status done = body();
    if (done.ok()) done = execute("COMMIT");
    if (!done.ok()) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
    return done;
  }
  static LogState state_in(const Statement& row) {
    return {static_cast<u32>(row.number(0)), row.number(1), row.number(2), row.bytes(3)};
  }
  base::Result<LogState> state_of(u32 workspace) {
    Statement query = use(kGetLog);
    if (TRY(query.bind(u64{workspace}).step())) return state_in(query);
    return LogState{workspace, 0, 0, ""};
  }
  base::Status put(const LogState& state) {
    Statement query = use(kPutLog);
    query.bind(u64{state.workspace}).bind(state.epoch).bind(state.head).bind(state.hash);
    TRY(query.step());
    return {};
  }
  base::Status apply(const RowWrite& write) {
    u64 version = 0;
    {
      Statement query = use(kGet);
      if (TRY(query.bind(write.key).step())) version = query.number(1);
    }
    if (version != write.expected) {
      return base::Error(base::ErrorCode::kConflict, write.key + " was changed by somebody else");
    }
    if (write.check_only) return {};
    Statement change = use(write.value ? kPut : kDelete);
    change.bind(write.key);
    if (write.value) change.bind(write.expected + 1).bind(*write.value);
    TRY(change.step());
    return {};
  }

  std::mutex mutex_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* statements_[kQueries] = {};
};

}  // namespace

base::Result<std::unique_ptr<Engine>> open_sqlite_engine(const std::string& path) {
  auto engine = std::make_unique<SqliteEngine>();
  TRY(engine->open(path));
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace fs
