#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace base {

void check_failed(const char* file, int line, const char* text) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, text);
  std::abort();
}

}  // namespace base
