// Which executor runs a query: by the plan's shape and estimates, or as PRAGMA fleet_executor and
// the environment variable FLEET_EXECUTOR (row, vector, auto) say. "vector" means wherever batches
// can run at all.
#pragma once

#include "db/exec/context.h"

namespace db {

// Can the query's join (and aggregation) run in batches, and should it?
bool vector_fits(const RowPlan& plan, const Cx& cx);

// False when there is none of that name.
bool executor_of(std::string_view name, Session::Executor* out);
std::string_view executor_name(Session::Executor executor);

}  // namespace db
