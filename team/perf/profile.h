// Where a program's time goes: call stacks taken at even intervals of wall-clock time, folded into
// shares per function. Wall clock rather than CPU time, because what slows a server down is as
// often a wait for the disk as a loop. Stacks that only wait for work (epoll_wait, accept, a
// condition) are counted apart and have no share.
//
// Shares are of the busy samples: `self`, the function was innermost; `total`, it was on the stack.
// Thread-safe: plain values, pure functions.
#pragma once

#include "base/json.h"
#include "team/sandbox/unwind.h"

#include <optional>
#include <string>
#include <vector>

namespace team {

struct ProfileEntry {
  std::string function;
  f64 self = 0;
  f64 total = 0;
  std::string path;  // the callers seen most often, innermost first: "kv::Log::sync < main"
};

struct Profile {
  i64 samples = 0;                    // of single threads
  i64 waiting = 0;                    // of these: waiting for work
  std::vector<ProfileEntry> entries;  // by self share, then total; at most kProfileEntriesMax
  std::string missing;                // why there is none, "" when there is one
  i64 busy() const { return samples - waiting; }
  // The entry of that function; also by the end of its name ("Log::sync" is "kv::Log::sync").
  const ProfileEntry* find(const std::string& function) const;
};

inline constexpr size_t kProfileEntriesMax = 16;

Profile fold(const std::vector<CallStack>& stacks);
// A stack that waits for work to come, not for work to get done.
bool is_waiting(const CallStack& stack);

base::Json to_json(const Profile& profile);
Profile profile_from_json(const base::Json& json);

// The first `lines_max` entries as a table for people and agents.
std::string to_text(const Profile& profile, size_t lines_max);

// Amdahl: what is gained at most if a part of `share` took no time at all. 0.5 = 50 % faster.
f64 gain_bound(f64 share);

}  // namespace team
