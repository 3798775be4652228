#include "team/perf/loop.h"

#include "base/hash.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>

namespace team {
namespace {

using base::Json;
using base::Result;

// The same program against itself.
Result<bool> machine_is_fit(PerfHost& host, const PerfPlan& plan) {
  auto act = [&]() -> Result<Json> {
    PairedMeasurement measurement(host, "A/A", "", plan.seed);
    for (int i = 0; i < plan.aa_pairs; ++i) TRY(measurement.pair());
    const SignedRank test = signed_rank(measurement.ratios());
    const ShiftEstimate shift = hodges_lehmann(measurement.ratios(), 0.95);
    return Json::object({{"p_greater", test.p_greater},
                         {"p_less", test.p_less},
                         {"shift", shift.shift},
                         {"low", shift.low},
                         {"high", shift.high},
                         {"ratios", measurement.ratios_json()}});
  };
  Json aa = TRY(host.recorded("measure.AA", Json::object({{"pairs", plan.aa_pairs}}), act));
  host.progress("A/A", "");
  const f64 alpha = plan.aa_alpha / 2;
  const bool fit = aa["p_greater"].as_double() > alpha && aa["p_less"].as_double() > alpha;
  Json body = Json::object({{"id", "AA"}, {"fit", fit}, {"pairs", plan.aa_pairs}});
  body.set("measured", std::move(aa));
  TRY(host.event("note.aa", std::move(body)));
  return fit;
}

Json plan_json(const SamplePlan& plan) {
  return Json::object({{"looks", Json(Json::Array(plan.looks.begin(), plan.looks.end()))},
                       {"alphas", Json(Json::Array(plan.alphas.begin(), plan.alphas.end()))},
                       {"effect_min", plan.effect_min}});
}

Result<Json> measure(PerfHost& host, const std::string& id, const std::string& candidate,
                     const PerfPlan& plan) {
  auto act = [&]() -> Result<Json> {
    PairedMeasurement measurement(host, id, candidate, base::xxh3(base::as_bytes(id), plan.seed));
    std::optional<PerfDecision> decision;
    while (!decision) {
      TRY(measurement.pair());
      decision = decide(plan.sample, measurement.ratios());
    }
    return Json::object({{"verdict", name_of(decision->verdict)},
                         {"why", decision->why},
                         {"pairs", decision->pairs},
                         {"p", decision->p},
                         {"gain", decision->gain},
                         {"low", decision->gain_low},
                         {"high", decision->gain_high},
                         {"ratios", measurement.ratios_json()}});
  };
  Json request = Json::object({{"candidate", candidate}, {"plan", plan_json(plan.sample)}});
  Json measured = TRY(host.recorded("measure." + id, request, act));
  host.progress(id, "");
  return measured;
}

// The same idea in other letters.
std::string normal(const std::string& idea) {
  std::string out;
  for (const char c : idea) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0) out += static_cast<char>(std::tolower(u));
  }
  return out;
}

class Loop {
 public:
  Loop(PerfHost& host, const PerfPlan& plan) : host_(host), plan_(plan) {}

  base::Status experiment(const std::string& id) {
    const Profile profile = TRY(host_.profile(id));
    const Hypothesis hypothesis = TRY(host_.ask(id, profile, tried_));
    Json body = Json::object({{"id", id},
                              {"bottleneck", hypothesis.bottleneck},
                              {"idea", hypothesis.idea},
                              {"function", hypothesis.function},
                              {"expected_gain", hypothesis.expected_gain},
                              {"plan", plan_json(plan_.sample)},
                              {"profile", to_json(profile)}});
    TRY(host_.event("experiment.hypothesis", std::move(body)));
    std::string hopeless = why_hopeless(hypothesis, profile);
    if (!hopeless.empty()) return reject(id, hypothesis, hopeless);
    std::string wrong = TRY(host_.check(id, hypothesis.candidate));
    if (!wrong.empty()) return reject(id, hypothesis, wrong);
    TRY(host_.event("experiment.measuring", Json::object({{"id", id}})));
    Json measured = TRY(measure(host_, id, hypothesis.candidate, plan_));
    const bool keep = measured["verdict"].as_string() == "keep";
    char gain[32];
    std::snprintf(gain, sizeof gain, " (%+.0f %%)", measured["gain"].as_double() * 100);
    remember(hypothesis, (keep ? "kept" : "rejected") + std::string(gain));
    if (keep) TRY(host_.keep(id, hypothesis.candidate));
    Json end = Json::object({{"id", id}});
    for (const auto& [name, value] : measured.members()) end.set(name, value);
    return host_.event(keep ? "experiment.kept" : "experiment.rejected", std::move(end));
  }

 private:
  // Reasons to build nothing at all.
  std::string why_hopeless(const Hypothesis& hypothesis, const Profile& profile) const {
    if (ideas_.contains(normal(hypothesis.idea))) return "it was tried before";
    const ProfileEntry* entry =
        hypothesis.function.empty() ? nullptr : profile.find(hypothesis.function);
    if (entry == nullptr || gain_bound(entry->total) >= plan_.sample.effect_min) return "";
    char text[160];
    std::snprintf(text, sizeof text, " has %.1f %% of the time: at most %+.1f %% could be gained",
                  entry->total * 100, gain_bound(entry->total) * 100);
    return hypothesis.function + text;
  }

  void remember(const Hypothesis& hypothesis, const std::string& outcome) {
    ideas_.insert(normal(hypothesis.idea));
    tried_.push_back(hypothesis.idea + ": " + outcome);
  }

  base::Status reject(const std::string& id, const Hypothesis& hypothesis, const std::string& why) {
    remember(hypothesis, "rejected, " + why);
    return host_.event("experiment.rejected", Json::object({{"id", id}, {"why", why}}));
  }

  PerfHost& host_;
  const PerfPlan& plan_;
  std::vector<std::string> tried_;
  std::set<std::string> ideas_;
};

}  // namespace

PerfPlan default_perf_plan() {
  PerfPlan plan;
  plan.sample.looks = {10, 20, 30};
  plan.sample.alphas = {0.004, 0.003, 0.003};
  plan.sample.effect_min = 0.01;
  return plan;
}

PairedMeasurement::PairedMeasurement(PerfHost& host, std::string id, std::string candidate,
                                     u64 seed)
    : host_(host), id_(std::move(id)), candidate_(std::move(candidate)), rng_(seed) {}

base::Status PairedMeasurement::pair() {
  f64 a = 0;
  f64 b = 0;
  if (rng_.chance(0.5)) {
    a = TRY(host_.measure(""));
    b = TRY(host_.measure(candidate_));
  } else {
    b = TRY(host_.measure(candidate_));
    a = TRY(host_.measure(""));
  }
  ratios_.push_back(std::log(b / a));
  char text[80];
  std::snprintf(text, sizeof text, "pair %zu  %+.1f %%  (%.0f against %.0f)", ratios_.size(),
                (b / a - 1) * 100, b, a);
  host_.progress(id_, text);
  return {};
}

Json PairedMeasurement::ratios_json() const {
  return Json(Json::Array(ratios_.begin(), ratios_.end()));
}

base::Status run_experiments(PerfHost& host, const PerfPlan& plan) {
  if (!TRY(machine_is_fit(host, plan))) return {};
  Loop loop(host, plan);
  for (int n = 1; n <= plan.experiments_max; ++n) {
    TRY(loop.experiment("X" + std::to_string(n)));
  }
  return {};
}

}  // namespace team
