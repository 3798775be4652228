#include "team/core/budget.h"

#include "base/check.h"
#include "team/core/usage.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace team {
namespace {

// Calls `visit` with each prefix of the path, from the root down to itself.
template <class Visit>
void for_each_level(std::string_view scope, Visit visit) {
  for (size_t at = scope.find('/'); at != std::string_view::npos; at = scope.find('/', at + 1)) {
    visit(scope.substr(0, at));
  }
  visit(scope);
}

}  // namespace

void BudgetTree::set_cap(std::string_view scope, i64 cap_nusd) {
  scopes_[std::string(scope)].cap = cap_nusd;
}

i64 BudgetTree::room(std::string_view scope) const {
  i64 room = std::numeric_limits<i64>::max();
  for_each_level(scope, [&](std::string_view level) {
    auto found = scopes_.find(level);
    if (found == scopes_.end() || found->second.cap < 0) return;
    const BudgetScope& at = found->second;
    room = std::min(room, std::max<i64>(0, at.cap - at.reserved - at.spent));
  });
  return room;
}

base::Status BudgetTree::reserve(std::string_view scope, i64 amount_nusd) {
  if (amount_nusd < 0) {
    return base::Error(base::ErrorCode::kInvalidArgument, "a reservation cannot be negative");
  }
  if (room(scope) < amount_nusd) {
    std::string tight;
    for_each_level(scope, [&](std::string_view level) {
      auto found = scopes_.find(level);
      if (!tight.empty() || found == scopes_.end() || found->second.cap < 0) return;
      const BudgetScope& at = found->second;
      if (at.cap - at.reserved - at.spent < amount_nusd) tight = level;
    });
    return base::Error(base::ErrorCode::kLimit,
                       "the budget of " + tight + " has no room for a call that may cost " +
                           format_usd(amount_nusd) + "; raise budget_nusd in run.json and resume");
  }
  for_each_level(
      scope, [&](std::string_view level) { scopes_[std::string(level)].reserved += amount_nusd; });
  return {};
}

void BudgetTree::settle(std::string_view scope, i64 reserved_nusd, i64 spent_nusd) {
  for_each_level(scope, [&](std::string_view level) {
    BudgetScope& at = scopes_[std::string(level)];
    CHECK(at.reserved >= reserved_nusd);
    at.reserved -= reserved_nusd;
    at.spent += std::max<i64>(0, spent_nusd);
  });
}

BudgetScope BudgetTree::at(std::string_view scope) const {
  auto found = scopes_.find(scope);
  return found == scopes_.end() ? BudgetScope{} : found->second;
}

}  // namespace team
