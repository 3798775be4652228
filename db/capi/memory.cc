// Memory with its size in front of it, so that sqlite3_msize() and the counters work; and mutexes.
#include "base/random.h"
#include "db/capi/handle.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kHeaderBytes = 16;  // keeps the caller's part aligned for any type
constexpr sqlite3_uint64 kBytesMax = 0x7fffff00;

std::atomic<i64> g_used{0};
std::atomic<i64> g_highest{0};
std::atomic<i64> g_soft_limit{0};
std::atomic<i64> g_hard_limit{0};

sqlite3_uint64& size_in_front(void* memory) {
  return *reinterpret_cast<sqlite3_uint64*>(static_cast<char*>(memory) - kHeaderBytes);
}

void count(i64 bytes) {
  const i64 used = g_used.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  i64 highest = g_highest.load(std::memory_order_relaxed);
  while (used > highest && !g_highest.compare_exchange_weak(highest, used)) {
  }
}

}  // namespace

void* sqlite3_malloc64(sqlite3_uint64 bytes) {
  const i64 limit = g_hard_limit.load(std::memory_order_relaxed);
  if (bytes == 0 || bytes > kBytesMax) return nullptr;
  if (limit > 0 && g_used.load() + static_cast<i64>(bytes) > limit) return nullptr;
  char* block = static_cast<char*>(std::malloc(bytes + kHeaderBytes));
  if (block == nullptr) return nullptr;
  void* memory = block + kHeaderBytes;
  size_in_front(memory) = bytes;
  count(static_cast<i64>(bytes));
  return memory;
}

void* sqlite3_malloc(int bytes) {
  return bytes <= 0 ? nullptr : sqlite3_malloc64(static_cast<sqlite3_uint64>(bytes));
}

void* sqlite3_realloc64(void* memory, sqlite3_uint64 bytes) {
  if (memory == nullptr) return sqlite3_malloc64(bytes);
  if (bytes == 0) {
    sqlite3_free(memory);
    return nullptr;
  }
  if (bytes > kBytesMax) return nullptr;
  const sqlite3_uint64 before = size_in_front(memory);
  char* block = static_cast<char*>(
      std::realloc(static_cast<char*>(memory) - kHeaderBytes, bytes + kHeaderBytes));
  if (block == nullptr) return nullptr;
  memory = block + kHeaderBytes;
  size_in_front(memory) = bytes;
  count(static_cast<i64>(bytes) - static_cast<i64>(before));
  return memory;
}

void* sqlite3_realloc(void* memory, int bytes) {
  return sqlite3_realloc64(memory, bytes < 0 ? 0 : static_cast<sqlite3_uint64>(bytes));
}

void sqlite3_free(void* memory) {
  if (memory == nullptr) return;
  count(-static_cast<i64>(size_in_front(memory)));
  std::free(static_cast<char*>(memory) - kHeaderBytes);
}

sqlite3_uint64 sqlite3_msize(void* memory) {
  return memory == nullptr ? 0 : size_in_front(memory);
}

sqlite3_int64 sqlite3_memory_used() {
  return g_used;
}

sqlite3_int64 sqlite3_memory_highwater(int reset) {
  const i64 highest = g_highest;
  if (reset != 0) g_highest = g_used.load();
  return highest;
}

sqlite3_int64 sqlite3_soft_heap_limit64(sqlite3_int64 bytes) {
  return bytes < 0 ? g_soft_limit.load() : g_soft_limit.exchange(bytes);
}

sqlite3_int64 sqlite3_hard_heap_limit64(sqlite3_int64 bytes) {
  return bytes < 0 ? g_hard_limit.load() : g_hard_limit.exchange(bytes);
}

void sqlite3_soft_heap_limit(int bytes) {
  sqlite3_soft_heap_limit64(bytes < 0 ? 0 : bytes);
}
int sqlite3_release_memory(int) {
  return 0;
}

void sqlite3_randomness(int bytes, void* out) {
  if (bytes <= 0 || out == nullptr) return;
  base::secure_random_bytes({static_cast<u8*>(out), static_cast<size_t>(bytes)});
}

// --- Mutexes: every kind is recursive, which serves the callers that ask for a plain one too.

sqlite3_mutex* sqlite3_mutex_alloc(int kind) {
  static sqlite3_mutex fixed[16];
  if (kind >= 2 && kind < 18) return &fixed[kind - 2];  // the library's own, one each
  return new sqlite3_mutex;
}

void sqlite3_mutex_free(sqlite3_mutex* mutex) {
  delete mutex;
}

void sqlite3_mutex_enter(sqlite3_mutex* mutex) {
  if (mutex != nullptr) mutex->lock.lock();
}

int sqlite3_mutex_try(sqlite3_mutex* mutex) {
  return mutex == nullptr || mutex->lock.try_lock() ? SQLITE_OK : SQLITE_BUSY;
}

void sqlite3_mutex_leave(sqlite3_mutex* mutex) {
  if (mutex != nullptr) mutex->lock.unlock();
}

int sqlite3_mutex_held(sqlite3_mutex*) {
  return 1;
}
int sqlite3_mutex_notheld(sqlite3_mutex*) {
  return 1;
}
