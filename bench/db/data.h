// The tables that workloads run on, and the builders that many of them share.
//
//   big   `scale` rows: id, k (random, indexed), g (50 values), x REAL, name (8 letters, indexed),
//         note (26 letters), j (scale / 4 values)
//   side  scale / 4 rows that point at rows of big
//   log   an empty table to write to
#pragma once

#include "bench/db/workloads.h"

namespace bench {

// Eight letters that depend on `value`.
std::string word(u64 value);

void make_big(Session& s, i64 rows);
void make_log(Session& s, i64 rows);
void make_log_indexed(Session& s, i64 rows);  // two indexes

// One query over big and side, run whole; one operation.
Workload query(std::string group, std::string name, std::string sql, Place place = Place::kMemory);
// One prepared statement with a random key in ?1, many times.
Workload keyed(std::string name, std::string sql, Place place, bool text_key = false);

}  // namespace bench
