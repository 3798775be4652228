// A criterion counts only after its gate has shown that it can fail: on the empty program, on a
// do-nothing program, and on every seeded mutant; and that it can pass where an oracle
// implementation exists.
#pragma once

#include "team/gate/gate_runner.h"

#include <string>
#include <vector>

namespace team {

struct ValidationInput {
  std::string name;    // "do-nothing", "mutant: acknowledges before it writes", "oracle"
  std::string source;  // folder
  bool must_pass = false;
};

struct ValidationFinding {
  std::string name;
  bool as_expected = false;
  Evidence evidence;
  std::string detail;  // a sentence
};

struct Validation {
  bool valid = false;
  std::vector<ValidationFinding> findings;
};

// The empty folder is always tried first; give the other inputs. A gate error on an input that must
// pass makes it invalid; on one that must fail, an error counts as a failure only of the empty
// program.
base::Result<Validation> validate_gate(const GateRunner& runner, const GateSpec& spec,
                                       const std::string& sealed,
                                       const std::vector<ValidationInput>& inputs);

}  // namespace team
