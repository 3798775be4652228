// UTF-16 text: databases may store it, and the C API takes and gives it. Inside the engine text is
// always UTF-8; what is stored is converted on its way in and out of records (value/record.h).
//
// Half surrogate pairs read as U+FFFD. Thread-safe.
#pragma once

#include "db/value/value.h"

#include <string>
#include <string_view>

namespace db {

// The code point at `at`, which moves behind it; U+FFFD for what is no character.
u32 decode_utf8(std::string_view text, size_t& at);
void append_utf8(std::string& out, u32 code_point);

std::string utf16_to_utf8(std::string_view bytes, Encoding encoding);
// As bytes in that order.
std::string utf8_to_utf16(std::string_view text, Encoding encoding);

// BINARY in a database of that encoding: the order of the bytes as they are stored, which for
// UTF-16 is another one than the order of UTF-8.
const Collation* binary_collation(Encoding encoding);

}  // namespace db
