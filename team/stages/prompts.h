// The words the engine says to agents: one function per brief. Text only; everything volatile
// (times, process ids, paths of this machine) is kept out, so that a request is the same on every
// replay. Thread-safe: pure functions.
#pragma once

#include "team/core/evidence.h"
#include "team/ops/triggers.h"
#include "team/stages/documents.h"

#include <string>
#include <vector>

namespace team {

std::string spec_brief(const std::string& intent);
std::string spec_revision_brief(const std::string& intent, const CritiqueDoc& critique);
std::string critique_brief(const std::string& intent);
std::string oracle_brief(const SpecDoc& spec, const std::string& spec_text);
std::string design_brief(const std::string& spec_text);
std::string design_review_brief(const std::string& spec_text);
std::string plan_brief(const std::string& spec_text, const DesignDoc& design,
                       const std::vector<GateSpec>& gates);
// `feedback`: what the gates said about the last attempt, or "".
std::string task_brief(const TaskDoc& task, const SpecDoc& spec, const DesignDoc& design,
                       const std::string& feedback, int rung);
std::string split_brief(const TaskDoc& task, const SpecDoc& spec, const DesignDoc& design,
                        const std::string& feedback);
std::string escalation_brief(const TaskDoc& task, const SpecDoc& spec, const std::string& feedback);
std::string revision_brief(const DecisionDoc& decision, const std::string& because,
                           const Measured& measured);
std::string review_brief(const TaskDoc& task, const SpecDoc& spec, const std::string& diff,
                         const std::string& evidence);
std::string mutants_brief(const SpecDoc& spec);
std::string hypothesis_brief(const std::string& benchmark, const std::string& profile,
                             const std::vector<std::string>& tried);
std::string faults_brief(const std::string& spec_text);
std::string reproduction_brief(const std::string& incident, const std::string& gate_id,
                               const std::string& criterion);

}  // namespace team
