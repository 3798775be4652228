// Reads a checker's lines and decides the verdict. Pure; single-threaded.
//
// A case counts once. An id that comes twice, is not in the manifest, or is missing makes the gate
// fail: the three ways a denominator is shrunk or a result is forged.
#pragma once

#include "team/core/evidence.h"
#include "team/core/gate_spec.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace team {

class Tally {
 public:
  explicit Tally(const GateSpec& spec) : spec_(spec) {}
  // One line of the checker's output, without its end. Lines that are no result are ignored.
  void take_line(std::string_view line);
  // How the checker ended. `ended_badly` is a sentence, or "" for exit status 0.
  void finish(int exit_code, bool timed_out, const std::string& ended_badly);
  // Fills in verdict, counts, list hash, cases, metrics and why.
  void write_to(Evidence& evidence) const;

 private:
  void take_case(std::string_view rest, bool pass);
  void complain(const std::string& sentence);

  const GateSpec& spec_;
  std::vector<CaseResult> cases_;  // in the order they came
  std::map<std::string, size_t, std::less<>> index_;
  std::vector<std::pair<std::string, f64>> metrics_;
  std::string why_;
  bool timed_out_ = false;
};

}  // namespace team
