// A metadata load in the manner of mdtest, on any folder: phases of one kind of call each, by one
// or several processes that start every phase together. Reports operations a second for each phase.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <string>

namespace fs::cli {

struct LoadSpec {
  std::string folder;
  std::string shape =
      "flat";        // "tree": branch 6, depth 4, 8 items a node; "flat": one folder a rank
  int files = 5000;  // a rank, flat
  int bytes = 0;     // in each file
  int ranks = 1;
};

base::Status run_load(const LoadSpec& spec, bool json);

}  // namespace fs::cli
