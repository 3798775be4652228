// How the files of this folder add their functions to the registry, and what they share.
// Thread-compatible.
#pragma once

#include "db/functions/function.h"
#include "db/value/utf16.h"

#include <span>
#include <string>
#include <string_view>

namespace db {

void add_core_functions(FunctionRegistry& registry);  // core.cc: types, numbers, min, max, random
void add_text_functions(FunctionRegistry& registry);  // text.cc
void add_like_functions(FunctionRegistry& registry);  // like.cc
void add_math_functions(FunctionRegistry& registry);  // math.cc
void add_date_functions(FunctionRegistry& registry);  // date.cc
void add_json_functions(FunctionRegistry& registry);  // json_functions.cc
void add_aggregate_functions(FunctionRegistry& registry);  // aggregate.cc
void add_window_functions(FunctionRegistry& registry);     // window.cc

inline constexpr size_t kValueBytesMax = 1000000000;
inline constexpr u8 kJsonSubtype = 'J';

// The bytes of a value as text; numbers are written into the object itself. NULL is "".
class TextOf {
 public:
  explicit TextOf(const Value& value) {
    if (value.has_bytes()) [[likely]]
      view_ = value.bytes();
    else
      write_number(value);
  }
  std::string_view view() const { return view_; }
  operator std::string_view() const { return view_; }

 private:
  void write_number(const Value& value);
  char buffer_[40];
  std::string_view view_;
};

// The value after numeric affinity: text that is wholly a number becomes one.
Value numeric_of(const Value& value);

inline constexpr u32 kPure =
    function_flag::kDeterministic | function_flag::kInnocuous | function_flag::kBuiltIn;

inline void add_scalar(FunctionRegistry& registry, const char* name, int arg_count, ScalarCall call,
                       u32 flags = kPure, const void* user_data = nullptr) {
  Function function;
  function.name = name;
  function.arg_count = arg_count;
  function.flags = flags;
  function.scalar = call;
  function.user_data = const_cast<void*>(user_data);
  registry.add(std::move(function));
}

// Moves past one character without looking at its value.
inline void skip_utf8(std::string_view text, size_t& at) {
  u8 c = static_cast<u8>(text[at++]);
  if (c < 0xc0) return;
  while (at < text.size() && (static_cast<u8>(text[at]) & 0xc0) == 0x80) ++at;
}

void too_big(FunctionContext& context);
std::string quote_value(const Value& value);

}  // namespace db
