#include "team/ops/series.h"

#include <algorithm>

namespace team {
namespace {

using base::Json;

void join(SeriesPoint& into, const SeriesPoint& other) {
  into.rss_bytes = std::max(into.rss_bytes, other.rss_bytes);
  into.cpu_us += other.cpu_us;
  into.answers += other.answers;
  into.errors += other.errors;
  into.restarts += other.restarts;
  into.latency.add(other.latency);
}

}  // namespace

SeriesPoint& Series::at(i64 ms) {
  i64 begin = ms - ms % stretch_ms_;
  if (!points_.empty() && begin <= points_.back().at_ms) return points_.back();
  if (points_.size() >= points_max_) {
    join_neighbours();
    return at(ms);
  }
  points_.emplace_back();
  points_.back().at_ms = begin;
  return points_.back();
}

void Series::join_neighbours() {
  stretch_ms_ *= 2;
  std::vector<SeriesPoint> joined;
  for (SeriesPoint& point : points_) {
    point.at_ms -= point.at_ms % stretch_ms_;
    if (!joined.empty() && joined.back().at_ms == point.at_ms) {
      join(joined.back(), point);
    } else {
      joined.push_back(std::move(point));
    }
  }
  points_ = std::move(joined);
}

SeriesPoint Series::total() const {
  SeriesPoint sum;
  for (const SeriesPoint& point : points_) join(sum, point);
  return sum;
}

Json Series::to_json() const {
  Json points = Json::array();
  for (const SeriesPoint& point : points_) {
    points.push(Json::object({{"at_ms", point.at_ms},
                              {"rss", point.rss_bytes},
                              {"cpu_us", point.cpu_us},
                              {"answers", point.answers},
                              {"errors", point.errors},
                              {"restarts", point.restarts},
                              {"p50_us", point.latency.quantile_us(0.5)},
                              {"p99_us", point.latency.quantile_us(0.99)},
                              {"latency", point.latency.to_json()}}));
  }
  return Json::object({{"stretch_ms", stretch_ms_}, {"points", std::move(points)}});
}

Series Series::from_json(const Json& json) {
  Series out(std::max<i64>(1, json["stretch_ms"].as_int(250)));
  for (const Json& item : json["points"].items()) {
    SeriesPoint point;
    point.at_ms = item["at_ms"].as_int();
    point.rss_bytes = item["rss"].as_int();
    point.cpu_us = item["cpu_us"].as_int();
    point.answers = item["answers"].as_int();
    point.errors = item["errors"].as_int();
    point.restarts = item["restarts"].as_int();
    point.latency = LatencyHistogram::from_json(item["latency"]);
    out.points_.push_back(std::move(point));
  }
  return out;
}

}  // namespace team
