// UTF-8 and the few Unicode classes that pre-tokenizers ask for. Invalid bytes decode to U+FFFD one
// at a time, so that every byte of the input belongs to exactly one code point.
// Thread-safe: pure functions.
#pragma once

#include "base/types.h"

#include <string>
#include <string_view>
#include <vector>

namespace llm {

struct CodePoint {
  u32 value;   // U+FFFD for a byte that starts no valid sequence
  u32 offset;  // where it starts, in bytes
  u32 length;  // in bytes
};

// The code point at `at`. REQUIRES: at < text.size().
CodePoint decode_utf8(std::string_view text, size_t at);
std::vector<CodePoint> decode_utf8(std::string_view text);
void append_utf8(u32 code_point, std::string* out);
// How many bytes at the end of `text` are the start of a sequence that more bytes could complete.
size_t incomplete_utf8_tail(std::string_view text);
// `text` with every byte that is not valid UTF-8 replaced by U+FFFD.
std::string sanitize_utf8(std::string_view text);

bool is_letter(u32 code_point);      // \p{L}
bool is_number(u32 code_point);      // \p{N}
bool is_whitespace(u32 code_point);  // \s

}  // namespace llm
