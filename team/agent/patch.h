// The patch engine: takes what models write (the apply-patch envelope, SEARCH/REPLACE blocks,
// unified diffs), finds where it belongs and changes the files all together or not at all.
//
// Finding a hunk climbs a ladder, and each rung needs a unique place: exact text, trailing space
// ignored, indentation ignored (the replacement is re-indented), then one best fuzzy place. A
// change that is there already counts as applied, so a retry after a crash does no harm. A hunk
// that is not found answers with the nearest real lines and asks to read the file again.
//
// plan_patch is pure: file access comes in as a function. Errors: kInvalidArgument (not a patch),
// kNotFound (a hunk has no place), kConflict (it has several), kExists (adds a file that is there
// with other content).
#pragma once

#include "base/result.h"
#include "team/sandbox/workspace.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace team {

struct FileChange {
  std::string path;
  std::optional<std::string> content;  // nullopt: remove
  std::string moved_from;              // "" unless it was renamed
};

struct PatchPlan {
  std::vector<FileChange> changes;  // empty when all was there already
  int hunks = 0;
  int already_applied = 0;
  int inexact = 0;  // hunks that needed a rung below exact
};

// Content of a file, or nullopt when there is none.
using FileReader = std::function<base::Result<std::optional<std::string>>(const std::string& path)>;

base::Result<PatchPlan> plan_patch(std::string_view patch, const FileReader& read);

// Plans against the workspace and writes. If a write fails, what was written is put back.
base::Result<PatchPlan> apply_patch(std::string_view patch, const Workspace& workspace);

}  // namespace team
