#include "fs/cli/load.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <vector>

namespace fs::cli {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Status;

constexpr int kRanksMax = 64;
constexpr int kTreeBranch = 6;
constexpr int kTreeDepth = 4;
constexpr int kTreeItems = 8;

enum Phase { kMakeDirs, kStatDirs, kMakeFiles, kStatFiles, kReadFiles, kRemoveFiles, kRemoveDirs };
constexpr int kPhases = 7;
constexpr const char* kPhaseNames[kPhases] = {
    "dir create", "dir stat", "file create", "file stat", "file read", "file remove", "dir remove"};

// Shared by all ranks: where they wait for each other, and what each measured.
struct Board {
  std::atomic<int> arrived[kPhases + 1];
  std::atomic<int> failed;
  i64 began_us[kRanksMax][kPhases];
  i64 ended_us[kRanksMax][kPhases];
};

struct Items {
  std::vector<std::string> frame;  // the tree's inner folders, parents first: made in no phase
  std::vector<std::string> dirs;
  std::vector<std::string> files;
};

void grow_tree(Items& items, const std::string& at, int depth) {
  items.frame.push_back(at);
  for (int i = 0; i < kTreeItems; i++) {
    items.dirs.push_back(at + "/d" + std::to_string(i));
    items.files.push_back(at + "/f" + std::to_string(i));
  }
  if (depth == 0) return;
  for (int i = 0; i < kTreeBranch; i++) grow_tree(items, at + "/t" + std::to_string(i), depth - 1);
}

Items plan(const LoadSpec& spec, int rank) {
  std::string at = spec.folder + "/rank" + std::to_string(rank);
  Items items;
  if (spec.shape == "tree") {
    grow_tree(items, at, kTreeDepth);
    return items;
  }
  items.frame.push_back(at);
  for (int i = 0; i < spec.files; i++) {
    items.dirs.push_back(at + "/d" + std::to_string(i));
    items.files.push_back(at + "/f" + std::to_string(i));
  }
  return items;
}

bool create_file(const std::string& path, const std::string& content) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (fd < 0) return false;
  bool good = content.empty() ||
              ::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  return ::close(fd) == 0 && good;
}

bool read_file(const std::string& path, std::string& buffer) {
  int fd = ::open(path.c_str(), O_RDONLY);
  if (fd < 0) return false;
  bool good = buffer.empty() ||
              ::read(fd, buffer.data(), buffer.size()) == static_cast<ssize_t>(buffer.size());
  return ::close(fd) == 0 && good;
}

bool run_phase(Phase phase, const Items& items, std::string& buffer) {
  struct stat info{};
  auto all = [](const std::vector<std::string>& paths, auto&& call) {
    for (const std::string& path : paths) {
      if (!call(path)) return false;
    }
    return true;
  };
  switch (phase) {
    case kMakeDirs:
      return all(items.dirs, [](const auto& p) { return ::mkdir(p.c_str(), 0755) == 0; });
    case kStatDirs:
      return all(items.dirs, [&](const auto& p) { return ::stat(p.c_str(), &info) == 0; });
    case kMakeFiles:
      return all(items.files, [&](const auto& p) { return create_file(p, buffer); });
    case kStatFiles:
      return all(items.files, [&](const auto& p) { return ::stat(p.c_str(), &info) == 0; });
    case kReadFiles:
      return all(items.files, [&](const auto& p) { return read_file(p, buffer); });
    case kRemoveFiles:
      return all(items.files, [](const auto& p) { return ::unlink(p.c_str()) == 0; });
    case kRemoveDirs:
      return all(items.dirs, [](const auto& p) { return ::rmdir(p.c_str()) == 0; });
  }
  return false;
}

// Waits for all ranks. Yields rather than sleeps: a phase must start at once.
void meet(Board& board, int phase, int ranks) {
  board.arrived[phase].fetch_add(1);
  while (board.arrived[phase].load() < ranks && board.failed.load() == 0) ::sched_yield();
}

void run_rank(const LoadSpec& spec, int rank, Board& board) {
  Items items = plan(spec, rank);
  std::string buffer(static_cast<size_t>(spec.bytes), 'x');
  for (const std::string& path : items.frame) {
    if (::mkdir(path.c_str(), 0755) != 0) board.failed = errno;
  }
  for (int phase = 0; phase < kPhases; phase++) {
    meet(board, phase, spec.ranks);
    if (board.failed.load() != 0) return;
    board.began_us[rank][phase] = base::system_clock().monotonic_us();
    if (!run_phase(static_cast<Phase>(phase), items, buffer)) board.failed = errno ? errno : EIO;
    board.ended_us[rank][phase] = base::system_clock().monotonic_us();
  }
}

Status report(const LoadSpec& spec, const Board& board, bool json) {
  u64 items = plan(spec, 0).files.size() * static_cast<u64>(spec.ranks);
  Json result = Json::object(
      {{"shape", spec.shape}, {"ranks", spec.ranks}, {"bytes", spec.bytes}, {"items", items}});
  for (int phase = 0; phase < kPhases; phase++) {
    i64 began = board.began_us[0][phase], ended = board.ended_us[0][phase];
    for (int rank = 1; rank < spec.ranks; rank++) {
      began = std::min(began, board.began_us[rank][phase]);
      ended = std::max(ended, board.ended_us[rank][phase]);
    }
    f64 rate = static_cast<f64>(items) * 1e6 / static_cast<f64>(std::max<i64>(ended - began, 1));
    if (json) {
      result.set(kPhaseNames[phase], static_cast<i64>(rate));
    } else {
      std::printf("%-12s %10.0f /s\n", kPhaseNames[phase], rate);
    }
  }
  if (json) std::printf("%s\n", result.dump().c_str());
  return {};
}

}  // namespace

Status run_load(const LoadSpec& given, bool json) {
  LoadSpec spec = given;
  if (spec.ranks < 1 || spec.ranks > kRanksMax || spec.files < 1 || spec.bytes < 0 ||
      (spec.shape != "tree" && spec.shape != "flat")) {
    return Error(ErrorCode::kInvalidArgument,
                 "bench takes --shape tree or flat, 1 to 64 ranks and at least one file");
  }
  spec.folder += "/agentfs-bench." + std::to_string(::getpid());
  TRY(base::make_directories(spec.folder));
  void* memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return base::errno_error(errno, "getting shared memory");
  auto* board = ::new (memory) Board();
  std::vector<pid_t> children;
  for (int rank = 0; rank < spec.ranks; rank++) {
    pid_t child = ::fork();
    if (child == 0) {
      run_rank(spec, rank, *board);
      ::_exit(0);
    }
    if (child < 0) board->failed = errno;
    children.push_back(child);
  }
  for (pid_t child : children) ::waitpid(child, nullptr, 0);
  int failed = board->failed.load();
  Status reported = failed == 0
                        ? report(spec, *board, json)
                        : Status(base::errno_error(failed, "running the load in " + spec.folder));
  ::munmap(memory, sizeof(Board));
  TRY(base::remove_tree(spec.folder));
  return reported;
}

}  // namespace fs::cli
