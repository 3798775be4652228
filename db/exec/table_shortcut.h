// count(*), min() and max() of a whole table without reading its rows: from the number of cells of
// the leaves, and from the ends of an index or of the rowids.
#pragma once

#include "db/exec/row_stream.h"

namespace db {

// Null when the query has any other shape.
std::unique_ptr<SlotStream> make_table_shortcut(const RowPlan& plan, Cx& cx);

}  // namespace db
