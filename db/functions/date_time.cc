#include "db/functions/date_time.h"

#include "base/clock.h"
#include "db/value/value.h"

#include <time.h>

#include <cmath>
#include <string>

namespace db {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// Exactly `count` digits at the front of `text`, within [low, high]; cuts them off.
bool take_digits(std::string_view& text, size_t count, int low, int high, int& value) {
  if (text.size() < count) return false;
  value = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!is_digit(text[i])) return false;
    value = value * 10 + (text[i] - '0');
  }
  if (value < low || value > high) return false;
  text.remove_prefix(count);
  return true;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

void skip_spaces(std::string_view& text) {
  while (!text.empty() && is_space(text[0])) text.remove_prefix(1);
}

bool whole_number(std::string_view text, f64& value) {
  ParsedNumber number = parse_number(text);
  if (number.type == Type::kNull || !number.whole) return false;
  value = number.real;
  return true;
}

// Days since 1970-01-01 in the proleptic Gregorian calendar.
i64 days_from_civil(i64 year, int month, int day) {
  year -= month <= 2;
  i64 era = (year >= 0 ? year : year - 399) / 400;
  i64 year_of_era = year - era * 400;
  i64 day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  i64 day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

constexpr i64 kUnixEpochDay = 2440588;  // the Julian day that begins at noon of 1970-01-01

}  // namespace

void DateTime::compute_julian() {
  if (has_julian) return;
  int y = has_date ? year : 2000;
  int m = has_date ? month : 1;
  int d = has_date ? day : 1;
  if (y < -4713 || y > 9999 || is_raw) {
    *this = DateTime();
    is_error = true;
    return;
  }
  julian_ms = (days_from_civil(y, m, 1) + d - 1 + kUnixEpochDay) * kDayMs - kDayMs / 2;
  has_julian = true;
  if (!has_time) return;
  julian_ms += hour * 3600000 + minute * 60000 + static_cast<i64>(second * 1000 + 0.5);
  if (zone_minutes != 0) {
    julian_ms -= zone_minutes * 60000;
    has_date = has_time = false;
    zone_minutes = 0;
    is_utc = true;
    is_local = false;
  }
}

void DateTime::compute_date() {
  if (has_date) return;
  if (!has_julian) {
    year = 2000;
    month = 1;
    day = 1;
  } else if (!in_range()) {
    *this = DateTime();
    is_error = true;
    return;
  } else {
    i64 days = (julian_ms + kDayMs / 2) / kDayMs - kUnixEpochDay + 719468;
    i64 era = (days >= 0 ? days : days - 146096) / 146097;
    i64 day_of_era = days - era * 146097;
    i64 year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    i64 day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    i64 shifted = (5 * day_of_year + 2) / 153;
    day = static_cast<int>(day_of_year - (153 * shifted + 2) / 5 + 1);
    month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
    year = static_cast<int>(year_of_era + era * 400 + (month <= 2 ? 1 : 0));
  }
  has_date = true;
}

void DateTime::compute_time() {
  if (has_time) return;
  compute_julian();
  auto of_day = static_cast<int>((julian_ms + kDayMs / 2) % kDayMs);
  second = (of_day % 60000) / 1000.0;
  minute = of_day / 60000 % 60;
  hour = of_day / 3600000;
  is_raw = false;
  has_time = true;
}

int DateTime::days_after_january_1() const {
  return static_cast<int>(days_from_civil(year, month, 1) + day - 1 - days_from_civil(year, 1, 1));
}

void DateTime::compute_floor() {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int days = kDays[month - 1];
  if (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)) days = 29;
  floor_days = day > days ? day - days : 0;
}

void DateTime::normalise_month() {
  int years = month > 0 ? (month - 1) / 12 : (month - 12) / 12;
  year += years;
  month -= years * 12;
}

// ---------------------------------------------------------------- reading

void DateTime::set_now() {
  julian_ms = base::system_clock().wall_us() / 1000 + kUnixEpochJulianMs;
  has_julian = true;
  is_utc = true;
  is_local = false;
  clear_parts();
}

void DateTime::set_number(f64 value) {
  second = value;
  is_raw = true;
  if (value >= 0 && value < 5373484.5) {
    julian_ms = static_cast<i64>(value * static_cast<f64>(kDayMs) + 0.5);
    has_julian = true;
  }
}

bool DateTime::parse(std::string_view text) {
  text = text.substr(0, text.find('\0'));
  if (parse_date(text) || parse_time(text)) return true;
  f64 number = 0;
  if (equal_nocase(text, "now")) {
    set_now();
    return true;
  }
  if (whole_number(text, number)) {
    set_number(number);
    return true;
  }
  if (equal_nocase(text, "subsec") || equal_nocase(text, "subsecond")) {
    subsecond = true;
    set_now();
    return true;
  }
  return false;
}

// [-]YYYY-MM-DD, then nothing or blanks or a T and a time.
bool DateTime::parse_date(std::string_view text) {
  bool negative = take(text, '-');
  int y = 0;
  int m = 0;
  int d = 0;
  if (!take_digits(text, 4, 0, 9999, y) || !take(text, '-') || !take_digits(text, 2, 1, 12, m) ||
      !take(text, '-') || !take_digits(text, 2, 1, 31, d)) {
    return false;
  }
  while (!text.empty() && (is_space(text[0]) || text[0] == 'T')) text.remove_prefix(1);
  if (!text.empty() && !parse_time(text)) return false;
  if (text.empty()) has_time = false;
  has_julian = false;
  has_date = true;
  year = negative ? -y : y;
  month = m;
  day = d;
  compute_floor();
  if (zone_minutes != 0) compute_julian();
  return true;
}

// HH:MM[:SS[.FFF]][zone]
bool DateTime::parse_time(std::string_view text) {
  int h = 0;
  int m = 0;
  int s = 0;
  f64 fraction = 0;
  if (!take_digits(text, 2, 0, 24, h) || !take(text, ':') || !take_digits(text, 2, 0, 59, m)) {
    return false;
  }
  if (take(text, ':')) {
    if (!take_digits(text, 2, 0, 59, s)) return false;
    if (text.size() > 1 && text[0] == '.' && is_digit(text[1])) {
      f64 scale = 1;
      text.remove_prefix(1);
      while (!text.empty() && is_digit(text[0])) {
        fraction = fraction * 10 + (text[0] - '0');
        scale *= 10;
        text.remove_prefix(1);
      }
      fraction /= scale;
      if (fraction > 0.999) fraction = 0.999;  // so that rounding to milliseconds cannot carry
    }
  }
  has_julian = false;
  is_raw = false;
  has_time = true;
  hour = h;
  minute = m;
  second = s + fraction;
  return parse_zone(text);
}

bool DateTime::parse_zone(std::string_view text) {
  skip_spaces(text);
  zone_minutes = 0;
  if (text.empty()) return true;
  char first = text[0];
  text.remove_prefix(1);
  if (first == 'Z' || first == 'z') {
    is_local = false;
    is_utc = true;
  } else {
    int hours = 0;
    int minutes = 0;
    if ((first != '+' && first != '-') || !take_digits(text, 2, 0, 14, hours) || !take(text, ':') ||
        !take_digits(text, 2, 0, 59, minutes)) {
      return false;
    }
    zone_minutes = (first == '-' ? -1 : 1) * (hours * 60 + minutes);
    if (zone_minutes == 0) {
      is_local = false;
      is_utc = true;
    }
  }
  skip_spaces(text);
  return text.empty();
}

// ---------------------------------------------------------------- modifiers

bool DateTime::apply_modifier(std::string_view text, bool first) {
  text = text.substr(0, text.find('\0'));
  std::string lower = lower_ascii(text);
  if (lower == "auto") {
    if (!first) return false;
    if (is_raw && !has_julian && second >= -210866760000.0 && second <= 253402300799.0) {
      julian_ms = static_cast<i64>(second * 1000.0 + static_cast<f64>(kUnixEpochJulianMs) + 0.5);
      clear_parts();
      has_julian = true;
    }
    is_raw = false;
    return true;
  }
  if (lower == "unixepoch") {
    if (!first || !is_raw) return false;
    f64 ms = second * 1000.0 + static_cast<f64>(kUnixEpochJulianMs);
    if (!(ms >= 0.0 && ms < 464269060800000.0)) return false;
    clear_parts();
    julian_ms = static_cast<i64>(ms + 0.5);
    has_julian = true;
    is_raw = false;
    return true;
  }
  if (lower == "julianday") {
    if (!first || !has_julian || !is_raw) return false;
    is_raw = false;
    return true;
  }
  if (lower == "ceiling" || lower == "floor") {
    compute_julian();
    if (lower == "floor") julian_ms -= floor_days * kDayMs;
    floor_days = 0;
    clear_parts();
    return true;
  }
  if (lower == "localtime") return is_local || to_local();
  if (lower == "utc") return is_utc || to_utc();
  if (lower == "subsec" || lower == "subsecond") {
    subsecond = true;
    return true;
  }
  if (lower.starts_with("weekday ")) return to_weekday(std::string_view(lower).substr(8));
  if (lower.starts_with("start of ")) return start_of(std::string_view(lower).substr(9));
  if (!lower.empty() && (lower[0] == '+' || lower[0] == '-' || is_digit(lower[0]))) {
    return apply_shift(lower);
  }
  return false;
}

bool DateTime::to_weekday(std::string_view text) {
  f64 number = 0;
  if (!whole_number(text, number) || number < 0 || number >= 7 || number != std::floor(number)) {
    return false;
  }
  compute_all();
  zone_minutes = 0;
  has_julian = false;
  compute_julian();
  i64 wanted = static_cast<i64>(number);
  i64 today = days_after_sunday();
  if (today > wanted) today -= 7;
  julian_ms += (wanted - today) * kDayMs;
  clear_parts();
  return true;
}

bool DateTime::start_of(std::string_view unit) {
  if (!has_julian && !has_date && !has_time) return false;
  compute_date();
  has_time = true;
  hour = minute = 0;
  second = 0;
  is_raw = false;
  zone_minutes = 0;
  has_julian = false;
  if (unit == "month") {
    day = 1;
  } else if (unit == "year") {
    month = 1;
    day = 1;
  } else if (unit != "day") {
    return false;
  }
  return true;
}

bool DateTime::to_local() {
  compute_julian();
  time_t seconds = julian_ms / 1000 - kUnixEpochJulianMs / 1000;
  int year_shift = 0;
  // The C library's rules are only trusted from 1970 to 2037; other years borrow a like one.
  if (julian_ms < 210866760000000 || julian_ms > 213014145600000) {
    DateTime like = *this;
    like.compute_all();
    int borrowed = 2000 + like.year % 4;
    year_shift = like.year - borrowed;
    like.year = borrowed;
    like.has_julian = false;
    like.compute_julian();
    seconds = like.julian_ms / 1000 - kUnixEpochJulianMs / 1000;
  }
  tm local{};
  if (localtime_r(&seconds, &local) == nullptr) return false;
  year = local.tm_year + 1900 + year_shift;
  month = local.tm_mon + 1;
  day = local.tm_mday;
  hour = local.tm_hour;
  minute = local.tm_min;
  second = local.tm_sec + static_cast<f64>(julian_ms % 1000) * 0.001;
  has_date = has_time = true;
  has_julian = false;
  is_raw = false;
  zone_minutes = 0;
  is_error = false;
  is_local = true;
  is_utc = false;
  return true;
}

bool DateTime::to_utc() {
  compute_julian();
  i64 local_ms = julian_ms;
  i64 guess = local_ms;
  for (int round = 0; round < 4; ++round) {
    DateTime tried;
    tried.julian_ms = guess;
    tried.has_julian = true;
    if (!tried.to_local()) return false;
    tried.compute_julian();
    i64 error = tried.julian_ms - local_ms;
    if (error == 0) break;
    guess -= error;
  }
  *this = DateTime();
  julian_ms = guess;
  has_julian = true;
  is_utc = true;
  return true;
}

// +-N unit | +-HH:MM[:SS] | +-YYYY-MM-DD [HH:MM[:SS]]
bool DateTime::apply_shift(std::string_view text) {
  bool negative = text[0] == '-';
  size_t n = 1;
  for (; n < text.size(); ++n) {
    if (text[n] == ':' || is_space(text[n])) break;
    if (text[n] == '-' && (n == 5 || n == 6)) {
      bool digits = true;
      for (size_t i = 1; i < n; ++i) digits = digits && is_digit(text[i]);
      if (digits) break;
    }
  }
  f64 amount = 0;
  if (!whole_number(text.substr(0, n), amount)) return false;
  if (n < text.size() && text[n] == '-') {
    std::string_view time;
    if (!shift_by_date(text, n - 1, time)) return false;
    return time.empty() || shift_by_time(time, negative);
  }
  if (n < text.size() && text[n] == ':') {
    std::string_view time = text;
    if (!is_digit(time[0])) time.remove_prefix(1);
    return shift_by_time(time, negative);
  }
  std::string_view unit = text.substr(n);
  skip_spaces(unit);
  bool done = shift_by_units(amount, unit);
  clear_parts();
  return done;
}

bool DateTime::shift_by_date(std::string_view text, size_t year_digits, std::string_view& time) {
  if (text[0] != '+' && text[0] != '-') return false;
  bool negative = text[0] == '-';
  text.remove_prefix(1);
  int y = 0;
  int m = 0;
  int d = 0;
  if (!take_digits(text, year_digits, 0, 14712, y) || !take(text, '-') ||
      !take_digits(text, 2, 0, 11, m) || !take(text, '-') || !take_digits(text, 2, 0, 30, d)) {
    return false;
  }
  compute_all();
  has_julian = false;
  year += negative ? -y : y;
  month += negative ? -m : m;
  normalise_month();
  compute_floor();
  compute_julian();
  clear_parts();
  julian_ms += (negative ? -d : d) * kDayMs;
  if (text.empty()) return true;
  if (!is_space(text[0])) return false;
  time = text.substr(1);
  return time.size() >= 5;
}

bool DateTime::shift_by_time(std::string_view text, bool negative) {
  DateTime shift;
  if (!shift.parse_time(text)) return false;
  shift.compute_julian();
  i64 ms = (shift.julian_ms - kDayMs / 2) % kDayMs;
  compute_julian();
  clear_parts();
  julian_ms += negative ? -ms : ms;
  return true;
}

bool DateTime::shift_by_units(f64 amount, std::string_view unit) {
  struct Unit {
    std::string_view name;
    f64 limit;
    f64 seconds;
  };
  static constexpr Unit kUnits[] = {
      {"second", 4.6427e+14, 1.0}, {"minute", 7.7379e+12, 60.0},   {"hour", 1.2897e+11, 3600.0},
      {"day", 5373485.0, 86400.0}, {"month", 176546.0, 2592000.0}, {"year", 14713.0, 31536000.0},
  };
  if (unit.ends_with('s')) unit.remove_suffix(1);
  compute_julian();
  floor_days = 0;
  for (const Unit& one : kUnits) {
    if (unit != one.name || amount <= -one.limit || amount >= one.limit) continue;
    f64 rounder = amount < 0 ? -0.5 : 0.5;
    if (one.name == "month" || one.name == "year") {
      compute_all();
      int whole = static_cast<int>(amount);
      (one.name == "month" ? month : year) += whole;
      normalise_month();
      compute_floor();
      has_julian = false;
      amount -= whole;
    }
    compute_julian();
    julian_ms += static_cast<i64>(amount * 1000.0 * one.seconds + rounder);
    return true;
  }
  return false;
}

}  // namespace db
