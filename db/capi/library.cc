// The library as a whole: version, configuration, keywords, text comparison, sqlite3_complete().
#include "base/clock.h"
#include "db/capi/handle.h"
#include "db/functions/like.h"
#include "db/functions/version.h"

#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstring>

const char* sqlite3_libversion() {
  return db::kSqliteVersion;
}
const char* sqlite3_sourceid() {
  return db::kSqliteSourceId;
}
int sqlite3_libversion_number() {
  return db::kSqliteVersionNumber;
}
int sqlite3_threadsafe() {
  return 1;
}
int sqlite3_compileoption_used(const char* name) {
  return name != nullptr && db::is_compile_option(name) ? 1 : 0;
}
const char* sqlite3_compileoption_get(int index) {
  const auto count = static_cast<int>(db::kCompileOptions.size());
  return index < 0 || index >= count ? nullptr
                                     : db::kCompileOptions[static_cast<size_t>(index)].data();
}

namespace {

std::atomic<bool> g_started{false};
void (*g_log)(void* context, int code, const char* text) = nullptr;
void* g_log_context = nullptr;

}  // namespace

void db::capi::log(int code, const char* text) {
  if (g_log != nullptr) g_log(g_log_context, code, text);
}

int sqlite3_initialize() {
  g_started = true;
  return SQLITE_OK;
}
int sqlite3_shutdown() {
  g_started = false;
  return SQLITE_OK;
}
int sqlite3_os_init() {
  return SQLITE_OK;
}
int sqlite3_os_end() {
  return SQLITE_OK;
}
int sqlite3_enable_shared_cache(int) {
  return SQLITE_OK;
}

// What only tunes is accepted; what would replace a part (allocator, mutexes, page cache) cannot be
// had and says so. The library is always serialized, which serves every threading mode.
int sqlite3_config(int option, ...) {
  constexpr int kSingleThread = 1, kSerialized = 3, kMemStatus = 9, kLookaside = 13, kLog = 16,
                kUri = 17, kCoveringIndexScan = 20, kMmapSize = 22, kPmaSize = 25,
                kRowIdInView = 30;
  if (g_started) return SQLITE_MISUSE;  // only before the library starts
  if (option == kLog) {
    va_list arguments;
    va_start(arguments, option);
    g_log = va_arg(arguments, void (*)(void*, int, const char*));
    g_log_context = va_arg(arguments, void*);
    va_end(arguments);
    return SQLITE_OK;
  }
  bool tunes = (option >= kSingleThread && option <= kSerialized) || option == kMemStatus ||
               option == kLookaside || option == kUri || option == kCoveringIndexScan ||
               option == kMmapSize || (option >= kPmaSize && option <= kRowIdInView);
  return tunes ? SQLITE_OK : SQLITE_ERROR;
}

// Of SQLite's test controls, those that answer something; the others change nothing here.
int sqlite3_test_control(int operation, ...) {
  constexpr int kAssert = 12, kAlways = 13, kByteOrder = 22;
  constexpr int kLittleEndian = 123410;  // as SQLite encodes it
  va_list arguments;
  va_start(arguments, operation);
  int answer = SQLITE_OK;
  if (operation == kAssert || operation == kAlways) answer = va_arg(arguments, int);
  if (operation == kByteOrder) answer = kLittleEndian;
  va_end(arguments);
  return answer;
}

int sqlite3_sleep(int milliseconds) {
  if (milliseconds < 0) return 0;
  base::system_clock().sleep_us(i64{milliseconds} * 1000);
  return milliseconds;
}

int sqlite3_status64(int counter, sqlite3_int64* current, sqlite3_int64* highest, int reset) {
  constexpr int kMemoryUsed = 0, kCounters = 10;
  if (current == nullptr || highest == nullptr) return SQLITE_MISUSE;
  if (counter < 0 || counter >= kCounters) return SQLITE_MISUSE;
  *current = counter == kMemoryUsed ? sqlite3_memory_used() : 0;
  *highest = counter == kMemoryUsed ? sqlite3_memory_highwater(reset) : 0;
  return SQLITE_OK;
}

int sqlite3_status(int counter, int* current, int* highest, int reset) {
  if (current == nullptr || highest == nullptr) return SQLITE_MISUSE;
  sqlite3_int64 now = 0, most = 0;
  const int code = sqlite3_status64(counter, &now, &most, reset);
  *current = static_cast<int>(now);
  *highest = static_cast<int>(most);
  return code;
}

// --- Text --------------------------------------------------------------------------------------

static int lower(unsigned char c) {
  return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

int sqlite3_strnicmp(const char* a, const char* b, int bytes) {
  if (a == nullptr) return b == nullptr ? 0 : -1;
  if (b == nullptr) return 1;
  for (int i = 0; i < bytes; ++i) {
    const int x = lower(static_cast<unsigned char>(a[i])),
              y = lower(static_cast<unsigned char>(b[i]));
    if (x != y || x == 0) return x - y;
  }
  return 0;
}

int sqlite3_stricmp(const char* a, const char* b) {
  return sqlite3_strnicmp(a, b, INT32_MAX);
}

int sqlite3_strglob(const char* pattern, const char* text) {
  if (pattern == nullptr || text == nullptr) return pattern == text ? 0 : 1;
  return db::glob_match(pattern, text) ? 0 : 1;
}

int sqlite3_strlike(const char* pattern, const char* text, unsigned int escape) {
  if (pattern == nullptr || text == nullptr) return pattern == text ? 0 : 1;
  return db::like_match(pattern, text, escape, false) ? 0 : 1;
}
