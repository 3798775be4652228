#include "team/sandbox/workspace.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/process.h"
#include "team/sandbox/beneath.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace team {
namespace {

namespace stdfs = std::filesystem;
using base::Error;
using base::ErrorCode;

constexpr const char* kTemporary = ".fleet-write.tmp";

struct Entry {
  std::string path;  // relative
  bool link = false;
};

base::Error fs_error(const std::error_code& error, const std::string& doing) {
  return base::errno_error(error.value(), doing);
}

// Regular files and symbolic links below `root`, sorted, without a .git at the top. Sockets, pipes
// and devices are no content.
base::Result<std::vector<Entry>> walk(const std::string& root) {
  std::vector<Entry> entries;
  std::error_code error;
  stdfs::recursive_directory_iterator at(root, error), end;
  if (error) return fs_error(error, "listing " + root);
  while (at != end) {
    const std::string path = at->path().string().substr(root.size() + 1);
    if (path == ".git") {
      at.disable_recursion_pending();
    } else if (at->is_symlink(error)) {
      entries.push_back({path, true});
    } else if (at->is_regular_file(error)) {
      entries.push_back({path, false});
    }
    at.increment(error);
    if (error) return fs_error(error, "listing " + root);
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.path < b.path; });
  return entries;
}

// Everything below `from` into the folder `to`, which is made.
base::Status copy_tree(const std::string& from, const std::string& to) {
  TRY(base::make_directories(to));
  std::error_code error;
  for (const Entry& entry : TRY(walk(from))) {
    const stdfs::path target = stdfs::path(to) / entry.path;
    stdfs::create_directories(target.parent_path(), error);
    if (error) return fs_error(error, "making " + target.parent_path().string());
    const stdfs::path source = stdfs::path(from) / entry.path;
    if (entry.link) {
      stdfs::copy_symlink(source, target, error);
    } else {
      stdfs::copy_file(source, target, stdfs::copy_options::overwrite_existing, error);
    }
    if (error) return fs_error(error, "copying " + entry.path);
  }
  return {};
}

base::Result<std::string> git(std::vector<std::string> arguments,
                              std::vector<std::pair<std::string, std::string>> env = {}) {
  base::ProcessSpec spec;
  spec.argv = {"git", "-c", "core.autocrlf=false", "-c", "gc.auto=0"};
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  spec.extra_env = std::move(env);
  spec.extra_env.emplace_back("GIT_CONFIG_NOSYSTEM", "1");
  spec.timeout_ms = 120'000;
  spec.output_bytes_max = 64 << 20;
  const base::ProcessResult ran = TRY(base::run_process(spec));
  if (!ran.ok()) return Error(ErrorCode::kIo, "git " + arguments[0] + " failed: " + ran.err);
  return ran.out;
}

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

base::Result<std::string> read_all(const Fd& fd, const std::string& name, size_t bytes_max) {
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return base::errno_error(errno, name);
  if (!S_ISREG(info.st_mode)) {
    return Error(ErrorCode::kInvalidArgument, "'" + name + "' is not a file");
  }
  if (static_cast<size_t>(info.st_size) > bytes_max) {
    return Error(ErrorCode::kLimit, "'" + name + "' has " + std::to_string(info.st_size) +
                                        " bytes; at most " + std::to_string(bytes_max) +
                                        " are read");
  }
  std::string content(static_cast<size_t>(info.st_size), '\0');
  size_t got = 0;
  while (got < content.size()) {
    const ssize_t n = ::read(fd.get(), content.data() + got, content.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::errno_error(errno, "reading " + name);
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  content.resize(got);
  return content;
}

base::Status write_all(const Fd& fd, std::string_view content, const std::string& name) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd.get(), content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::errno_error(errno, "writing " + name);
    content.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

base::Result<Workspace> Workspace::open(const std::string& path) {
  if (!base::is_directory(path)) {
    return Error(ErrorCode::kNotFound, "there is no workspace at " + path);
  }
  return Workspace(path);
}

base::Result<Workspace> Workspace::fork_directory(const std::string& source,
                                                  const std::string& path) {
  if (base::file_exists(path)) {
    return Error(ErrorCode::kExists, "a workspace is already at " + path);
  }
  TRY(copy_tree(source, path));
  return Workspace(path);
}

base::Result<Workspace> Workspace::fork_commit(const std::string& repo, const std::string& commit,
                                               const std::string& path) {
  if (base::file_exists(path)) {
    return Error(ErrorCode::kExists, "a workspace is already at " + path);
  }
  TRY(base::make_directories(path));
  const std::string index = path + ".index";
  const std::vector<std::pair<std::string, std::string>> env = {
      {"GIT_DIR", repo}, {"GIT_WORK_TREE", path}, {"GIT_INDEX_FILE", index}};
  TRY(git({"read-tree", commit}, env));
  base::Result<std::string> out = git({"checkout-index", "--all", "--force"}, env);
  ::unlink(index.c_str());
  if (!out.ok()) return std::move(out).error();
  return Workspace(path);
}

base::Result<std::string> Workspace::tree_hash() const {
  const Fd root = TRY(open_folder(path_));
  std::string list;
  for (const Entry& entry : TRY(walk(path_))) {
    std::string content;
    std::string mode = "link";
    if (entry.link) {
      content = stdfs::read_symlink(stdfs::path(path_) / entry.path).string();
    } else {
      const Fd fd = TRY(open_beneath(root, entry.path, O_RDONLY));
      struct stat info{};
      ::fstat(fd.get(), &info);
      mode = (info.st_mode & 0111) != 0 ? "755" : "644";
      content = TRY(read_all(fd, entry.path, SIZE_MAX));
    }
    list += mode + " " + std::to_string(content.size()) + " " + base::sha256_hex(content) + " " +
            entry.path + "\n";
  }
  return base::sha256_hex(list);
}

base::Result<std::vector<std::string>> Workspace::files() const {
  std::vector<std::string> names;
  for (Entry& entry : TRY(walk(path_))) names.push_back(std::move(entry.path));
  return names;
}

base::Result<std::string> Workspace::read(const std::string& relative, size_t bytes_max) const {
  const Fd root = TRY(open_folder(path_));
  const Fd fd = TRY(open_beneath(root, relative, O_RDONLY | O_NONBLOCK));
  return read_all(fd, relative, bytes_max);
}

base::Status Workspace::write(const std::string& relative, std::string_view content) const {
  const std::string name = last_component(relative);
  if (name.empty() || name == "." || name == "..") {
    return Error(ErrorCode::kInvalidArgument, "'" + relative + "' does not name a file");
  }
  const Fd root = TRY(open_folder(path_));
  const Fd parent = TRY(open_parent_beneath(root, relative, true));
  struct stat info{};
  int mode = 0644;
  if (::fstatat(parent.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISDIR(info.st_mode)) {
      return Error(ErrorCode::kInvalidArgument, "'" + relative + "' is a folder");
    }
    if (S_ISREG(info.st_mode)) mode = static_cast<int>(info.st_mode & 0777);
  }
  {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW;
    const Fd fd = TRY(open_beneath(parent, kTemporary, flags, mode));
    TRY(write_all(fd, content, relative));
    ::fchmod(fd.get(), static_cast<mode_t>(mode));
  }
  if (::renameat(parent.get(), kTemporary, parent.get(), name.c_str()) != 0) {
    const int error = errno;
    ::unlinkat(parent.get(), kTemporary, 0);
    return base::errno_error(error, "writing " + relative);
  }
  return {};
}

base::Status Workspace::remove(const std::string& relative) const {
  const Fd root = TRY(open_folder(path_));
  const Fd parent = TRY(open_parent_beneath(root, relative, false));
  if (::unlinkat(parent.get(), last_component(relative).c_str(), 0) != 0) {
    return base::errno_error(errno, "removing " + relative);
  }
  return {};
}

base::Result<bool> Workspace::exists(const std::string& relative) const {
  const Fd root = TRY(open_folder(path_));
  base::Result<Fd> fd = open_beneath(root, relative, O_PATH);
  if (fd.ok()) return true;
  if (fd.error().code() == ErrorCode::kNotFound) return false;
  return std::move(fd).error();
}

base::Result<std::string> Workspace::diff_from(const std::string& base_path) const {
  base::ProcessSpec spec;
  spec.argv = {"git",
               "-c",
               "core.quotepath=false",
               "diff",
               "--no-index",
               "--no-color",
               "--no-ext-diff",
               "--src-prefix=a/",
               "--dst-prefix=b/",
               base_path,
               path_};
  spec.timeout_ms = 60'000;
  spec.output_bytes_max = 64 << 20;
  const base::ProcessResult ran = TRY(base::run_process(spec));
  if (ran.exit_code > 1) return Error(ErrorCode::kIo, "git diff failed: " + ran.err);
  // The two folders' own paths are no part of the answer.
  std::string text = ran.out;
  for (const std::string& prefix : {base_path, path_}) {
    for (const char* side : {"a", "b"}) {
      const std::string from = side + prefix + "/";
      const std::string with_slash = std::string(side) + "/" + prefix.substr(1) + "/";
      for (const std::string& found : {from, with_slash}) {
        for (size_t at = text.find(found); at != std::string::npos; at = text.find(found, at + 2)) {
          text.replace(at, found.size(), std::string(side) + "/");
        }
      }
    }
  }
  return text;
}

base::Result<std::string> Workspace::commit_to(const std::string& repo, const std::string& parent,
                                               const std::string& message) const {
  const std::string index = path_ + ".index";
  // Name and time are fixed: the same tree on the same parent is the same commit, on a replay too.
  const std::vector<std::pair<std::string, std::string>> env = {
      {"GIT_DIR", repo},
      {"GIT_WORK_TREE", path_},
      {"GIT_INDEX_FILE", index},
      {"GIT_AUTHOR_NAME", "fleet"},
      {"GIT_AUTHOR_EMAIL", "fleet@localhost"},
      {"GIT_AUTHOR_DATE", "1700000000 +0000"},
      {"GIT_COMMITTER_NAME", "fleet"},
      {"GIT_COMMITTER_EMAIL", "fleet@localhost"},
      {"GIT_COMMITTER_DATE", "1700000000 +0000"}};
  ::unlink(index.c_str());
  TRY(git({"add", "--all", "--force", "."}, env));
  const std::string tree = trimmed(TRY(git({"write-tree"}, env)));
  ::unlink(index.c_str());
  std::vector<std::string> commit = {"commit-tree", tree, "-m", message};
  if (!parent.empty()) commit.insert(commit.end(), {"-p", parent});
  return trimmed(TRY(git(commit, env)));
}

base::Status Workspace::snapshot_to(const std::string& path) const {
  TRY(base::remove_tree(path));
  return copy_tree(path_, path);
}

base::Status Workspace::restore_from(const std::string& path) const {
  // What a half-done tool left is moved out of the way first, so that a failed copy loses nothing.
  const std::string aside = path_ + ".aside";
  TRY(base::remove_tree(aside));
  if (::rename(path_.c_str(), aside.c_str()) != 0) return base::errno_error(errno, path_);
  if (base::Status copied = copy_tree(path, path_); !copied.ok()) {
    (void)base::remove_tree(path_);
    ::rename(aside.c_str(), path_.c_str());
    return copied;
  }
  return base::remove_tree(aside);
}

}  // namespace team
