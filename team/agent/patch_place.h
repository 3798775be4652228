// Finds where a hunk belongs in a file and what the file then holds. Pure; thread-safe.
#pragma once

#include "base/result.h"
#include "base/types.h"
#include "team/agent/patch_parse.h"

#include <string>
#include <vector>

namespace team {

struct Placed {
  bool already = false;  // the file has the change
  int rung = 0;          // 0 exact, 1 trailing space, 2 indentation, 3 fuzzy
};

// Changes `lines` (without line ends). `offset` is how far earlier hunks moved the lines after
// them; it is updated. Errors: kNotFound and kConflict, with the file's own lines and advice in the
// sentence.
base::Result<Placed> place_hunk(const Hunk& hunk, const std::string& path,
                                std::vector<std::string>& lines, int& offset);

}  // namespace team
