// One entry of the ledger. Everything a run knows is the fold of its events; everything a person
// sees is a view of that fold. Models never author events: `actor` is the engine, a worker or a
// human; a model's words are stored as bodies and never read as facts.
// Thread-safe: plain values.
#pragma once

#include "base/json.h"
#include "base/types.h"

#include <string>
#include <string_view>

namespace team {

struct Event {
  i64 seq = 0;         // position in the ledger, from 1
  std::string stream;  // the strand of work that wrote it: "main", "T2.a1"
  i64 ver = 0;         // position in the stream, from 1
  std::string type;    // "task.merged": entity kind, dot, the state it moves to; or "effect.done"
  i64 at_us = 0;       // wall clock, microseconds; never used to decide anything
  std::string actor;   // engine | worker:ID | human:ID
  i64 cause = 0;       // seq of the event that led here, or 0
  i64 fence = 0;       // token of the lease that allowed it, or 0
  base::Json body;
};

// "task" of "task.merged"; "merged" of "task.merged".
inline std::string_view kind_of(const Event& event) {
  return std::string_view(event.type).substr(0, event.type.find('.'));
}
inline std::string_view move_of(const Event& event) {
  size_t dot = event.type.find('.');
  return dot == std::string::npos ? std::string_view()
                                  : std::string_view(event.type).substr(dot + 1);
}

}  // namespace team
