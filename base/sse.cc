#include "base/http_client.h"

namespace base {

void SseParser::feed(std::string_view piece, const std::function<void(const Event&)>& sink) {
  for (char c : piece) {
    if (after_cr_ && c == '\n') {  // the second half of a CRLF
      after_cr_ = false;
      continue;
    }
    after_cr_ = c == '\r';
    if (c == '\r' || c == '\n') {
      end_line(sink);
    } else {
      line_ += c;
    }
  }
}

void SseParser::end_line(const std::function<void(const Event&)>& sink) {
  if (line_.empty()) {
    if (has_data_) sink(event_);
    event_ = {};
    has_data_ = false;
    return;
  }
  std::string_view line = line_;
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  } else if (field == "event") {
    event_.event = value;
  } else if (field == "id") {
    event_.id = value;
  }
  line_.clear();
}

}  // namespace base
