// Foreign keys of one table while its rows change: children must find their parents, and parents
// carry their children along (CASCADE, SET NULL, SET DEFAULT) or refuse to go.
//
// An immediate violation is looked for at the end of the statement, since a later row may mend it;
// a deferred one at COMMIT. Counters live in the session. Single-threaded.
#pragma once

#include "db/exec/context.h"

#include <functional>

namespace db {

class ForeignKeys {
 public:
  ForeignKeys(const Table& table, Cx& cx) : table_(table), cx_(cx) {}

  // Does the table take part in any foreign key?
  static bool concerns(const Table& table, Session& session);
  // Before or after a change; a null row means "none".
  bool after_insert(const Value* row);
  bool after_update(const Value* old_row, const Value* row);
  bool after_delete(const Value* old_row);
  // The statement is over: do violations remain?
  bool finish();
  i64 open_violations = 0;

 private:
  struct Link {
    const ForeignKey* key = nullptr;
    const Table* child = nullptr;
    const Table* parent = nullptr;
    std::vector<int> parent_columns;
  };
  bool resolve(const ForeignKey& key, const Table& child, Link* link);
  bool parent_exists(const Link& link, const Value* child_row, const Value* ignoring, bool* exists);
  bool for_children(const Link& link, const Value* parent_row,
                    const std::function<bool(const std::vector<Value>&)>& visit);
  bool apply_action(const Link& link, const Value* old_row, const Value* new_row);
  std::vector<Link> links_to_parent();
  std::vector<Link> links_from_children();
  void add_violation(const ForeignKey& key, i64 count);

  const Table& table_;
  Cx& cx_;
};

}  // namespace db
