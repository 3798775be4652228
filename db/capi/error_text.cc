// SQLite's sentence for each result code: clients compare them.
#include "db/capi/handle.h"

namespace db::capi {

const char* text_of_code(int code) {
  if (code == rc::kAbortRollback) return "abort due to ROLLBACK";
  switch (code) {
    case SQLITE_ROW:
      return "another row available";
    case SQLITE_DONE:
      return "no more rows available";
    default:
      break;
  }
  switch (code & 0xff) {
    case SQLITE_OK:
      return "not an error";
    case SQLITE_ERROR:
      return "SQL logic error";
    case SQLITE_PERM:
      return "access permission denied";
    case SQLITE_ABORT:
      return "query aborted";
    case SQLITE_BUSY:
      return "database is locked";
    case SQLITE_LOCKED:
      return "database table is locked";
    case SQLITE_NOMEM:
      return "out of memory";
    case SQLITE_READONLY:
      return "attempt to write a readonly database";
    case SQLITE_INTERRUPT:
      return "interrupted";
    case SQLITE_IOERR:
      return "disk I/O error";
    case SQLITE_CORRUPT:
      return "database disk image is malformed";
    case SQLITE_NOTFOUND:
      return "unknown operation";
    case SQLITE_FULL:
      return "database or disk is full";
    case SQLITE_CANTOPEN:
      return "unable to open database file";
    case SQLITE_PROTOCOL:
      return "locking protocol";
    case SQLITE_SCHEMA:
      return "database schema has changed";
    case SQLITE_TOOBIG:
      return "string or blob too big";
    case SQLITE_CONSTRAINT:
      return "constraint failed";
    case SQLITE_MISMATCH:
      return "datatype mismatch";
    case SQLITE_MISUSE:
      return "bad parameter or other API misuse";
    case SQLITE_AUTH:
      return "authorization denied";
    case SQLITE_RANGE:
      return "column index out of range";
    case SQLITE_NOTADB:
      return "file is not a database";
    case SQLITE_NOTICE:
      return "notification message";
    case SQLITE_WARNING:
      return "warning message";
    default:
      return "unknown error";
  }
}

}  // namespace db::capi
