#include "team/stages/verify.h"

#include "base/files.h"
#include "team/gate/gate_runner.h"
#include "team/sandbox/workspace.h"
#include "team/stages/attempt.h"
#include "team/stages/gating.h"
#include "team/stages/prompts.h"

#include <algorithm>
#include <set>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

constexpr int kVerifyRounds = 8;

// What the gates said about each criterion on one tree.
struct Judgement {
  std::string criterion;
  bool pass = true;
  Evidence evidence;  // the first that fails, or the last one
};

Result<std::vector<Judgement>> judge(Engine& engine, const Built& built) {
  std::vector<Judgement> out;
  for (const Criterion& criterion : engine.spec.criteria) {
    Judgement judgement{criterion.id, true, {}};
    for (const std::string& id : criterion.gates) {
      Evidence evidence = TRY(run_gate(engine, *engine.gate(id), built.folder, built.tree));
      if (evidence.verdict == Verdict::kError) {  // the surroundings failed: once more, uncounted
        evidence = TRY(run_gate(engine, *engine.gate(id), built.folder, built.tree));
      }
      if (evidence.verdict == Verdict::kError) {
        return Error(ErrorCode::kUnavailable, "gate " + id + " cannot be run here: " +
                                                  evidence.why + "; mend it and resume");
      }
      if (!judgement.pass) continue;  // still run: both pass rates need all numbers
      judgement.pass = evidence.verdict == Verdict::kPass;
      judgement.evidence = std::move(evidence);
    }
    out.push_back(std::move(judgement));
  }
  return out;
}

base::Status write_summary(Engine& engine, const Built& built) {
  i64 numbers[2][2] = {};
  for (const GateSpec& gate : engine.gates) {
    auto at = engine.evidence.find(gate.id + "@" + built.tree);
    if (at == engine.evidence.end() || gate.kind == GateKind::kPerformance) continue;
    int held = gate.visibility == Visibility::kHeldOut;
    numbers[held][0] += at->second.numerator;
    numbers[held][1] += at->second.denominator;
  }
  return engine.main.emit("note.acceptance", Json::object({{"id", "acceptance"},
                                                           {"tree", built.tree},
                                                           {"visible_num", numbers[0][0]},
                                                           {"visible_denom", numbers[0][1]},
                                                           {"held_out_num", numbers[1][0]},
                                                           {"held_out_denom", numbers[1][1]}}));
}

}  // namespace

Unmet unmet_criteria(const Engine& engine) {
  Unmet out;
  for (const Criterion& c : engine.spec.criteria) {
    auto at = engine.judged.find(c.id);
    if (at == engine.judged.end())
      out.unjudged.push_back(c.id);
    else if (at->second != "passing")
      out.failing.push_back(c.id);
  }
  return out;
}

Result<bool> verify(Engine& engine, Builder& builder) {
  for (int round = 0; round < kVerifyRounds; ++round) {
    Built built = TRY(build_commit(engine, engine.head));
    if (!built.ok) return false;
    std::vector<Judgement> judgements = TRY(judge(engine, built));
    for (const Judgement& j : judgements) TRY(engine.judge(j.criterion, j.pass, j.evidence));
    TRY(write_summary(engine, built));
    std::set<std::string> reopened;
    bool all = true;
    for (const Judgement& j : judgements) {
      if (j.pass) continue;
      all = false;
      std::string owner = builder.owner_of(j.criterion);
      if (owner.empty() || !builder.merged(owner) || !reopened.insert(owner).second) continue;
      TRY(builder.reopen(owner, j.evidence, engine.gate(j.evidence.gate)->visibility));
    }
    if (all) return true;
    if (reopened.empty()) return false;
    std::string before = engine.head;
    TRY(builder.run(Stage::kBuild));
    if (engine.head == before) return false;  // escalated: nothing more will come
  }
  return false;
}

namespace {

Result<std::vector<MutantDoc>> ask_for_mutants(Engine& engine) {
  AttemptSpec spec;
  spec.task = "mutants";
  spec.role = Role::kTester;
  spec.stage = Stage::kVerify;
  spec.brief = mutants_brief(engine.spec);
  spec.commit = engine.head;
  spec.write_globs = {"mutants.json"};
  std::vector<MutantDoc> mutants;
  TRY(run_document(engine, spec, 3, [&](const AttemptResult& result) -> base::Status {
    mutants = TRY(mutants_from_json(TRY(read_document(result, "mutants.json"))));
    for (const MutantDoc& m : mutants) {
      std::string text = base::read_file(result.workspace + "/" + m.file).value_or("");
      size_t at = text.find(m.search);
      if (at == std::string::npos || text.find(m.search, at + 1) != std::string::npos) {
        return Error(ErrorCode::kInvalidArgument,
                     "the text of mutant " + m.id + " must occur exactly once in " + m.file);
      }
    }
    return {};
  }));
  return mutants;
}

const Criterion* criterion_of(const Engine& engine, const std::string& id) {
  for (const Criterion& c : engine.spec.criteria) {
    if (c.id == id) return &c;
  }
  return nullptr;
}

// The mutant as a commit of its own, so that it is built and gated like everything else.
Result<std::string> mutate(Engine& engine, const MutantDoc& mutant) {
  Json made = TRY(engine.main.once(
      {.key = "mutant." + mutant.id,
       .kind = "mutant.make",
       .cls = EffectClass::kExternal,
       .request = Json::object({{"head", engine.head}, {"search", mutant.search}})},
      [&]() -> Result<Json> {
        base::TempDir folder("fleet-mutant");
        TRY(engine.repo.checkout(engine.head, folder.path()));
        std::string text = TRY(base::read_file(folder / mutant.file));
        size_t at = text.find(mutant.search);
        if (at == std::string::npos) return Json::object({{"gone", true}});
        text.replace(at, mutant.search.size(), mutant.replace);
        TRY(base::write_file(folder / mutant.file, text));
        std::string commit =
            TRY(engine.repo.commit(folder.path(), engine.head, "mutant " + mutant.id));
        return Json::object({{"commit", commit}});
      }));
  return made["commit"].as_string();
}

}  // namespace

Result<bool> kill_mutants(Engine& engine) {
  bool all = true;
  for (const MutantDoc& mutant : TRY(ask_for_mutants(engine))) {
    const Criterion* criterion = criterion_of(engine, mutant.criterion);
    Json body =
        Json::object({{"id", mutant.id}, {"criterion", mutant.criterion}, {"why", mutant.why}});
    TRY(engine.main.emit("mutant.seeded", body));
    std::string commit = TRY(mutate(engine, mutant));
    Built built;
    if (criterion != nullptr && !commit.empty()) built = TRY(build_commit(engine, commit));
    if (!built.ok) {  // a mutant that does not compile proves nothing
      TRY(engine.main.emit("mutant.unusable", Json::object({{"id", mutant.id}})));
      continue;
    }
    std::string by;
    for (const std::string& id : criterion->gates) {
      Evidence evidence = TRY(run_gate(engine, *engine.gate(id), built.folder, built.tree));
      bool caught = evidence.verdict == Verdict::kFail || evidence.verdict == Verdict::kTimeout;
      if (!caught) continue;
      by = evidence.id;
      break;
    }
    if (by.empty()) {
      all = false;
      engine.judged[mutant.criterion] = "regressed";
      TRY(engine.main.emit("mutant.survived", Json::object({{"id", mutant.id}})));
      TRY(engine.main.emit("criterion.regressed",
                           Json::object({{"id", mutant.criterion},
                                         {"why", "its gates do not notice mutant " + mutant.id}})));
    } else {
      TRY(engine.main.emit("mutant.killed", Json::object({{"id", mutant.id}, {"evidence", by}})));
    }
    TRY(base::remove_tree(built.folder));
  }
  return all;
}

base::Status seal_artifact(Engine& engine, const std::string& id) {
  Built built = TRY(build_commit(engine, engine.head));
  TRY(engine.main.emit("artifact.building", Json::object({{"id", id}, {"commit", engine.head}})));
  Json sealed =
      TRY(engine.main.once({.key = "seal." + id,
                            .kind = "artifact.seal",
                            .cls = EffectClass::kExternal,
                            .request = Json::object({{"tree", built.tree}})},
                           [&]() -> Result<Json> {
                             std::string sources = engine.path("artifacts/" + id + ".src");
                             std::string again = engine.path("artifacts/" + id + ".again");
                             std::string folder = engine.path("artifacts/" + id);
                             for (const std::string& path : {sources, again, folder})
                               TRY(base::remove_tree(path));
                             TRY(base::make_directories(engine.path("artifacts")));
                             TRY(engine.repo.checkout(engine.head, sources));
                             Evidence second = TRY(engine.runner.run(
                                 build_gate(engine.spec.interface),
                                 {.product = sources, .sealed = "", .keep_at = again}));
                             Workspace kept = TRY(Workspace::fork_directory(built.folder, folder));
                             std::string hash = TRY(kept.tree_hash());
                             bool same = false;
                             if (second.verdict == Verdict::kPass) {
                               Workspace other = TRY(Workspace::open(again));
                               same = TRY(other.tree_hash()) == hash;
                             }
                             TRY(base::remove_tree(sources));
                             TRY(base::remove_tree(again));
                             return Json::object({{"hash", hash}, {"reproducible", same}});
                           }));
  return engine.main.emit("artifact.sealed",
                          Json::object({{"id", id},
                                        {"hash", sealed["hash"]},
                                        {"tree", built.tree},
                                        {"reproducible", sealed["reproducible"]}}));
}

}  // namespace team
