// VFS look-ups, URI parameters of file names, file control, and calls that only have to exist.
#include "db/capi/handle.h"
#include "db/storage/btree.h"

#include <algorithm>
#include <cstring>

using namespace db::capi;

namespace {

// What programs that only look at a VFS read: the head of sqlite3_vfs.
struct VfsHead {
  int version;
  int file_bytes;
  int path_bytes_max;
  sqlite3_vfs* next;
  const char* name;
  void* app_data;
  void* methods[15];
};

VfsHead unix_vfs = {1, 120, 512, nullptr, "unix", nullptr, {}};

// SQLite's file names carry their URI parameters behind them: name\0key\0value\0...\0\0. The names
// that this library hands out have none.
const char* parameter(const char* file, const char* name) {
  if (file == nullptr || name == nullptr) return nullptr;
  const char* p = file + std::strlen(file) + 1;
  while (*p != 0) {
    bool hit = std::strcmp(p, name) == 0;
    p += std::strlen(p) + 1;
    if (hit) return p;
    p += std::strlen(p) + 1;
  }
  return nullptr;
}

}  // namespace

extern "C" {

const char sqlite3_version[] = SQLITE_VERSION;
char* sqlite3_temp_directory = nullptr;
char* sqlite3_data_directory = nullptr;

sqlite3_vfs* sqlite3_vfs_find(const char* name) {
  if (name != nullptr && std::strcmp(name, "unix") != 0) return nullptr;
  return reinterpret_cast<sqlite3_vfs*>(&unix_vfs);
}
// The engine does its own file access, so another VFS cannot take part: better said here than found
// out when a file that should have been encrypted is not. Its own one may be registered again.
int sqlite3_vfs_register(sqlite3_vfs* vfs, int) {
  if (vfs == nullptr) return SQLITE_MISUSE;
  return vfs == sqlite3_vfs_find(nullptr) ? SQLITE_OK : SQLITE_ERROR;
}
int sqlite3_vfs_unregister(sqlite3_vfs* vfs) {
  return vfs == sqlite3_vfs_find(nullptr) ? SQLITE_ERROR : SQLITE_OK;
}

int sqlite3_file_control(sqlite3* db, const char* schema, int op, void* argument) {
  constexpr int kPersistWal = 10;
  constexpr int kPowersafeOverwrite = 13;
  constexpr int kDataVersion = 35;
  constexpr int kReserveBytes = 38;
  if (!is_live(db)) return SQLITE_MISUSE;
  Entered entered(db);
  db::Store* store = db->connection->store(schema == nullptr ? "main" : schema);
  if (store == nullptr) return SQLITE_ERROR;
  switch (op) {
    case kDataVersion:
      *static_cast<unsigned*>(argument) = store->data_version();
      return SQLITE_OK;
    case kReserveBytes:
      *static_cast<int*>(argument) = static_cast<int>(store->page_bytes() - store->usable_bytes());
      return SQLITE_OK;
    case kPersistWal:
    case kPowersafeOverwrite:
      *static_cast<int*>(argument) = 0;
      return SQLITE_OK;
    default:
      return SQLITE_NOTFOUND;
  }
}

const char* sqlite3_uri_parameter(const char* file, const char* name) {
  return parameter(file, name);
}
int sqlite3_uri_boolean(const char* file, const char* name, int otherwise) {
  const char* value = parameter(file, name);
  if (value == nullptr) return otherwise;
  for (const char* yes : {"1", "yes", "true", "on"}) {
    if (sqlite3_stricmp(value, yes) == 0) return 1;
  }
  for (const char* no : {"0", "no", "false", "off"}) {
    if (sqlite3_stricmp(value, no) == 0) return 0;
  }
  return otherwise;
}
sqlite3_int64 sqlite3_uri_int64(const char* file, const char* name, sqlite3_int64 otherwise) {
  const char* value = parameter(file, name);
  if (value == nullptr) return otherwise;
  db::ParsedNumber number = db::parse_number(value);
  return number.whole && number.type == db::Type::kInteger ? number.integer : otherwise;
}
const char* sqlite3_uri_key(const char* file, int index) {
  if (file == nullptr || index < 0) return nullptr;
  const char* p = file + std::strlen(file) + 1;
  for (; *p != 0; --index) {
    if (index == 0) return p;
    p += std::strlen(p) + 1;
    p += std::strlen(p) + 1;
  }
  return nullptr;
}

const char* sqlite3_filename_database(const char* file) {
  return file;
}
const char* sqlite3_filename_journal(const char*) {
  return nullptr;
}
const char* sqlite3_filename_wal(const char*) {
  return nullptr;
}
void* sqlite3_database_file_object(const char*) {
  return nullptr;
}

const char* sqlite3_create_filename(const char* database, const char*, const char*, int pairs,
                                    const char** parameters) {
  std::string name(database);
  name += '\0';
  for (int i = 0; i < pairs * 2; ++i) {
    name += parameters[i];
    name += '\0';
  }
  name.append(3, '\0');
  auto* copy = static_cast<char*>(sqlite3_malloc64(name.size()));
  if (copy != nullptr) std::copy(name.begin(), name.end(), copy);
  return copy;
}
void sqlite3_free_filename(const char* file) {
  sqlite3_free(const_cast<char*>(file));
}

// ---------------------------------------------------------------- calls that only exist

int sqlite3_global_recover(void) {
  return SQLITE_OK;
}
void sqlite3_thread_cleanup(void) {}
int sqlite3_memory_alarm(void (*)(void*, sqlite3_int64, int), void*, sqlite3_int64) {
  return SQLITE_OK;
}
// No preupdate hook: the session extension, its user, is not here either.
void* sqlite3_preupdate_hook(sqlite3*,
                             void (*)(void*, sqlite3*, int, char const*, char const*, sqlite3_int64,
                                      sqlite3_int64),
                             void*) {
  return nullptr;
}
int sqlite3_preupdate_old(sqlite3*, int, sqlite3_value**) {
  return SQLITE_MISUSE;
}
int sqlite3_preupdate_new(sqlite3*, int, sqlite3_value**) {
  return SQLITE_MISUSE;
}
int sqlite3_preupdate_count(sqlite3*) {
  return 0;
}
int sqlite3_preupdate_depth(sqlite3*) {
  return 0;
}
int sqlite3_preupdate_blobwrite(sqlite3*) {
  return -1;
}

}  // extern "C"
