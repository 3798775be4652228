// EXPLAIN QUERY PLAN: the plan as SQLite words it, one line per scan, search and temporary b-tree.
#pragma once

#include "db/plan/dml_plan.h"

#include <string>
#include <vector>

namespace db {

struct PlanLine {
  int id = 0;
  int parent = 0;
  std::string detail;
};

std::vector<PlanLine> explain_plan(const RowPlan* select, const DmlPlan* dml);

}  // namespace db
