// The 22 queries of TPC-H with the specification's validation parameters, in SQLite's dialect:
// date arithmetic is done by hand, EXTRACT is strftime(), the view of query 15 is a WITH.
#pragma once

#include <span>

namespace bench {

// Query n is at n - 1. `fraction` in query 11 is 0.0001 divided by the scale factor.
std::span<const char* const> tpch_queries();

}  // namespace bench
