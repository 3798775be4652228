#include "team/sandbox/cgroup.h"

#include "base/clock.h"
#include "base/files.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <sstream>

namespace team {
namespace {

constexpr const char* kRoot = "/sys/fs/cgroup";

std::string fresh_name() {
  static std::atomic<int> next{0};
  return "fleet-" + std::to_string(::getpid()) + "-" + std::to_string(next++);
}

bool set(const std::string& file, const std::string& value) {
  return ::access(file.c_str(), W_OK) == 0 && base::write_file(file, value).ok();
}

// The path of our own group for a controller of version 1, or of version 2 for "".
std::string own_path(const std::string& controller) {
  base::Result<std::string> text = base::read_file("/proc/self/cgroup");
  if (!text.ok()) return "/";
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names == "," + controller + "," ||
        names.find("," + controller + ",") != std::string::npos) {
      return line.substr(second + 1);
    }
  }
  return "/";
}

std::optional<std::string> make_folder(const std::string& parent) {
  const std::string folder = parent + "/" + fresh_name();
  if (::mkdir(folder.c_str(), 0755) != 0) return std::nullopt;
  return folder;
}

std::vector<std::string> make_v2(i64 memory_bytes, int processes) {
  if (!base::file_exists(std::string(kRoot) + "/cgroup.controllers")) return {};
  // Our own group first (a delegated one), then the root of the name space (a container's).
  const std::string own = own_path("");
  for (const std::string& parent : {kRoot + own, std::string(kRoot)}) {
    std::optional<std::string> folder = make_folder(parent);
    if (!folder) continue;
    if (set(*folder + "/memory.max", std::to_string(memory_bytes)) &&
        set(*folder + "/pids.max", std::to_string(processes))) {
      (void)set(*folder + "/memory.swap.max", "0");
      return {*folder};
    }
    ::rmdir(folder->c_str());
  }
  return {};
}

std::vector<std::string> make_v1(i64 memory_bytes, int processes) {
  const std::string root(kRoot);
  std::optional<std::string> memory = make_folder(root + "/memory" + own_path("memory"));
  if (!memory) memory = make_folder(root + "/memory");
  if (!memory) return {};
  std::optional<std::string> pids = make_folder(root + "/pids" + own_path("pids"));
  if (!pids) pids = make_folder(root + "/pids");
  if (pids && set(*memory + "/memory.limit_in_bytes", std::to_string(memory_bytes)) &&
      set(*pids + "/pids.max", std::to_string(processes))) {
    return {*memory, *pids};
  }
  ::rmdir(memory->c_str());
  if (pids) ::rmdir(pids->c_str());
  return {};
}

void kill_all_in(const std::string& folder) {
  base::Result<std::string> text = base::read_file(folder + "/cgroup.procs");
  if (!text.ok()) return;
  std::istringstream pids(*text);
  // A process of another PID namespace reads as 0, which kill() would take for our own group.
  for (pid_t pid = 0; pids >> pid;) {
    if (pid > 0) ::kill(pid, SIGKILL);
  }
}

void remove_folder(const std::string& folder) {
  constexpr int kTries = 100;  // the kernel takes a moment to bury the last process
  for (int i = 0; i < kTries && ::rmdir(folder.c_str()) != 0 && errno != ENOENT; ++i) {
    kill_all_in(folder);
    base::system_clock().sleep_us(2'000);
  }
}

// Where groups of ours may lie.
std::vector<std::string> parents() {
  const std::string root(kRoot);
  return {root + own_path(""),
          root,
          root + "/memory" + own_path("memory"),
          root + "/memory",
          root + "/pids" + own_path("pids"),
          root + "/pids"};
}

// "fleet-123-4" > true when there is no process 123.
bool is_orphan(const std::string& name) {
  constexpr std::string_view kPrefix = "fleet-";
  if (!name.starts_with(kPrefix)) return false;
  const int pid = std::atoi(name.c_str() + kPrefix.size());
  return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

void Cgroup::sweep() {
  for (const std::string& parent : parents()) {
    for (const std::string& name : base::list_directory(parent).value_or({})) {
      if (!is_orphan(name)) continue;
      kill_all_in(parent + "/" + name);
      ::rmdir((parent + "/" + name).c_str());
    }
  }
}

void Cgroup::sweep(int pid) {
  const std::string prefix = "fleet-" + std::to_string(pid) + "-";
  for (const std::string& parent : parents()) {
    for (const std::string& name : base::list_directory(parent).value_or({})) {
      if (name.starts_with(prefix)) remove_folder(parent + "/" + name);
    }
  }
}

std::unique_ptr<Cgroup> Cgroup::make(i64 memory_bytes, int processes) {
  std::vector<std::string> folders = make_v2(memory_bytes, processes);
  if (folders.empty()) folders = make_v1(memory_bytes, processes);
  if (folders.empty()) return nullptr;
  return std::unique_ptr<Cgroup>(new Cgroup(std::move(folders)));
}

Cgroup::~Cgroup() {
  for (const std::string& folder : folders_) remove_folder(folder);
}

std::vector<std::string> Cgroup::join_files() const {
  std::vector<std::string> files;
  for (const std::string& folder : folders_) files.push_back(folder + "/cgroup.procs");
  return files;
}

i64 Cgroup::out_of_memory_kills() const {
  for (const char* file : {"/memory.events", "/memory.oom_control"}) {
    base::Result<std::string> text = base::read_file(folders_.front() + file);
    if (!text.ok()) continue;
    std::istringstream words(*text);
    std::string key;
    i64 value = 0;
    while (words >> key >> value) {
      if (key == "oom_kill") return value;
    }
  }
  return 0;
}

}  // namespace team
