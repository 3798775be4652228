#include "resp.h"

#include <cstdlib>

namespace kv {
namespace {

constexpr long kArgumentsMax = 1024 * 1024;
constexpr long kBulkBytesMax = 64L * 1024 * 1024;
constexpr std::size_t kLineBytesMax = 64 * 1024;

// The number after the type byte, or -1 with `good` false.
long number_of(std::string_view digits, bool& good) {
  std::string text(digits);
  char* end = nullptr;
  long value = std::strtol(text.c_str(), &end, 10);
  good = !text.empty() && *end == '\0';
  return value;
}

}  // namespace

void RequestParser::feed(std::string_view bytes) {
  if (at_ > 0) {
    buffer_.erase(0, at_);
    at_ = 0;
  }
  buffer_.append(bytes);
}

RequestParser::Outcome RequestParser::next(Command& command) {
  command.clear();
  std::size_t at = at_;
  auto line = [&](std::string_view& out) {
    std::size_t end = buffer_.find("\r\n", at);
    if (end == std::string::npos) return false;
    out = std::string_view(buffer_).substr(at, end - at);
    at = end + 2;
    return true;
  };
  auto broken = [&](const char* why) {
    error_ = why;
    return Outcome::kBroken;
  };
  std::string_view head;
  if (!line(head)) {
    return buffer_.size() - at_ > kLineBytesMax ? broken("too big inline request")
                                                : Outcome::kNeedMore;
  }
  if (head.empty() || head[0] != '*') {
    // An inline command: words separated by blanks.
    std::size_t from = 0;
    while (from < head.size()) {
      std::size_t start = head.find_first_not_of(' ', from);
      if (start == std::string_view::npos) break;
      std::size_t end = head.find(' ', start);
      if (end == std::string_view::npos) end = head.size();
      command.emplace_back(head.substr(start, end - start));
      from = end;
    }
    at_ = at;
    return Outcome::kCommand;
  }
  bool good = false;
  long count = number_of(head.substr(1), good);
  if (!good || count > kArgumentsMax) return broken("invalid multibulk length");
  for (long i = 0; i < count; ++i) {
    std::string_view size_line;
    if (!line(size_line)) return Outcome::kNeedMore;
    if (size_line.empty() || size_line[0] != '$') return broken("expected '$'");
    long size = number_of(size_line.substr(1), good);
    if (!good || size > kBulkBytesMax) return broken("invalid bulk length");
    if (static_cast<long>(buffer_.size() - at) < size + 2) return Outcome::kNeedMore;
    command.emplace_back(buffer_.data() + at, size);
    at += size;
    if (buffer_.compare(at, 2, "\r\n") != 0) return broken("expected CRLF after bulk");
    at += 2;
  }
  at_ = at;
  return Outcome::kCommand;
}

void reply_simple(std::string& out, std::string_view text) {
  out.append("+").append(text).append("\r\n");
}
void reply_error(std::string& out, std::string_view text) {
  out.append("-").append(text).append("\r\n");
}
void reply_integer(std::string& out, long long value) {
  out.append(":").append(std::to_string(value)).append("\r\n");
}
void reply_bulk(std::string& out, std::string_view bytes) {
  out.append("$").append(std::to_string(bytes.size())).append("\r\n").append(bytes).append("\r\n");
}
void reply_null(std::string& out) { out.append("$-1\r\n"); }
void reply_empty_array(std::string& out) { out.append("*0\r\n"); }

}  // namespace kv
