// Turns tokens into text that may be shown: holds back bytes of an unfinished UTF-8 sequence and
// text that may become a stop string, and ends at the first stop string. Single-threaded.
#pragma once

#include "base/types.h"

#include <string>
#include <string_view>
#include <vector>

namespace llm {

class TextStream {
 public:
  explicit TextStream(std::vector<std::string> stops);
  // Adds a token's bytes; what may be shown goes to the end of *out. True: a stop string was met.
  bool append(std::string_view bytes, std::string* out);
  // The rest, with invalid bytes replaced.
  void finish(std::string* out);

 private:
  size_t held_for_stops() const;
  std::vector<std::string> stops_;
  std::string pending_;
};

}  // namespace llm
