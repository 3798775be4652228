// Dates as SQLite computes them: a Julian day in milliseconds, split into year, month, day, hour,
// minute and second when asked, over the proleptic Gregorian calendar from year -4713 to 9999.
// Thread-compatible.
#pragma once

#include "base/types.h"

#include <string_view>

namespace db {

inline constexpr i64 kDayMs = 86400000;
inline constexpr i64 kUnixEpochJulianMs = 210866760000000;  // 1970-01-01

class DateTime {
 public:
  i64 julian_ms = 0;
  int year = 0, month = 0, day = 0, hour = 0, minute = 0;
  int zone_minutes = 0;
  f64 second = 0;  // or the raw number that was given, while is_raw
  bool has_julian = false, has_date = false, has_time = false;
  bool is_raw = false, is_error = false, subsecond = false, is_utc = false, is_local = false;
  int floor_days = 0;  // how far `day` lies past the end of its month

  // "now", a date, a time or a number. False: not understood.
  bool parse(std::string_view text);
  void set_number(f64 value);
  void set_now();
  // `first`: it directly follows the time value.
  bool apply_modifier(std::string_view text, bool first);

  void compute_julian();
  void compute_date();
  void compute_time();
  void compute_all() {
    compute_date();
    compute_time();
  }
  void clear_parts() {
    has_date = has_time = false;
    zone_minutes = 0;
  }
  bool in_range() const { return julian_ms >= 0 && julian_ms <= 464269060799999; }
  void normalise_month();
  void compute_floor();
  int days_after_january_1() const;
  int days_after_monday() const { return static_cast<int>((julian_ms + kDayMs / 2) / kDayMs % 7); }
  int days_after_sunday() const {
    return static_cast<int>((julian_ms + kDayMs * 3 / 2) / kDayMs % 7);
  }

 private:
  bool parse_date(std::string_view text);
  bool parse_time(std::string_view text);
  bool parse_zone(std::string_view text);
  bool apply_shift(std::string_view text);
  bool shift_by_date(std::string_view text, size_t year_digits, std::string_view& time);
  bool shift_by_time(std::string_view text, bool negative);
  bool shift_by_units(f64 amount, std::string_view unit);
  bool start_of(std::string_view unit);
  bool to_weekday(std::string_view number);
  bool to_local();
  bool to_utc();
};

}  // namespace db
