// Any bytes as SQL: the parser must answer with a tree or an error, whose offsets lie in the text.
#include "base/check.h"
#include "db/sql/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view sql(reinterpret_cast<const char*>(data), size);
  db::sql::Arena arena;
  db::sql::Parsed parsed = db::sql::parse(sql, arena);
  CHECK(parsed.failed || parsed.tail <= size);
  CHECK(parsed.failed == !parsed.error.empty());
  CHECK(parsed.error_offset < 0 || static_cast<size_t>(parsed.error_offset) <= size);
  return 0;
}
