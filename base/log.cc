#include "base/log.h"

#include "base/clock.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <ctime>

namespace base {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info ";
    case LogLevel::kWarn:
      return "warn ";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      break;
  }
  return "";
}

bool needs_quotes(std::string_view value) {
  return value.empty() || value.find_first_of(" \t\n\"=") != std::string_view::npos;
}

void append_value(std::string& line, std::string_view value) {
  if (!needs_quotes(value)) {
    line += value;
    return;
  }
  line += '"';
  for (char c : value) {
    if (c == '"' || c == '\\') line += '\\';
    if (c == '\n') {
      line += "\\n";
    } else {
      line += c;
    }
  }
  line += '"';
}

}  // namespace

void set_log_level(LogLevel level) {
  g_level = level;
}
LogLevel log_level() {
  return g_level;
}

void log(LogLevel level, std::string_view where, std::string_view what, LogFields fields) {
  if (level < g_level.load(std::memory_order_relaxed)) return;
  const i64 now_us = system_clock().wall_us();
  const time_t seconds = now_us / 1'000'000;
  tm parts{};
  gmtime_r(&seconds, &parts);
  char stamp[32];
  std::snprintf(stamp, sizeof stamp, "%02d:%02d:%02d.%03d ", parts.tm_hour, parts.tm_min,
                parts.tm_sec, static_cast<int>(now_us / 1'000 % 1'000));
  std::string line = stamp;
  line += name_of(level);
  line += ' ';
  line += where;
  line += ": ";
  line += what;
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    append_value(line, field.value);
  }
  line += '\n';
  // One write, so that lines of several threads and processes do not mix.
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace base
