// The vectorised executor's ends: a whole aggregation, or a join whose rows are shown in slots one
// by one to the row executor's operators above. REQUIRES: vector_fits(plan).
#pragma once

#include "db/exec/row_stream.h"

namespace db {

std::unique_ptr<SlotStream> make_vector_join(const RowPlan& plan);
std::unique_ptr<SlotStream> make_vector_aggregate(const RowPlan& plan);

}  // namespace db
