#include "team/ledger/database.h"

#include "base/check.h"

#include <sqlite3.h>

#include <utility>

namespace team {

using base::Error;
using base::ErrorCode;

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      next_(other.next_) {}

Statement::~Statement() {
  sqlite3_finalize(statement_);
}

Statement& Statement::bind(i64 value) {
  CHECK(sqlite3_bind_int64(statement_, next_++, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  CHECK(sqlite3_bind_text(statement_, next_++, text.data(), static_cast<int>(text.size()),
                          SQLITE_TRANSIENT) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind_blob(std::string_view bytes) {
  CHECK(sqlite3_bind_blob(statement_, next_++, bytes.data(), static_cast<int>(bytes.size()),
                          SQLITE_TRANSIENT) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind_null() {
  CHECK(sqlite3_bind_null(statement_, next_++) == SQLITE_OK);
  return *this;
}

base::Result<bool> Statement::step() {
  int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_.error(code);
}

base::Status Statement::run() {
  while (TRY(step())) {
  }
  return {};
}

i64 Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

std::string Statement::text(int column) const {
  const unsigned char* data = sqlite3_column_text(statement_, column);
  return data == nullptr
             ? std::string()
             : std::string(reinterpret_cast<const char*>(data),
                           static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}

std::string Statement::blob(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  return data == nullptr
             ? std::string()
             : std::string(static_cast<const char*>(data),
                           static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}

base::Result<std::unique_ptr<Database>> Database::open(const std::string& path, Mode mode) {
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (mode == Mode::kWrite) flags = SQLITE_OPEN_READWRITE;
  if (mode == Mode::kRead) flags = SQLITE_OPEN_READONLY;
  sqlite3* handle = nullptr;
  int code = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<Database> database(new Database(path, handle));
  if (code != SQLITE_OK) return database->error(code);
  sqlite3_busy_timeout(handle, 5'000);
  return database;
}

Database::~Database() {
  sqlite3_close(handle_);
}

base::Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  int code =
      sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return error(code);
  return Statement(*this, statement);
}

base::Status Database::run(std::string_view sql) {
  std::string text(sql);
  int code = sqlite3_exec(handle_, text.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return error(code);
  return {};
}

i64 Database::changes() const {
  return sqlite3_changes(handle_);
}

Error Database::error(int code) const {
  std::string what = handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_FULL:
      return Error(ErrorCode::kFull, "no space left for " + path_ + "; free some and run it again");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Error(ErrorCode::kCorruption, path_ + " is damaged (" + what +
                                               "); restore it from a copy, or start a new run");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error(ErrorCode::kBusy, path_ + " is in use by another fleet; wait for it or stop it");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Error(ErrorCode::kPermission, path_ + " may not be written; check its permissions");
    case SQLITE_CANTOPEN:
      return Error(ErrorCode::kNotFound, path_ + " cannot be opened; is that a run folder?");
    case SQLITE_IOERR:
      return Error(ErrorCode::kIo, path_ + " cannot be read or written (" + what +
                                       "); is the disk full? Mend it and resume the run");
    default:
      return Error(ErrorCode::kIo, path_ + ": " + what);
  }
}

}  // namespace team
