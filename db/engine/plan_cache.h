// Compiled statements that wait to be asked for again, so that an application which prepares the
// same text over and over, or the same text with other literals in it, pays for compiling once.
//
// A finalized statement leaves its State here, keyed by its text. prepare() looks for the text
// itself, then for its *shape*: the text with the literals that are compared by `=` or stand in
// VALUES replaced by parameters. From the second time on that a shape is seen it is compiled as
// such, and the literals become parameters that the application does not see.
//
// A plan is used only while Session::plan_version() is the one it was compiled under. Whatever can
// change the meaning of a text without changing that number clears the cache (Connection does it).
// Single-threaded.
#pragma once

#include "db/engine/connection.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace db {

struct SqlShape {
  std::string text;           // with ? in place of each literal
  std::vector<Value> values;  // what they were
  size_t tail = 0;            // where the statement ends in the original text
};

// False: the text has no such literals, or is not of a kind that is worth it.
bool find_shape(std::string_view sql, SqlShape* shape);

class PlanCache {
 public:
  PlanCache();
  ~PlanCache();

  // Takes a plan out; null when there is none that is still good.
  std::unique_ptr<Statement::State> take(std::string_view text, u64 version);
  void give(std::unique_ptr<Statement::State> plan);
  void clear();
  // Has this shape been asked about before?
  bool is_known_shape(std::string_view text);
  // Is a parameter as good as a literal to the planner? Not where an index has a WHERE or an
  // expression that a literal may match.
  bool allows_shapes(const Session& session, u64 version);

  // Longer texts are not kept.
  static constexpr size_t kMaxTextBytes = 2000;

 private:
  struct Entry {
    u64 hash;
    std::unique_ptr<Statement::State> plan;
  };
  static constexpr size_t kMaxPlans = 32;
  std::vector<Entry> plans_;  // the latest last
  std::array<u64, 64> known_{};
  u64 allowed_version_ = ~u64{0};
  bool allowed_ = false;
};

}  // namespace db
