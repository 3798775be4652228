// Whole-file helpers for ordinary files (configuration, reports, fixtures). Data that must survive
// crashes goes through base/disk.h. Errors carry the path.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace base {

Result<std::string> read_file(const std::string& path);
// Creates or truncates.
Status write_file(const std::string& path, std::string_view content);
// Writes beside it, syncs, renames over it, syncs the folder: readers see the old or the new whole.
Status replace_file(const std::string& path, std::string_view content);
Status append_file(const std::string& path, std::string_view content);

bool file_exists(const std::string& path);
bool is_directory(const std::string& path);
Status make_directories(const std::string& path);
// The folder and all below it; fine when it is not there.
Status remove_tree(const std::string& path);
// Names of the entries, sorted, without "." and "..".
Result<std::vector<std::string>> list_directory(const std::string& path);
// Paths of all regular files below `path`, relative to it, sorted.
Result<std::vector<std::string>> list_tree(const std::string& path);

// A fresh folder below $TMPDIR (or /tmp), removed with all it holds when the object goes.
class TempDir {
 public:
  explicit TempDir(std::string_view prefix = "fleet");
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace base
