// The contract of src/resp.h: bytes come in any pieces, commands come out whole and in order.
#include <cstdio>
#include <string>
#include <vector>

#include "resp.h"

namespace {

using Commands = std::vector<kv::Command>;

// Feeds `bytes` in pieces of `size`; false when the stream was called broken.
bool parse(const std::string& bytes, std::size_t size, Commands& out) {
  kv::RequestParser parser;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    parser.feed(std::string_view(bytes).substr(at, size));
    for (kv::Command command;;) {
      auto outcome = parser.next(command);
      if (outcome == kv::RequestParser::Outcome::kBroken) return false;
      if (outcome == kv::RequestParser::Outcome::kNeedMore) break;
      out.push_back(command);
    }
  }
  return true;
}

void check(const char* id, const std::string& bytes, std::size_t size, const Commands& want) {
  Commands got;
  bool good = parse(bytes, size, got) && got == want;
  std::printf(good ? "ok %s\n" : "not ok %s wrong commands\n", id);
}

}  // namespace

int main() {
  const std::string set = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhello\r\n";
  const kv::Command wanted = {"SET", "k", "hello"};
  check("whole", set, set.size(), {wanted});
  check("bytes", set + set, 1, {wanted, wanted});
  check("two-at-once", set + set, 2 * set.size(), {wanted, wanted});
  check("inline", "GET  k\r\nPING\r\n", 3, {{"GET", "k"}, {"PING"}});
  check("null-bytes", std::string("*2\r\n$4\r\nECHO\r\n$3\r\n\0\r\n\r\n", 24), 2,
        {{"ECHO", std::string("\0\r\n", 3)}});
  Commands none;
  bool broken = !parse("*1\r\n$x\r\n", 8, none);
  std::printf(broken ? "ok broken\n" : "not ok broken a bad length was accepted\n");
}
