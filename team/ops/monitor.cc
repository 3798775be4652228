#include "team/ops/monitor.h"

#include "base/clock.h"

#include <algorithm>

namespace team {
namespace {

using base::Json;

constexpr i64 kNoticeUs = 20'000;
constexpr i64 kLookUs = 100'000;  // between two looks at memory, which walk /proc

Json counts(const std::map<std::string, i64>& by_name) {
  Json out = Json::object();
  for (const auto& [name, count] : by_name) out.set(name, count);
  return out;
}

}  // namespace

Monitor::Monitor(Service& service, const std::vector<Exchange>& traffic)
    : service_(service),
      traffic_(traffic),
      client_(service.port()),
      begun_us_(base::system_clock().monotonic_us()),
      restarts_(service.restarts()),
      restart_ms_max_(service.ready_ms()) {}

base::Result<std::optional<Crash>> Monitor::round() {
  base::Clock& clock = base::system_clock();
  SeriesPoint& point = series_.at((clock.monotonic_us() - begun_us_) / 1'000);
  notice_restarts(point);
  if (!traffic_.empty()) {
    const Exchange& exchange = traffic_[next_++ % traffic_.size()];
    const Answer answer = client_.ask(exchange);
    ++asked_[exchange.name];
    if (answer.good) {
      ++point.answers;
      point.latency.add(answer.us);
    } else {
      ++point.errors;
      ++failed_[exchange.name];
      last_failure_ = exchange.name + ": " + answer.why;
      clock.sleep_us(kNoticeUs);  // a death takes a moment to reach us
    }
  }
  std::optional<Crash> crash = TRY(service_.tend());
  notice_restarts(point);
  if (clock.monotonic_us() - looked_us_ < kLookUs) return crash;
  looked_us_ = clock.monotonic_us();
  point.rss_bytes = std::max(point.rss_bytes, service_.rss_bytes());
  const i64 cpu_us = service_.cpu_us();
  point.cpu_us += std::max<i64>(0, cpu_us - cpu_us_);
  cpu_us_ = cpu_us;
  return crash;
}

// Also those that a planned fault brought about between two rounds.
void Monitor::notice_restarts(SeriesPoint& point) {
  if (service_.restarts() == restarts_) return;
  point.restarts += service_.restarts() - restarts_;
  restarts_ = service_.restarts();
  restart_ms_max_ = std::max(restart_ms_max_, service_.ready_ms());
  client_.hang_up();
  cpu_us_ = 0;
  looked_us_ = 0;
}

Json Monitor::to_json() const {
  const SeriesPoint total = series_.total();
  const i64 wall_ms = (base::system_clock().monotonic_us() - begun_us_) / 1'000;
  Json out = Json::object({{"wall_ms", wall_ms},
                           {"answers", total.answers},
                           {"errors", total.errors},
                           {"p50_us", total.latency.quantile_us(0.5)},
                           {"p99_us", total.latency.quantile_us(0.99)},
                           {"p999_us", total.latency.quantile_us(0.999)},
                           {"rss_max", total.rss_bytes},
                           {"cpu_us", total.cpu_us},
                           {"restarts", total.restarts},
                           {"restart_ms", restart_ms_max_}});
  out.set("latency", total.latency.to_json());
  out.set("asked", counts(asked_));
  out.set("failed", counts(failed_));
  if (!last_failure_.empty()) out.set("last_failure", last_failure_);
  out.set("series", series_.to_json());
  return out;
}

Measured measured_from(const Json& operation) {
  Measured out;
  const auto answers = static_cast<f64>(operation["answers"].as_int());
  const auto errors = static_cast<f64>(operation["errors"].as_int());
  const auto wall_ms = static_cast<f64>(std::max<i64>(1, operation["wall_ms"].as_int()));
  if (operation.has("restart_ms")) {
    out["restart"] = static_cast<f64>(operation["restart_ms"].as_int());
    out["restarts"] = static_cast<f64>(operation["restarts"].as_int());
  }
  if (operation["rss_max"].as_int() > 0) {
    out["memory"] = static_cast<f64>(operation["rss_max"].as_int()) / 1e6;
  }
  if (answers + errors == 0) return out;
  out["errors"] = 100 * errors / (answers + errors);
  out["answers"] = answers * 1e3 / wall_ms;
  if (answers == 0) return out;
  for (const char* name : {"p50", "p99", "p999"}) {
    out[name] = static_cast<f64>(operation[std::string(name) + "_us"].as_int()) / 1e3;
  }
  return out;
}

}  // namespace team
