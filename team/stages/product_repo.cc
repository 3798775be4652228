#include "team/stages/product_repo.h"

#include "base/files.h"
#include "base/process.h"

#include <sstream>
#include <utility>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using Strings = std::vector<std::string>;

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

Strings lines_of(const std::string& text) {
  Strings out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) out.push_back(line);
  }
  return out;
}

base::Result<base::ProcessResult> run_git(const std::string& repo, Strings arguments,
                                          std::vector<std::pair<std::string, std::string>> env) {
  base::ProcessSpec spec;
  spec.argv = {"git", "--git-dir=" + repo};
  for (std::string& argument : arguments) spec.argv.push_back(std::move(argument));
  spec.extra_env = {{"GIT_CONFIG_NOSYSTEM", "1"},
                    {"GIT_CONFIG_GLOBAL", "/dev/null"},
                    {"GIT_AUTHOR_NAME", "fleet"},
                    {"GIT_AUTHOR_EMAIL", "fleet@localhost"},
                    {"GIT_COMMITTER_NAME", "fleet"},
                    {"GIT_COMMITTER_EMAIL", "fleet@localhost"},
                    {"GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"},
                    {"GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"}};
  for (auto& pair : env) spec.extra_env.push_back(std::move(pair));
  spec.timeout_ms = 60'000;
  return base::run_process(spec);
}

}  // namespace

base::Result<ProductRepo> ProductRepo::open(const std::string& path) {
  ProductRepo repo(path);
  if (!base::file_exists(path + "/HEAD")) {
    TRY(repo.git({"init", "--quiet", "--bare", "--initial-branch=main", path}));
  }
  return repo;
}

base::Result<std::string> ProductRepo::git(
    Strings arguments, std::vector<std::pair<std::string, std::string>> env) const {
  std::string name = arguments[0];
  base::ProcessResult result = TRY(run_git(path_, std::move(arguments), std::move(env)));
  if (!result.ok()) {
    return Error(ErrorCode::kIo, "git " + name + " failed: " + trimmed(result.err));
  }
  return trimmed(std::move(result.out));
}

base::Result<std::string> ProductRepo::commit_tree(const std::string& tree, const Strings& parents,
                                                   const std::string& message) const {
  Strings arguments = {"commit-tree", tree, "-m", message};
  for (const std::string& parent : parents) {
    arguments.push_back("-p");
    arguments.push_back(parent);
  }
  return git(std::move(arguments));
}

base::Result<std::string> ProductRepo::commit(const std::string& folder, const std::string& parent,
                                              const std::string& message) const {
  base::TempDir scratch("fleet-index");
  std::vector<std::pair<std::string, std::string>> env = {{"GIT_INDEX_FILE", scratch / "index"},
                                                          {"GIT_WORK_TREE", folder}};
  TRY(git({"add", "--all", "--force", "--", ".", ":(exclude)build"}, env));
  std::string tree = TRY(git({"write-tree"}, env));
  Strings parents;
  if (!parent.empty()) parents.push_back(parent);
  return commit_tree(tree, parents, message);
}

base::Result<std::string> ProductRepo::tree(const std::string& commit) const {
  return git({"rev-parse", commit + "^{tree}"});
}

base::Status ProductRepo::checkout(const std::string& commit, const std::string& folder) const {
  TRY(base::make_directories(folder));
  base::TempDir scratch("fleet-index");
  std::vector<std::pair<std::string, std::string>> env = {{"GIT_INDEX_FILE", scratch / "index"},
                                                          {"GIT_WORK_TREE", folder}};
  TRY(git({"read-tree", commit}, env));
  TRY(git({"checkout-index", "--all", "--force"}, env));
  return {};
}

base::Result<std::string> ProductRepo::merge(const std::string& onto, const std::string& change,
                                             const std::string& message) const {
  if (onto.empty()) return change;
  base::ProcessResult result =
      TRY(run_git(path_, {"merge-tree", "--write-tree", "--name-only", onto, change}, {}));
  Strings out = lines_of(result.out);
  if (result.exit_code == 1) {
    std::string files;
    for (size_t i = 1; i < out.size() && out[i].find(' ') == std::string::npos; ++i) {
      files += (files.empty() ? "" : ", ") + out[i];
    }
    return Error(ErrorCode::kConflict, "it does not merge: both sides changed " + files);
  }
  if (!result.ok() || out.empty()) {
    return Error(ErrorCode::kIo, "git merge-tree failed: " + trimmed(result.err));
  }
  return commit_tree(out[0], {onto, change}, message);
}

base::Result<std::string> ProductRepo::diff(const std::string& from, const std::string& to) const {
  // An empty side is git's empty tree.
  const char* empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
  return git({"diff", "--no-color", from.empty() ? empty : from, to});
}

base::Result<Strings> ProductRepo::changed(const std::string& from, const std::string& to) const {
  const char* empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
  return lines_of(
      TRY(git({"diff", "--name-only", "--no-renames", from.empty() ? empty : from, to})));
}

base::Result<std::string> ProductRepo::branch(const std::string& name) const {
  base::ProcessResult result =
      TRY(run_git(path_, {"rev-parse", "--verify", "--quiet", "refs/heads/" + name}, {}));
  return result.ok() ? trimmed(result.out) : std::string();
}

base::Status ProductRepo::move_branch(const std::string& name, const std::string& commit) const {
  TRY(git({"update-ref", "refs/heads/" + name, commit}));
  return {};
}

}  // namespace team
