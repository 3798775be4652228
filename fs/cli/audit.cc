#include "fs/cli/audit.h"

#include "base/clock.h"
#include "base/json.h"
#include "fs/cli/commands.h"
#include "fs/state/inode.h"
#include "fs/state/keys.h"

#include <sqlite3.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>

namespace fs::cli {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using base::Status;

std::string AuditTrail::path_of(const Place& place) const {
  std::string above = path_of(place.parent);
  return above.empty() ? "" : (above == "/" ? "/" : above + "/") + place.name;
}

std::string AuditTrail::path_of(Ino ino) const {
  // Damaged logs could name circles: a path has at most this many parts.
  constexpr int depth_max = 4096;
  std::string path;
  for (int depth = 0; ino != kRootIno; depth++) {
    auto found = places_.find(ino);
    if (found == places_.end() || depth == depth_max) return "";
    path.insert(0, "/" + found->second.name);
    ino = found->second.parent;
  }
  return path.empty() ? "/" : path;
}

Result<Event> AuditTrail::read(const RecordHeader& header, std::string_view record) {
  Event event;
  event.header = header;
  std::string gone, come;
  TRY(for_each_change(record, [&](const Change& change) {
    auto key = parse_key(change.key);
    if (!key) return false;
    if (key->kind != 'D') return true;
    Place place{key->ino, std::string(key->name)};
    if (!change.put) {
      gone = path_of(place);
      return true;
    }
    auto entry = decode_entry(change.value);
    if (!entry) return false;
    places_[entry->ino] = place;
    come = path_of(place);
    return true;
  }));
  if (header.op == RecordOp::kRename) event.old_path = gone;
  event.path = !come.empty() ? come : !gone.empty() ? gone : path_of(header.ino);
  return event;
}

namespace {

std::string utc(i64 time_ns) {
  time_t seconds = static_cast<time_t>(time_ns / 1'000'000'000);
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  size_t used = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + used, sizeof(text) - used, ".%06lldZ",
                static_cast<long long>(time_ns / 1000 % 1'000'000));
  return text;
}

void print_event(const Event& event, bool json) {
  const RecordHeader& header = event.header;
  if (json) {
    Json line = Json::object({{"seq", header.seq},
                              {"time", utc(header.time_ns)},
                              {"op", name_of(header.op)},
                              {"path", event.path},
                              {"old_path", event.old_path},
                              {"ino", header.ino},
                              {"uid", header.uid},
                              {"pid", header.pid},
                              {"session", header.session},
                              {"bytes", header.data_length}});
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf(
      "%8llu %s %-11s uid=%u pid=%u %s%s%s", static_cast<unsigned long long>(header.seq),
      utc(header.time_ns).c_str(), name_of(header.op), header.uid, header.pid,
      event.old_path.c_str(), event.old_path.empty() ? "" : " -> ",
      event.path.empty() ? ("ino " + std::to_string(header.ino)).c_str() : event.path.c_str());
  if (header.data_length > 0) std::printf(" (%u bytes)", header.data_length);
  std::printf("\n");
}

// SQLite's error as ours.
Error sql_error(sqlite3* db) {
  return Error(ErrorCode::kInvalidArgument, std::string("SQL: ") + sqlite3_errmsg(db));
}

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

Result<Statement> prepare(sqlite3* db, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    return sql_error(db);
  }
  return Statement(statement);
}

constexpr const char* kSchema =
    "CREATE TABLE fs_event(seq INTEGER PRIMARY KEY, time TEXT, time_ns INTEGER, op TEXT, path "
    "TEXT, "
    "old_path TEXT, ino INTEGER, uid INTEGER, pid INTEGER, session INTEGER, bytes INTEGER); BEGIN";

Status load_events(sqlite3* db, Store& store, const std::string& workspace) {
  if (sqlite3_exec(db, kSchema, nullptr, nullptr, nullptr) != SQLITE_OK) return sql_error(db);
  Statement insert = TRY(prepare(db, "INSERT INTO fs_event VALUES(?,?,?,?,?,?,?,?,?,?,?)"));
  AuditTrail trail;
  Status inner;
  TRY(store.log(workspace, 1, [&](const RecordHeader& header, std::string_view record) {
    auto event = trail.read(header, record);
    if (!event.ok()) {
      inner = std::move(event).error();
      return false;
    }
    sqlite3_stmt* at = insert.get();
    auto text = [&](int column, const std::string& value) {
      sqlite3_bind_text(at, column, value.c_str(), static_cast<int>(value.size()),
                        SQLITE_TRANSIENT);
    };
    sqlite3_bind_int64(at, 1, static_cast<sqlite3_int64>(header.seq));
    text(2, utc(header.time_ns));
    sqlite3_bind_int64(at, 3, header.time_ns);
    text(4, name_of(header.op));
    text(5, event->path);
    text(6, event->old_path);
    sqlite3_bind_int64(at, 7, static_cast<sqlite3_int64>(header.ino));
    sqlite3_bind_int64(at, 8, header.uid);
    sqlite3_bind_int64(at, 9, header.pid);
    sqlite3_bind_int64(at, 10, header.session);
    sqlite3_bind_int64(at, 11, header.data_length);
    int stepped = sqlite3_step(at);
    sqlite3_reset(at);
    if (stepped != SQLITE_DONE) inner = sql_error(db);
    return stepped == SQLITE_DONE;
  }));
  if (!inner.ok()) return inner;
  if (sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK) return sql_error(db);
  return {};
}

Json column_of(sqlite3_stmt* row, int i) {
  switch (sqlite3_column_type(row, i)) {
    case SQLITE_INTEGER:
      return Json(i64{sqlite3_column_int64(row, i)});
    case SQLITE_FLOAT:
      return Json(sqlite3_column_double(row, i));
    case SQLITE_NULL:
      return Json();
    default:
      return Json(std::string(reinterpret_cast<const char*>(sqlite3_column_text(row, i))));
  }
}

}  // namespace

namespace {

// Reads the log from `from` on through the trail; prints what is not before `print_from`. Returns
// the next sequence number.
Result<Seq> print_log(Store& store, const LogArguments& arguments, AuditTrail& trail, Seq from,
                      Seq print_from) {
  Status inner;
  u64 printed = 0;
  Seq next = from;
  TRY(store.log(arguments.workspace, from,
                [&](const RecordHeader& header, std::string_view record) {
                  if (header.seq < next) return true;
                  if (printed >= arguments.limit) return false;
                  auto event = trail.read(header, record);
                  if (!event.ok()) {
                    inner = std::move(event).error();
                    return false;
                  }
                  next = header.seq + 1;
                  if (header.seq < print_from) return true;
                  print_event(*event, arguments.json);
                  printed++;
                  return true;
                }));
  if (!inner.ok()) return std::move(inner).error();
  return next;
}

}  // namespace

Status log(const LogArguments& arguments) {
  auto store = TRY(Store::open(arguments.store, {}));
  AuditTrail trail;
  // Read from the start, for the names; print from where it was asked.
  TRY(print_log(*store, arguments, trail, 1, arguments.from));
  return {};
}

Status watch(const LogArguments& arguments) {
  constexpr int gather_ms = 50;  // one look for all changes of this time
  auto store = TRY(Store::open(arguments.store, {}));
  std::string folder = arguments.store + "/log";
  int inotify = ::inotify_init1(IN_CLOEXEC);
  if (inotify < 0 || ::inotify_add_watch(inotify, folder.c_str(), IN_MODIFY | IN_CREATE) < 0) {
    return base::errno_error(errno, "watching " + folder);
  }
  AuditTrail trail;
  Seq next = TRY(print_log(*store, arguments, trail, 1, ~Seq{0}));
  char events[4096];
  for (;;) {
    ssize_t got = ::read(inotify, events, sizeof(events));
    if (got < 0 && errno != EINTR) return base::errno_error(errno, "watching " + folder);
    base::system_clock().sleep_us(gather_ms * 1000);
    next = TRY(print_log(*store, arguments, trail, next, next));
    std::fflush(stdout);
  }
}

Status sql(const std::string& folder, const std::string& workspace, const std::string& query,
           bool json) {
  auto store = TRY(Store::open(folder, {}));
  sqlite3* raw = nullptr;
  if (sqlite3_open(":memory:", &raw) != SQLITE_OK) {
    return Error(ErrorCode::kInternal, "SQLite did not open a database in memory");
  }
  Database db(raw);
  TRY(load_events(db.get(), *store, workspace));
  Statement statement = TRY(prepare(db.get(), query));
  Json rows = Json::array();
  int stepped = SQLITE_DONE;
  while ((stepped = sqlite3_step(statement.get())) == SQLITE_ROW) {
    Json row = Json::object();
    std::string line;
    for (int i = 0; i < sqlite3_column_count(statement.get()); i++) {
      Json value = column_of(statement.get(), i);
      line += (i > 0 ? "|" : "") + (value.is_string() ? value.as_string()
                                    : value.is_null() ? std::string()
                                                      : value.dump());
      if (json) row.set(sqlite3_column_name(statement.get(), i), std::move(value));
    }
    if (json) {
      rows.push(std::move(row));
    } else {
      std::printf("%s\n", line.c_str());
    }
  }
  if (stepped != SQLITE_DONE) return sql_error(db.get());
  if (json) std::printf("%s\n", rows.dump_pretty().c_str());
  return {};
}

}  // namespace fs::cli
