// The budget tree: run > stage > role > task > attempt > call. Money is reserved before a call is
// sent, on every level at once, and settled with what the call really cost; what was not used goes
// back. So the sum of spent and reserved can never pass a cap, however many agents work in
// parallel.
//
// A scope is a path, "run/build/coder/T2/T2.a1"; its ancestors are its prefixes. A scope without a
// cap of its own is limited by its ancestors only. Units: nano-USD.
// Single-threaded.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <map>
#include <string>
#include <string_view>

namespace team {

struct BudgetScope {
  i64 cap = -1;  // negative: none
  i64 reserved = 0;
  i64 spent = 0;
};

class BudgetTree {
 public:
  void set_cap(std::string_view scope, i64 cap_nusd);

  // Sets `amount` aside in `scope` and all above it, or nowhere.
  // Errors: kLimit naming the scope that has no room; kInvalidArgument for a negative amount.
  base::Status reserve(std::string_view scope, i64 amount_nusd);
  // Gives back `reserved` and books `spent` (which may exceed it: back ends can lie; the excess is
  // booked in full and blocks what comes after).
  void settle(std::string_view scope, i64 reserved_nusd, i64 spent_nusd);

  // Room left in `scope`, its ancestors' limits included; INT64_MAX when nothing limits it.
  i64 room(std::string_view scope) const;
  BudgetScope at(std::string_view scope) const;
  const std::map<std::string, BudgetScope, std::less<>>& scopes() const { return scopes_; }

 private:
  std::map<std::string, BudgetScope, std::less<>> scopes_;
};

}  // namespace team
