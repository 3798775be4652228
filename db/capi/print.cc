// sqlite3_mprintf() and its kin over the engine's own printf, and sqlite3_str.
#include "db/capi/handle.h"
#include "db/functions/builtins.h"
#include "db/functions/format.h"

#include <cstring>

struct sqlite3_str {
  std::string text;
  int error = SQLITE_OK;
};

namespace {

class VaListArgs : public db::FormatArgs {
 public:
  explicit VaListArgs(va_list args) { va_copy(args_, args); }
  ~VaListArgs() override { va_end(args_); }

  i64 next_integer(int longs, bool is_signed) override {
    if (longs == 2) return va_arg(args_, long long);
    if (longs == 1) return va_arg(args_, long);
    const int value = va_arg(args_, int);
    return is_signed ? i64{value} : i64{static_cast<unsigned>(value)};
  }
  f64 next_real() override { return va_arg(args_, double); }
  bool next_text(std::string_view& text, i64 precision, bool owned) override {
    const char* bytes = va_arg(args_, const char*);
    if (owned) owned_ = const_cast<char*>(bytes);
    if (bytes == nullptr) return false;
    // With a precision the text need not end in a zero.
    text = {bytes,
            precision >= 0 ? ::strnlen(bytes, static_cast<size_t>(precision)) : std::strlen(bytes)};
    return true;
  }
  void next_text_done() override {
    sqlite3_free(owned_);
    owned_ = nullptr;
  }
  std::string next_char() override {
    std::string text;
    db::append_utf8(text, static_cast<u32>(va_arg(args_, int)));
    return text;
  }
  u64 next_pointer() override { return reinterpret_cast<u64>(va_arg(args_, void*)); }
  void next_count(int written) override { *va_arg(args_, int*) = written; }
  bool is_sql() const override { return false; }

 private:
  va_list args_;
  char* owned_ = nullptr;
};

std::string formatted(const char* pattern, va_list args) {
  std::string out;
  VaListArgs wrapped(args);
  db::format(out, pattern, wrapped);
  return out;
}

}  // namespace

char* sqlite3_vmprintf(const char* pattern, va_list args) {
  return pattern == nullptr ? nullptr : db::capi::copy_for_caller(formatted(pattern, args));
}

char* sqlite3_mprintf(const char* pattern, ...) {
  va_list args;
  va_start(args, pattern);
  char* text = sqlite3_vmprintf(pattern, args);
  va_end(args);
  return text;
}

char* sqlite3_vsnprintf(int size, char* out, const char* pattern, va_list args) {
  if (size <= 0 || out == nullptr || pattern == nullptr) return out;
  const std::string text = formatted(pattern, args);
  const size_t count = std::min(text.size(), static_cast<size_t>(size) - 1);
  std::memcpy(out, text.data(), count);
  out[count] = 0;
  return out;
}

char* sqlite3_snprintf(int size, char* out, const char* pattern, ...) {
  va_list args;
  va_start(args, pattern);
  sqlite3_vsnprintf(size, out, pattern, args);
  va_end(args);
  return out;
}

void sqlite3_log(int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char* text = sqlite3_vmprintf(format, arguments);
  va_end(arguments);
  db::capi::log(code, text == nullptr ? "" : text);
  sqlite3_free(text);
}

sqlite3_str* sqlite3_str_new(sqlite3*) {
  return new sqlite3_str;
}

char* sqlite3_str_finish(sqlite3_str* text) {
  char* out =
      text == nullptr || text->text.empty() ? nullptr : db::capi::copy_for_caller(text->text);
  delete text;
  return out;
}

void sqlite3_str_free(sqlite3_str* text) {
  delete text;
}

void sqlite3_str_vappendf(sqlite3_str* text, const char* pattern, va_list args) {
  if (text != nullptr) text->text += formatted(pattern, args);
}

void sqlite3_str_appendf(sqlite3_str* text, const char* pattern, ...) {
  va_list args;
  va_start(args, pattern);
  sqlite3_str_vappendf(text, pattern, args);
  va_end(args);
}

void sqlite3_str_append(sqlite3_str* text, const char* bytes, int count) {
  if (text != nullptr && count > 0) text->text.append(bytes, static_cast<size_t>(count));
}

void sqlite3_str_appendall(sqlite3_str* text, const char* more) {
  if (text != nullptr) text->text += more;
}

void sqlite3_str_appendchar(sqlite3_str* text, int count, char letter) {
  if (text != nullptr && count > 0) text->text.append(static_cast<size_t>(count), letter);
}

void sqlite3_str_reset(sqlite3_str* text) {
  if (text != nullptr) text->text.clear();
}

void sqlite3_str_truncate(sqlite3_str* text, int bytes) {
  if (text != nullptr && bytes >= 0 && static_cast<size_t>(bytes) < text->text.size()) {
    text->text.resize(static_cast<size_t>(bytes));
  }
}

int sqlite3_str_errcode(sqlite3_str* text) {
  return text == nullptr ? SQLITE_NOMEM : text->error;
}
int sqlite3_str_length(sqlite3_str* text) {
  return text == nullptr ? 0 : static_cast<int>(text->text.size());
}
char* sqlite3_str_value(sqlite3_str* text) {
  return text == nullptr || text->text.empty() ? nullptr : text->text.data();
}
