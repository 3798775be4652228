// CHECK stops the program on a mistake of ours. It stays on in release builds; DCHECK does not.
// Never CHECK input: input gets an Error (base/result.h).
#pragma once

namespace base {
// Prints "FILE:LINE: check failed: TEXT" to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* text);
}  // namespace base

#define CHECK(condition)                        \
  (__builtin_expect(!!(condition), 1) ? (void)0 \
                                      : ::base::check_failed(__FILE__, __LINE__, #condition))

#ifdef NDEBUG
#define DCHECK(condition) ((void)sizeof(!(condition)))
#else
#define DCHECK(condition) CHECK(condition)
#endif
