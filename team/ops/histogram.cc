#include "team/ops/histogram.h"

#include "base/check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

namespace team {

using base::Json;

// Values below 16 have a bucket each; above, the four bits behind the highest one choose it.
size_t LatencyHistogram::bucket_of(i64 us) {
  const auto value = static_cast<u64>(std::max<i64>(0, us));
  if (value < kSub) return static_cast<size_t>(value);
  const auto shift = static_cast<size_t>(std::bit_width(value)) - 5;
  const size_t bucket = (shift + 1) * kSub + static_cast<size_t>(value >> shift) - kSub;
  return std::min(bucket, kBuckets - 1);
}

i64 LatencyHistogram::upper_end(size_t bucket) {
  if (bucket < kSub) return static_cast<i64>(bucket);
  const size_t shift = bucket / kSub - 1;
  const u64 low = static_cast<u64>(bucket % kSub + kSub) << shift;
  return static_cast<i64>(low + (u64{1} << shift) - 1);
}

void LatencyHistogram::add(i64 us) {
  ++buckets_[bucket_of(us)];
  ++count_;
  max_us_ = std::max(max_us_, us);
}

void LatencyHistogram::add(const LatencyHistogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_us_ = std::max(max_us_, other.max_us_);
}

i64 LatencyHistogram::quantile_us(f64 q) const {
  CHECK(q >= 0 && q <= 1);
  if (count_ == 0) return 0;
  const i64 rank = std::max<i64>(1, static_cast<i64>(std::ceil(q * static_cast<f64>(count_))));
  i64 seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= rank) return std::min(upper_end(i), max_us_);
  }
  return max_us_;
}

Json LatencyHistogram::to_json() const {
  Json buckets = Json::array();
  for (size_t i = 0; i < kBuckets; ++i) {
    if (buckets_[i] > 0) buckets.push(Json::array({static_cast<i64>(i), buckets_[i]}));
  }
  return Json::object({{"count", count_}, {"max_us", max_us_}, {"buckets", std::move(buckets)}});
}

LatencyHistogram LatencyHistogram::from_json(const Json& json) {
  LatencyHistogram out;
  for (const Json& item : json["buckets"].items()) {
    const i64 bucket = item[size_t{0}].as_int();
    if (bucket < 0 || bucket >= static_cast<i64>(kBuckets)) continue;
    out.buckets_[static_cast<size_t>(bucket)] += item[size_t{1}].as_int();
    out.count_ += item[size_t{1}].as_int();
  }
  out.max_us_ = json["max_us"].as_int();
  return out;
}

}  // namespace team
