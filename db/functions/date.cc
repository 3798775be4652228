// date(), time(), datetime(), julianday(), unixepoch(), strftime(), timediff() and the CURRENT_
// words.
#include "db/functions/builtins.h"
#include "db/functions/date_time.h"

#include <cmath>
#include <cstdio>

namespace db {
namespace {

using Args = std::span<Value>;

// The time value and its modifiers; false gives NULL.
bool read_date(Args args, DateTime& date) {
  if (args.empty()) {
    date.set_now();
    return true;
  }
  if (args[0].is_number()) {
    date.set_number(args[0].to_real());
  } else if (args[0].is_null() || !date.parse(TextOf(args[0]))) {
    return false;
  }
  for (size_t i = 1; i < args.size(); ++i) {
    if (args[i].is_null() || !date.apply_modifier(TextOf(args[i]), i == 1)) return false;
  }
  date.compute_julian();
  if (date.is_error || !date.in_range()) return false;
  if (args.size() == 1 && date.has_date && date.day > 28) date.has_date = false;  // 02-30 is 03-02
  return true;
}

template <class... Numbers>
std::string print(const char* pattern, Numbers... numbers) {
  char buffer[80];
  int size = std::snprintf(buffer, sizeof buffer, pattern, numbers...);
  return std::string(buffer, static_cast<size_t>(size));
}

std::string date_text(const DateTime& date) {
  return print("%s%04d-%02d-%02d", date.year < 0 ? "-" : "", std::abs(date.year), date.month,
               date.day);
}

std::string time_text(const DateTime& date) {
  if (!date.subsecond)
    return print("%02d:%02d:%02d", date.hour, date.minute, static_cast<int>(date.second));
  int ms = static_cast<int>(1000.0 * date.second + 0.5);
  return print("%02d:%02d:%02d.%03d", date.hour, date.minute, ms / 1000, ms % 1000);
}

void date_call(FunctionContext& context, Args args) {
  DateTime date;
  if (!read_date(args, date)) return;
  date.compute_date();
  context.result = Value::text(date_text(date));
}

void time_call(FunctionContext& context, Args args) {
  DateTime date;
  if (!read_date(args, date)) return;
  date.compute_time();
  context.result = Value::text(time_text(date));
}

void datetime_call(FunctionContext& context, Args args) {
  DateTime date;
  if (!read_date(args, date)) return;
  date.compute_all();
  context.result = Value::text(date_text(date) + " " + time_text(date));
}

f64 julian_day(const DateTime& date) {
  return static_cast<f64>(date.julian_ms) / static_cast<f64>(kDayMs);
}

void julianday_call(FunctionContext& context, Args args) {
  DateTime date;
  if (!read_date(args, date)) return;
  context.result.set_real(julian_day(date));
}

i64 unix_seconds(const DateTime& date) {
  return date.julian_ms / 1000 - kUnixEpochJulianMs / 1000;
}

void unixepoch_call(FunctionContext& context, Args args) {
  DateTime date;
  if (!read_date(args, date)) return;
  if (date.subsecond) {
    context.result.set_real(static_cast<f64>(date.julian_ms - kUnixEpochJulianMs) / 1000.0);
  } else {
    context.result.set_integer(unix_seconds(date));
  }
}

// The Thursday of the same ISO week: its year and week are the ISO ones.
DateTime iso_thursday(const DateTime& date) {
  DateTime thursday = date;
  thursday.julian_ms += (3 - date.days_after_monday()) * kDayMs;
  thursday.has_date = false;
  thursday.compute_date();
  return thursday;
}

// False for a letter that SQLite does not know.
bool append_field(std::string& out, char letter,
                  const DateTime& d) {  // tidy: long-function, one arm a letter
  int half = d.hour > 12 ? d.hour - 12 : d.hour == 0 ? 12 : d.hour;
  switch (letter) {
    case 'd':
      out += print("%02d", d.day);
      break;
    case 'e':
      out += print("%2d", d.day);
      break;
    case 'f':
      out += print("%06.3f", d.second > 59.999 ? 59.999 : d.second);
      break;
    case 'F':
      out += print("%04d-%02d-%02d", d.year, d.month, d.day);
      break;
    case 'G':
      out += print("%04d", iso_thursday(d).year);
      break;
    case 'g':
      out += print("%02d", iso_thursday(d).year % 100);
      break;
    case 'H':
      out += print("%02d", d.hour);
      break;
    case 'k':
      out += print("%2d", d.hour);
      break;
    case 'I':
      out += print("%02d", half);
      break;
    case 'l':
      out += print("%2d", half);
      break;
    case 'j':
      out += print("%03d", d.days_after_january_1() + 1);
      break;
    case 'J':
      out += print("%.16g", julian_day(d));
      break;
    case 'm':
      out += print("%02d", d.month);
      break;
    case 'M':
      out += print("%02d", d.minute);
      break;
    case 'p':
      out += d.hour >= 12 ? "PM" : "AM";
      break;
    case 'P':
      out += d.hour >= 12 ? "pm" : "am";
      break;
    case 'R':
      out += print("%02d:%02d", d.hour, d.minute);
      break;
    case 's':
      if (d.subsecond) {
        out += print("%.3f", static_cast<f64>(d.julian_ms - kUnixEpochJulianMs) / 1000.0);
      } else {
        out += std::to_string(unix_seconds(d));
      }
      break;
    case 'S':
      out += print("%02d", static_cast<int>(d.second));
      break;
    case 'T':
      out += print("%02d:%02d:%02d", d.hour, d.minute, static_cast<int>(d.second));
      break;
    case 'u':
      out += std::to_string(d.days_after_monday() + 1);
      break;
    case 'w':
      out += std::to_string(d.days_after_sunday());
      break;
    case 'U':
      out += print("%02d", (d.days_after_january_1() - d.days_after_sunday() + 7) / 7);
      break;
    case 'W':
      out += print("%02d", (d.days_after_january_1() - d.days_after_monday() + 7) / 7);
      break;
    case 'V':
      out += print("%02d", iso_thursday(d).days_after_january_1() / 7 + 1);
      break;
    case 'Y':
      out += print("%04d", d.year);
      break;
    case '%':
      out += '%';
      break;
    default:
      return false;
  }
  return true;
}

void strftime_call(FunctionContext& context, Args args) {
  if (args.empty() || args[0].is_null()) return;
  DateTime date;
  if (!read_date(args.subspan(1), date)) return;
  date.compute_all();
  TextOf holder(args[0]);
  std::string_view pattern = holder.view().substr(0, holder.view().find('\0'));
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    if (++i >= pattern.size() || !append_field(out, pattern[i], date)) return;
  }
  context.result = Value::text(out);
}

// How far `to` is from `from` in years, months, days and time of day.
void timediff_call(FunctionContext& context, Args args) {
  DateTime to;
  DateTime from;
  if (!read_date(args.subspan(0, 1), to) || !read_date(args.subspan(1, 1), from)) return;
  to.compute_all();
  from.compute_all();
  bool forward = to.julian_ms >= from.julian_ms;
  int step = forward ? 1 : -1;
  auto move_from = [&](int year, int month) {
    from.year = year;
    from.month = month;
    from.has_julian = false;
    from.compute_julian();
  };
  int years = step * (to.year - from.year);
  if (years != 0) move_from(to.year, from.month);
  int months = step * (to.month - from.month);
  if (months < 0) {
    --years;
    months += 12;
  }
  if (months != 0) move_from(from.year, to.month);
  while (forward ? to.julian_ms < from.julian_ms : to.julian_ms > from.julian_ms) {
    if (--months < 0) {
      months = 11;
      --years;
    }
    int month = from.month - step;
    int year = from.year;
    if (month < 1 || month > 12) {
      year -= step;
      month += step * 12;
    }
    move_from(year, month);
  }
  DateTime rest;
  constexpr i64 kYearZero = 148699540800000;  // 0000-01-01
  rest.julian_ms = step * (to.julian_ms - from.julian_ms) + kYearZero;
  rest.has_julian = true;
  rest.compute_all();
  context.result =
      Value::text(print("%c%04d-%02d-%02d %02d:%02d:%06.3f", forward ? '+' : '-', years, months,
                        rest.day - 1, rest.hour, rest.minute, rest.second));
}

}  // namespace

void add_date_functions(FunctionRegistry& registry) {
  using namespace function_flag;
  constexpr u32 kFlags = kInnocuous | kBuiltIn | kSlowChange;
  add_scalar(registry, "date", -1, date_call, kFlags);
  add_scalar(registry, "time", -1, time_call, kFlags);
  add_scalar(registry, "datetime", -1, datetime_call, kFlags);
  add_scalar(registry, "julianday", -1, julianday_call, kFlags);
  add_scalar(registry, "unixepoch", -1, unixepoch_call, kFlags);
  add_scalar(registry, "strftime", -1, strftime_call, kFlags);
  add_scalar(registry, "timediff", 2, timediff_call, kFlags);
  add_scalar(registry, "current_date", 0, date_call, kFlags);
  add_scalar(registry, "current_time", 0, time_call, kFlags);
  add_scalar(registry, "current_timestamp", 0, datetime_call, kFlags);
}

}  // namespace db
