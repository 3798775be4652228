// Requests to a served product, whatever its protocol: bytes go to its port, and the answer is good
// when it holds the expected text. One connection is kept and made anew when it breaks.
// Single-threaded.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <string>
#include <vector>

namespace team {

struct Exchange {
  std::string name;    // "SET"; counts and incidents are by name
  std::string send;    // raw bytes
  std::string expect;  // a good answer contains it
};

struct Answer {
  bool good = false;
  i64 us = 0;        // from the first byte sent to the expected text, or to giving up
  std::string seen;  // the answer, cut
  std::string why;   // "" when good
};

class TrafficClient {
 public:
  explicit TrafficClient(int port, i64 timeout_ms = 2'000) : port_(port), timeout_ms_(timeout_ms) {}
  ~TrafficClient();
  TrafficClient(const TrafficClient&) = delete;
  Answer ask(const Exchange& exchange);
  void hang_up();

 private:
  bool connect_now();
  int port_;
  i64 timeout_ms_;
  int fd_ = -1;
};

}  // namespace team
