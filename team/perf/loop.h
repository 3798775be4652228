// The performance loop: profile the built program, one hypothesis, a fork with the change, the
// gates that judge correctness, a paired and interleaved measurement under a plan fixed before it,
// keep or reject by signed-rank test; then the next one, which is told what was tried. It begins
// with the program against itself: a machine that sees a difference there is not fit, and nothing
// is tried.
//
// The loop knows no ledger, model or repository: a PerfHost is all it sees, so it runs in tests on
// simulated programs. What the host records (`recorded`) is done once, also across restarts.
// Single-threaded. Errors are the host's.
#pragma once

#include "base/json.h"
#include "base/random.h"
#include "base/result.h"
#include "team/perf/profile.h"
#include "team/perf/stats.h"

#include <functional>
#include <string>
#include <vector>

namespace team {

struct PerfPlan {
  SamplePlan sample;    // of every experiment
  int aa_pairs = 10;    // of the check of the machine
  f64 aa_alpha = 0.01;  // two-sided
  int experiments_max = 2;
  u64 seed = 1;
};
// What `fleet` uses: at most 30 pairs. Ten pairs can reach p = 1/1024.
PerfPlan default_perf_plan();

struct Hypothesis {
  std::string bottleneck, idea;
  std::string function;  // of the profile, or ""
  f64 expected_gain = 0;
  std::string candidate;  // the host's name for the changed program
};

class PerfHost {
 public:
  virtual ~PerfHost() = default;
  // Does `act` and keeps its result under `key`; what is kept already is returned without acting.
  virtual base::Result<base::Json> recorded(
      const std::string& key, const base::Json& request,
      const std::function<base::Result<base::Json>()>& act) = 0;
  virtual base::Status event(const std::string& type, base::Json body) = 0;
  virtual void progress(const std::string& id, const std::string& text) = 0;

  // Of the current best version. A profile that cannot be had is one with `missing`, not an error.
  virtual base::Result<Profile> profile(const std::string& id) = 0;
  virtual base::Result<Hypothesis> ask(const std::string& id, const Profile& profile,
                                       const std::vector<std::string>& tried) = 0;
  // Builds it and runs every gate that judges. "" when correct, else what is wrong. Moves the
  // experiment through `built` and `correct`.
  virtual base::Result<std::string> check(const std::string& id, const std::string& candidate) = 0;
  // One run of the benchmark, more is better. `candidate` "" is the current best version.
  virtual base::Result<f64> measure(const std::string& candidate) = 0;
  virtual base::Status keep(const std::string& id, const std::string& candidate) = 0;
};

base::Status run_experiments(PerfHost& host, const PerfPlan& plan);

// Log ratios of pairs in random order: ln(candidate / baseline), above zero when faster.
class PairedMeasurement {
 public:
  PairedMeasurement(PerfHost& host, std::string id, std::string candidate, u64 seed);
  base::Status pair();
  const std::vector<f64>& ratios() const { return ratios_; }
  base::Json ratios_json() const;

 private:
  PerfHost& host_;
  std::string id_, candidate_;
  base::Rng rng_;
  std::vector<f64> ratios_;
};

}  // namespace team
