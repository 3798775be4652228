#include "llm/engine/text_stream.h"

#include "llm/tokenizer/unicode.h"

#include <algorithm>

namespace llm {
namespace {

// Appends valid text; broken sequences become U+FFFD. Plain text takes no copy of its own.
void append_valid(std::string_view text, std::string* out) {
  const bool ascii =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<u8>(c) < 0x80; });
  if (ascii) {
    out->append(text);
  } else {
    out->append(sanitize_utf8(text));
  }
}

}  // namespace

TextStream::TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, "");
  pending_.reserve(256);
}

size_t TextStream::held_for_stops() const {
  size_t held = 0;
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - 1, pending_.size()); n > held; --n) {
      if (std::string_view(pending_).substr(pending_.size() - n) ==
          std::string_view(stop).substr(0, n)) {
        held = n;
      }
    }
  }
  return held;
}

bool TextStream::append(std::string_view bytes, std::string* out) {
  pending_ += bytes;
  size_t stop_at = std::string::npos;
  for (const std::string& stop : stops_) stop_at = std::min(stop_at, pending_.find(stop));
  if (stop_at != std::string::npos) {
    append_valid(std::string_view(pending_).substr(0, stop_at), out);
    pending_.clear();
    return true;
  }
  const size_t held = std::max(held_for_stops(), incomplete_utf8_tail(pending_));
  const size_t ready = pending_.size() - held;
  append_valid(std::string_view(pending_).substr(0, ready), out);
  pending_.erase(0, ready);
  return false;
}

void TextStream::finish(std::string* out) {
  append_valid(pending_, out);
  pending_.clear();
}

}  // namespace llm
