// A workspace is a folder an agent works in: a copy of one commit or folder without its history.
// Its tree hash names its content, so a tree that failed a gate is never gated twice and evidence
// says exactly what it is about. All access by relative path goes through openat2 with
// RESOLVE_BENEATH: "..", absolute paths and symbolic links that lead out are refused by the kernel,
// not by string tests.
//
// Tree hash: SHA-256 over "<mode> <size> <sha256> <path>\n" of all files and links, sorted by path;
// mode is 644, 755 or link. Folders without files do not count, nor does a .git at the top. Errors:
// kPermission for a path that leads out; kNotFound; kIo; kLimit for files over the read limit.
// Thread-compatible: one writer at a time.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <string>
#include <string_view>
#include <vector>

namespace team {

class Workspace {
 public:
  // A copy of `source` (without a .git at its top) in the new folder `path`.
  static base::Result<Workspace> fork_directory(const std::string& source, const std::string& path);
  // The files of `commit` of the git repository `repo` in the new folder `path`; no history.
  static base::Result<Workspace> fork_commit(const std::string& repo, const std::string& commit,
                                             const std::string& path);
  static base::Result<Workspace> open(const std::string& path);

  const std::string& path() const { return path_; }

  base::Result<std::string> tree_hash() const;
  base::Result<std::vector<std::string>> files() const;  // relative, sorted, without .git
  base::Result<std::string> read(const std::string& relative, size_t bytes_max = 16 << 20) const;
  // Replaces the whole file through a rename; makes folders on the way. Keeps the executable bit of
  // a file that was there.
  base::Status write(const std::string& relative, std::string_view content) const;
  base::Status remove(const std::string& relative) const;
  base::Result<bool> exists(const std::string& relative) const;

  // Unified diff from `base_path` (a folder of the same shape) to this one, in git's format.
  base::Result<std::string> diff_from(const std::string& base_path) const;
  // Stores the content as a commit on top of `parent` ("" for a first one) in `repo`; its id.
  base::Result<std::string> commit_to(const std::string& repo, const std::string& parent,
                                      const std::string& message) const;

  // Copies of the whole content, to undo half-done effects after a crash.
  base::Status snapshot_to(const std::string& path) const;
  base::Status restore_from(const std::string& path) const;

 private:
  explicit Workspace(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace team
