// What the fuzz targets for damaged files and SQL share: a statement is run to its end or to its
// allowance of steps, and its rows are read. Single-threaded.
#pragma once

#include "db/capi/sqlite3.h"

#include <string>

namespace db_fuzz {

// Steps (of the progress handler's counting) that all statements of one input may take.
class Allowance {
 public:
  Allowance(sqlite3* db, long calls) : calls_(calls) {
    sqlite3_progress_handler(
        db, 200, [](void* self) { return --static_cast<Allowance*>(self)->calls_ < 0 ? 1 : 0; },
        this);
  }
  bool spent() const { return calls_ < 0; }

 private:
  long calls_;
};

// Runs every statement of `sql` and reads each value of at most 200 rows as text, number and blob.
// Errors are expected; what counts is that nothing is read or written where it must not be.
inline void run_all(sqlite3* db, const char* sql, const Allowance& allowance) {
  for (const char* rest = sql; rest != nullptr && *rest != 0 && !allowance.spent();) {
    sqlite3_stmt* stmt = nullptr;
    const char* tail = nullptr;
    if (sqlite3_prepare_v2(db, rest, -1, &stmt, &tail) != SQLITE_OK) {
      (void)sqlite3_errmsg(db);
      (void)sqlite3_error_offset(db);
    }
    for (int rows = 0; stmt != nullptr && rows < 200 && sqlite3_step(stmt) == SQLITE_ROW; ++rows) {
      for (int i = 0; i < sqlite3_column_count(stmt); ++i) {
        (void)sqlite3_column_name(stmt, i);
        (void)sqlite3_column_double(stmt, i);
        (void)sqlite3_column_blob(stmt, i);
        (void)sqlite3_column_text(stmt, i);
        (void)sqlite3_column_bytes16(stmt, i);
      }
    }
    sqlite3_finalize(stmt);
    if (tail == rest) break;
    rest = tail;
  }
}

}  // namespace db_fuzz
