// Running gates from the main strand: evidence with an id, a row in the ledger, and never the same
// gate on the same tree twice. Also building a commit into a folder that other gates run on.
#pragma once

#include "team/perf/profile.h"
#include "team/stages/engine.h"

#include <string>
#include <vector>

namespace team {

// `folder` holds the product as the gate shall see it; `tree` names its content.
base::Result<Evidence> run_gate(Engine& engine, const GateSpec& gate, const std::string& folder,
                                const std::string& tree);

// Runs a gate while the program's stacks are sampled. The evidence (`id` in its key, since a
// profile is a fresh look each time) carries the profile and shows it on top of its log.
base::Result<Profile> profile_gate(Engine& engine, const GateSpec& gate, const Built& built,
                                   const std::string& id);

// Checks a commit out and runs the spec's build in the sandbox. The result is kept per tree.
base::Result<Built> build_commit(Engine& engine, const std::string& commit);

// Evidence for all of `gates` on a built commit, in order. Stops at nothing: all are run.
base::Result<std::vector<Evidence>> run_gates(Engine& engine, const Built& built,
                                              const std::vector<std::string>& gates);

// Reads gates/*.json of a folder, sorted by id. Errors: kInvalidArgument naming file and key.
base::Result<std::vector<GateSpec>> load_gate_folder(const std::string& folder);

// The gate made of the spec's build command.
GateSpec build_gate(const ProductInterface& interface);

}  // namespace team
