// Latencies in fixed buckets, sixteen to each doubling of microseconds, so that any quantile is
// within 6 % of the truth from one microsecond to a day, in constant memory, and histograms of
// different times add up exactly. Thread-safe: plain value.
#pragma once

#include "base/json.h"
#include "base/types.h"

#include <array>

namespace team {

class LatencyHistogram {
 public:
  void add(i64 us);
  void add(const LatencyHistogram& other);
  i64 count() const { return count_; }
  i64 max_us() const { return max_us_; }
  // The upper end of the bucket that holds the quantile, at most the largest value seen; 0 when
  // empty. REQUIRES: 0 <= q <= 1.
  i64 quantile_us(f64 q) const;
  base::Json to_json() const;  // only buckets that hold something
  static LatencyHistogram from_json(const base::Json& json);

  static constexpr size_t kSub = 16;
  static constexpr size_t kBuckets = kSub * 34;
  static size_t bucket_of(i64 us);
  static i64 upper_end(size_t bucket);  // the largest value that falls into it

 private:
  std::array<i64, kBuckets> buckets_{};
  i64 count_ = 0;
  i64 max_us_ = 0;
};

}  // namespace team
