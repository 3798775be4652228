#include "team/sandbox/process_tree.h"

#include "base/files.h"

#include <unistd.h>

#include <sstream>
#include <string>

namespace team {

std::vector<int> children_of(int pid) {
  std::vector<int> children;
  const std::string at = "/proc/" + std::to_string(pid) + "/task";
  // A child belongs to the thread that started it.
  base::Result<std::vector<std::string>> threads = base::list_directory(at);
  if (!threads.ok()) return children;
  for (const std::string& thread : *threads) {
    base::Result<std::string> text = base::read_file(at + "/" + thread + "/children");
    if (!text.ok()) continue;
    std::istringstream words(*text);
    for (int child = 0; words >> child;) children.push_back(child);
  }
  return children;
}

std::vector<int> descendants_of(int pid) {
  std::vector<int> all = children_of(pid);
  for (size_t i = 0; i < all.size(); ++i) {
    for (const int child : children_of(all[i])) all.push_back(child);
  }
  return all;
}

std::vector<int> program_pids(int outermost) {
  std::vector<int> programs;
  for (const int init : children_of(outermost)) {
    for (const int program : children_of(init)) programs.push_back(program);
  }
  return programs;
}

i64 rss_of_tree(int pid) {
  i64 total = 0;
  base::Result<std::string> text = base::read_file("/proc/" + std::to_string(pid) + "/statm");
  if (text.ok()) {
    std::istringstream words(*text);
    i64 pages = 0, resident = 0;
    words >> pages >> resident;
    total = resident * ::sysconf(_SC_PAGESIZE);
  }
  for (const int child : children_of(pid)) total += rss_of_tree(child);
  return total;
}

i64 cpu_us_of_tree(int pid) {
  i64 total = 0;
  base::Result<std::string> text = base::read_file("/proc/" + std::to_string(pid) + "/stat");
  // Fields count from behind the name, which may hold anything: 14 and 15 are user and system.
  const size_t name_end = text.ok() ? text->rfind(')') : std::string::npos;
  if (name_end != std::string::npos) {
    std::istringstream words(text->substr(name_end + 1));
    std::string skipped;
    for (int field = 3; field < 14; ++field) words >> skipped;
    i64 user = 0, system = 0;
    words >> user >> system;
    total = (user + system) * 1'000'000 / ::sysconf(_SC_CLK_TCK);
  }
  for (const int child : children_of(pid)) total += cpu_us_of_tree(child);
  return total;
}

}  // namespace team
