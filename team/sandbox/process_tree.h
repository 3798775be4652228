// What /proc tells about processes that we started: who descends from whom, how much they hold.
// All of it is a look at a moving target: a process that ends meanwhile is simply not there.
// Thread-safe.
#pragma once

#include "base/types.h"

#include <vector>

namespace team {

std::vector<int> children_of(int pid);
// All below `pid`, without itself, parents before their children.
std::vector<int> descendants_of(int pid);
// The programs of a sandbox: bubblewrap outside > bubblewrap as init inside > the program.
std::vector<int> program_pids(int outermost);
i64 rss_of_tree(int pid);  // resident bytes of it and its descendants
i64 cpu_us_of_tree(int pid);

}  // namespace team
