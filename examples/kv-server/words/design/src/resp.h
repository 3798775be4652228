// RESP2, the wire protocol of Redis: requests in, replies out. No I/O here.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kv {

using Command = std::vector<std::string>;  // name and arguments, any bytes

// Splits a byte stream into commands. Bytes may come in any pieces.
class RequestParser {
 public:
  enum class Outcome { kCommand, kNeedMore, kBroken };
  void feed(std::string_view bytes);
  // kCommand: `command` holds the next one. kBroken: the stream cannot be understood any more;
  // error() says why, and the connection must be closed after the error reply.
  Outcome next(Command& command);
  const std::string& error() const { return error_; }

 private:
  std::string buffer_;
  std::size_t at_ = 0;
  std::string error_;
};

void reply_simple(std::string& out, std::string_view text);       // +OK
void reply_error(std::string& out, std::string_view text);        // -ERR ...
void reply_integer(std::string& out, long long value);            // :1
void reply_bulk(std::string& out, std::string_view bytes);        // $3 abc
void reply_null(std::string& out);                                // $-1
void reply_empty_array(std::string& out);                         // *0

}  // namespace kv
