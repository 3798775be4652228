// The three patch dialects as one list of file operations. Pure; thread-safe.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace team {

// One line of a hunk. ' ' stays, '-' goes, '+' comes.
struct PatchLine {
  char tag = ' ';
  std::string text;
  bool operator==(const PatchLine&) const = default;
};

struct Hunk {
  std::vector<PatchLine> lines;
  std::string anchor;   // a line that comes before it ("@@ class Foo"), or ""
  int line_hint = 0;    // 1-based line in the old file, 0: none
  bool at_end = false;  // it must touch the end of the file

  std::vector<std::string> old_lines() const;
  std::vector<std::string> new_lines() const;
};

struct FileOperation {
  enum class Kind { kAdd, kUpdate, kRemove };
  Kind kind = Kind::kUpdate;
  std::string path;
  std::string move_to;      // kUpdate: "" or the new name
  std::string content;      // kAdd
  std::vector<Hunk> hunks;  // kUpdate
};

// Errors: kInvalidArgument with a sentence that shows the forms that are understood.
base::Result<std::vector<FileOperation>> parse_patch(std::string_view text);

}  // namespace team
