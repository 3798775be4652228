// What a run knows: the fold of its events. An entity is a thing with a state (a task, a criterion,
// an incident ...); its facts are the members of the bodies of its events, the latest of each name.
//
// apply() is the only way to change it, and refuses moves the table in machine.h does not list. The
// same fold serves the engine, `fleet status`, the report and the rebuild test.
// Single-threaded; copies are independent.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "team/core/event.h"
#include "team/core/usage.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace team {

struct Entity {
  std::string kind;
  std::string id;
  std::string state;
  base::Json facts;  // an object
  i64 first_seq = 0;
  i64 last_seq = 0;
  i64 first_us = 0;
  i64 last_us = 0;
};

// One model call, as `usage.booked` tells it.
struct UsageRow {
  std::string call, stage, role, task, attempt, backend, model_asked, model_got, price, outcome;
  Usage usage;
  i64 cost_nusd = 0;
  i64 ttft_ms = 0;
  i64 total_ms = 0;
  i64 seq = 0;
};
UsageRow usage_row_from_json(const base::Json& body);

class RunState {
 public:
  // Folds one event in. Errors: kConflict for a move that is not allowed (nothing changed);
  // kInvalidArgument for a body without the id its kind needs.
  base::Status apply(const Event& event);
  // The same check without changing anything.
  base::Status check(const Event& event) const;

  // Null when there is none.
  const Entity* find(std::string_view kind, std::string_view id) const;
  // All of one kind, in the order they appeared.
  std::vector<const Entity*> all(std::string_view kind) const;
  std::string_view state_of(std::string_view kind, std::string_view id) const;

  const std::vector<UsageRow>& usage() const { return usage_; }
  i64 spent_nusd() const { return spent_nusd_; }
  i64 ambiguous_nusd() const { return ambiguous_nusd_; }
  i64 last_seq() const { return last_seq_; }
  i64 last_us() const { return last_us_; }

  // What must be equal after a crash and a resume: entities with their states and facts, usage
  // totals. Leaves out sequence numbers and times, which a crash moves.
  base::Json comparable() const;

 private:
  std::map<std::pair<std::string, std::string>, Entity> entities_;
  std::vector<std::pair<std::string, std::string>> order_;
  std::vector<UsageRow> usage_;
  i64 spent_nusd_ = 0;
  i64 ambiguous_nusd_ = 0;
  i64 last_seq_ = 0;
  i64 last_us_ = 0;
};

// "criterion C3 cannot go from bound to passing".
std::string describe_move(const Event& event, std::string_view from);

}  // namespace team
