// Watches a served product: asks it what users would ask, at its pace, and writes down how it
// answered, what it holds and what it costs, as a series over time. A death between two questions
// is noticed here. Single-threaded.
#pragma once

#include "team/ops/series.h"
#include "team/ops/service.h"
#include "team/ops/traffic.h"
#include "team/ops/triggers.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace team {

class Monitor {
 public:
  // Both outlive the monitor.
  Monitor(Service& service, const std::vector<Exchange>& traffic);
  // One request (the next of the traffic), one look at memory and time, and what tend() does.
  base::Result<std::optional<Crash>> round();
  // What was seen so far: series, requests by name, restarts.
  base::Json to_json() const;
  const Series& series() const { return series_; }

 private:
  void notice_restarts(SeriesPoint& point);

  Service& service_;
  const std::vector<Exchange>& traffic_;
  TrafficClient client_;
  Series series_;
  std::map<std::string, i64> asked_, failed_;
  std::string last_failure_;
  size_t next_ = 0;
  i64 begun_us_ = 0;
  int restarts_ = 0;
  i64 looked_us_ = 0;
  i64 cpu_us_ = 0;
  i64 restart_ms_max_ = 0;
};

// What triggers are held against, from what to_json() wrote.
Measured measured_from(const base::Json& operation);

}  // namespace team
