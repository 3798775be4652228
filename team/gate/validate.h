// A criterion counts only after its gate has shown that it can fail: on the empty program, on a
// do-nothing program, and on every seeded mutant; and that it can pass where an oracle
// implementation exists.
#pragma once

#include "team/gate/gate.h"

#include <string>
#include <vector>

namespace team {

struct ValidationInput {
  std::string name;    // "empty", "do-nothing", "mutant: acknowledges before it writes", "oracle"
  std::string source;  // folder
  bool must_pass = false;
};

struct ValidationFinding {
  std::string name;
  bool as_expected = false;
  GateVerdict verdict = GateVerdict::kError;
  std::string detail;
};

struct Validation {
  bool valid = false;
  std::vector<ValidationFinding> findings;
};

// The empty program is always among the inputs; give the others. A gate error makes it invalid.
base::Result<Validation> validate_gate(const GateRunner& runner, const GateSpec& spec,
                                       const std::vector<ValidationInput>& inputs);

}  // namespace team
