// The product's history: a bare git repository inside the run folder, used through git's plumbing
// only. Agents never see it; they get the files of one commit without history. Commits carry a
// fixed author and date, so the same content gives the same id on every replay.
// Errors: kIo with git's own words; kConflict from merge(). Thread-safe: git locks its own files.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <string>
#include <string_view>
#include <vector>

namespace team {

class ProductRepo {
 public:
  // Creates it when it is not there.
  static base::Result<ProductRepo> open(const std::string& path);

  const std::string& path() const { return path_; }

  // Stores the files of `folder` (without build outputs matched by `skip`) as a commit on `parent`.
  base::Result<std::string> commit(const std::string& folder, const std::string& parent,
                                   const std::string& message) const;
  // Hash of the content of a commit.
  base::Result<std::string> tree(const std::string& commit) const;
  // The files of a commit in a new folder.
  base::Status checkout(const std::string& commit, const std::string& folder) const;
  // `change` brought onto `onto`: a new commit. Errors: kConflict naming the files.
  base::Result<std::string> merge(const std::string& onto, const std::string& change,
                                  const std::string& message) const;
  base::Result<std::string> diff(const std::string& from, const std::string& to) const;
  base::Result<std::vector<std::string>> changed(const std::string& from,
                                                 const std::string& to) const;
  // The named branch as it is now ("" when there is none), and moving it.
  base::Result<std::string> branch(const std::string& name) const;
  base::Status move_branch(const std::string& name, const std::string& commit) const;

 private:
  explicit ProductRepo(std::string path) : path_(std::move(path)) {}
  base::Result<std::string> git(std::vector<std::string> arguments,
                                std::vector<std::pair<std::string, std::string>> env = {}) const;
  base::Result<std::string> commit_tree(const std::string& tree,
                                        const std::vector<std::string>& parents,
                                        const std::string& message) const;
  std::string path_;
};

}  // namespace team
