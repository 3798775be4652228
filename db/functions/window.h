// The functions that exist only with OVER: row_number(), rank(), lag() and so on. The registry
// knows their names and argument counts; what they compute depends on the row's place in its
// partition and frame, so the executor computes them from a WindowPlace. Thread-compatible.
#pragma once

#include "db/functions/function.h"

namespace db {

enum class WindowKernel : u8 {
  kNone,  // an ordinary aggregate, run over the frame
  kRowNumber,
  kRank,
  kDenseRank,
  kPercentRank,
  kCumeDist,
  kNtile,
  kLag,
  kLead,
  kFirstValue,
  kLastValue,
  kNthValue,
};

WindowKernel window_kernel_of(const Function& function);

// Where a row stands in its partition. Rows, peers and groups count from 0.
struct WindowPlace {
  i64 row = 0;
  i64 rows = 0;         // in the partition
  i64 peers_begin = 0;  // the first row that ORDER BY does not tell apart from this one
  i64 peers_end = 0;    // one past the last such row
  i64 group = 0;        // how many distinct peer groups lie before
};

// The kernels that need no more than the place: kRowNumber to kCumeDist.
Value rank_value(WindowKernel kernel, const WindowPlace& place);
// kNtile with `buckets` > 0: the first rows % buckets buckets hold one row more.
Value ntile_value(i64 buckets, const WindowPlace& place);

}  // namespace db
