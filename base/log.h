// Structured log lines on stderr: `12:04:05.123 warn  pager: checksum mismatch page=7`.
// For programs' own diagnostics, not for their output. Thread-safe.
//
//   log_warn("pager", "checksum mismatch", {{"page", 7}});
#pragma once

#include "base/types.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace base {

enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };

struct LogField {
  std::string_view key;
  std::string value;
  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(v) {}
  LogField(std::string_view k, i64 v) : key(k), value(std::to_string(v)) {}
  LogField(std::string_view k, u64 v) : key(k), value(std::to_string(v)) {}
  LogField(std::string_view k, int v) : key(k), value(std::to_string(v)) {}
  LogField(std::string_view k, f64 v) : key(k), value(std::to_string(v)) {}
};
using LogFields = std::initializer_list<LogField>;

void set_log_level(LogLevel level);
LogLevel log_level();

void log(LogLevel level, std::string_view where, std::string_view what, LogFields fields = {});
inline void log_debug(std::string_view where, std::string_view what, LogFields fields = {}) {
  log(LogLevel::kDebug, where, what, fields);
}
inline void log_info(std::string_view where, std::string_view what, LogFields fields = {}) {
  log(LogLevel::kInfo, where, what, fields);
}
inline void log_warn(std::string_view where, std::string_view what, LogFields fields = {}) {
  log(LogLevel::kWarn, where, what, fields);
}
inline void log_error(std::string_view where, std::string_view what, LogFields fields = {}) {
  log(LogLevel::kError, where, what, fields);
}

}  // namespace base
