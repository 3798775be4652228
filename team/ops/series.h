// How a served product did over time: one point for each stretch of time, with latencies, answers,
// errors, memory and processor time. The number of points is bounded: when it is reached,
// neighbours are joined and the stretches double, so a week is as cheap as a minute.
// Thread-safe: plain values.
#pragma once

#include "base/json.h"
#include "team/ops/histogram.h"

#include <vector>

namespace team {

struct SeriesPoint {
  i64 at_ms = 0;      // when the stretch began, since the first one
  i64 rss_bytes = 0;  // the most seen
  i64 cpu_us = 0;     // spent in it
  i64 answers = 0;    // good ones
  i64 errors = 0;     // wrong or missing answers
  i64 restarts = 0;
  LatencyHistogram latency;
};

class Series {
 public:
  explicit Series(i64 stretch_ms = 250, size_t points_max = 120)
      : stretch_ms_(stretch_ms), points_max_(points_max) {}
  // The point of that moment; times do not go back.
  SeriesPoint& at(i64 ms);
  const std::vector<SeriesPoint>& points() const { return points_; }
  SeriesPoint total() const;
  i64 stretch_ms() const { return stretch_ms_; }
  base::Json to_json() const;
  static Series from_json(const base::Json& json);

 private:
  void join_neighbours();
  i64 stretch_ms_;
  size_t points_max_;
  std::vector<SeriesPoint> points_;
};

}  // namespace team
