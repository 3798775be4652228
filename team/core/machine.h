// The state machines of a run, as one table: which states an entity of each kind has and which
// moves are allowed. The reducer (run_state.h) refuses every move that is not here, so the table is
// the place to read what can happen to a task, and the only place to change it. Thread-safe:
// constant data.
#pragma once

#include <span>
#include <string_view>

namespace team {

struct Move {
  std::string_view from;  // "" : the entity does not exist yet
  std::string_view to;
};

struct Machine {
  std::string_view kind;
  std::span<const Move> moves;

  bool allows(std::string_view from, std::string_view to) const;
  bool is_terminal(std::string_view state) const;  // no move leads out
};

// Null when no entity has that kind.
const Machine* machine_of(std::string_view kind);
std::span<const Machine> all_machines();

}  // namespace team
