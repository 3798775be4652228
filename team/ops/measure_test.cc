#include "base/random.h"
#include "team/ops/histogram.h"
#include "team/ops/series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace team {
namespace {

TEST(LatencyHistogram, EveryValueFallsIntoABucketThatHoldsIt) {
  size_t last = 0;
  for (i64 us = 0; us < 100'000; ++us) {
    const size_t bucket = LatencyHistogram::bucket_of(us);
    ASSERT_LE(us, LatencyHistogram::upper_end(bucket)) << us;
    if (bucket > 0) ASSERT_GT(us, LatencyHistogram::upper_end(bucket - 1)) << us;
    ASSERT_GE(bucket, last);
    last = bucket;
  }
  EXPECT_LT(LatencyHistogram::bucket_of(i64{24} * 3600 * 1'000'000), LatencyHistogram::kBuckets);
}

// Against the exact quantiles of a sorted list.
TEST(LatencyHistogram, QuantilesAreWithinSixPercentOfTheTruth) {
  base::Rng rng(3);
  LatencyHistogram histogram;
  std::vector<i64> values;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(static_cast<i64>(std::exp(rng.unit() * 14)));
    histogram.add(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const f64 q : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<size_t>(std::ceil(q * static_cast<f64>(values.size())));
    const i64 truth = values[rank - 1];
    EXPECT_GE(histogram.quantile_us(q), truth) << q;
    EXPECT_LE(static_cast<f64>(histogram.quantile_us(q)), 1.0625 * static_cast<f64>(truth) + 1)
        << q;
  }
}

TEST(LatencyHistogram, AddsUpExactlyAndSurvivesJson) {
  LatencyHistogram a, b, both;
  for (i64 us : {5, 700, 90'000}) a.add(us), both.add(us);
  for (i64 us : {5, 800, 2'000'000}) b.add(us), both.add(us);
  a.add(b);
  EXPECT_EQ(a.to_json().dump(), both.to_json().dump());
  EXPECT_EQ(LatencyHistogram::from_json(a.to_json()).to_json().dump(), a.to_json().dump());
  EXPECT_EQ(LatencyHistogram().quantile_us(0.99), 0);
}

TEST(Series, StaysBoundedAndLosesNoAnswer) {
  Series series(250, 16);
  for (i64 ms = 0; ms < 60'000; ms += 50) {
    SeriesPoint& point = series.at(ms);
    ++point.answers;
    point.latency.add(ms);
    point.rss_bytes = std::max(point.rss_bytes, ms);
  }
  EXPECT_LE(series.points().size(), 16u);
  EXPECT_EQ(series.total().answers, 1'200);
  EXPECT_EQ(series.total().latency.count(), 1'200);
  EXPECT_EQ(series.total().rss_bytes, 59'950);
  for (size_t i = 1; i < series.points().size(); ++i) {
    EXPECT_EQ(series.points()[i].at_ms - series.points()[i - 1].at_ms, series.stretch_ms());
  }
  EXPECT_EQ(Series::from_json(series.to_json()).to_json().dump(), series.to_json().dump());
}

}  // namespace
}  // namespace team
