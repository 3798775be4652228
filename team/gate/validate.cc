#include "team/gate/validate.h"

#include "base/files.h"

namespace team {

base::Result<Validation> validate_gate(const GateRunner& runner, const GateSpec& spec,
                                       const std::string& sealed,
                                       const std::vector<ValidationInput>& inputs) {
  const base::TempDir empty("fleet-empty");
  std::vector<ValidationInput> all = {{"empty", empty.path(), false}};
  all.insert(all.end(), inputs.begin(), inputs.end());
  Validation validation;
  validation.valid = true;
  for (const ValidationInput& input : all) {
    ValidationFinding finding;
    finding.name = input.name;
    finding.evidence = TRY(runner.run(spec, {input.source, sealed, ""}));
    const Verdict verdict = finding.evidence.verdict;
    const bool failed = verdict == Verdict::kFail || verdict == Verdict::kTimeout ||
                        (verdict == Verdict::kError && input.name == "empty");
    finding.as_expected = input.must_pass ? verdict == Verdict::kPass : failed;
    if (finding.as_expected) {
      finding.detail = input.must_pass ? "passes, as it must" : "fails, as it must";
    } else if (verdict == Verdict::kError) {
      finding.detail = "could not be run: " + finding.evidence.why;
    } else if (input.must_pass) {
      finding.detail = "fails although it is right: " + finding.evidence.why;
    } else {
      finding.detail = "the gate '" + spec.id + "' passes on '" + input.name +
                       "', so it proves nothing; make it stricter";
    }
    validation.valid = validation.valid && finding.as_expected;
    validation.findings.push_back(std::move(finding));
  }
  return validation;
}

}  // namespace team
