// A small generator of the TPC-H schema and data, written from the published specification: eight
// tables, their row counts, key formulas, value ranges and date rules. Text follows the
// specification's word lists in a simpler grammar, so sizes and the selectivity of the queries'
// patterns agree, bytes do not. The same scale gives the same rows on every machine.
#pragma once

#include "bench/db/session.h"

namespace bench {

// CREATE TABLE statements: primary keys and nothing else.
extern const char kTpchSchema[];

// Fills the tables inside one transaction. `scale` is the specification's scale factor: 0.1 is
// 150,000 orders with about 600,000 lines.
void load_tpch(Session& session, f64 scale);

}  // namespace bench
