// The session extension (changesets) is not there yet. The stock sqlite3 shell links these names
// and does not start without them, so they exist: no session can be created, and the rest, which
// need one, have nothing to do.
#include "db/capi/sqlite3.h"

struct sqlite3_session;

extern "C" {

SQLITE_API int sqlite3session_create(sqlite3*, const char*, sqlite3_session** out) {
  *out = nullptr;
  return SQLITE_ERROR;
}
SQLITE_API void sqlite3session_delete(sqlite3_session*) {}
SQLITE_API int sqlite3session_attach(sqlite3_session*, const char*) {
  return SQLITE_MISUSE;
}
SQLITE_API int sqlite3session_enable(sqlite3_session*, int) {
  return 0;
}
SQLITE_API int sqlite3session_indirect(sqlite3_session*, int) {
  return 0;
}
SQLITE_API int sqlite3session_isempty(sqlite3_session*) {
  return 1;
}
SQLITE_API void sqlite3session_table_filter(sqlite3_session*, int (*)(void*, const char*), void*) {}
SQLITE_API int sqlite3session_changeset(sqlite3_session*, int*, void**) {
  return SQLITE_MISUSE;
}
SQLITE_API int sqlite3session_patchset(sqlite3_session*, int*, void**) {
  return SQLITE_MISUSE;
}

}  // extern "C"
