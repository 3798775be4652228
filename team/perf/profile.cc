#include "team/perf/profile.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

namespace team {
namespace {

using base::Json;

constexpr size_t kPathFramesMax = 4;

// Innermost functions of libc in which a thread has nothing to do.
constexpr std::array kWaits = {std::string_view("epoll_wait"),
                               std::string_view("epoll_pwait"),
                               std::string_view("poll"),
                               std::string_view("ppoll"),
                               std::string_view("select"),
                               std::string_view("pselect"),
                               std::string_view("accept"),
                               std::string_view("accept4"),
                               std::string_view("nanosleep"),
                               std::string_view("clock_nanosleep"),
                               std::string_view("pause"),
                               std::string_view("sigwait"),
                               std::string_view("sigtimedwait"),
                               std::string_view("sigsuspend"),
                               std::string_view("wait4"),
                               std::string_view("waitpid"),
                               std::string_view("waitid"),
                               std::string_view("sem_wait"),
                               std::string_view("pthread_cond_wait"),
                               std::string_view("pthread_cond_timedwait"),
                               std::string_view("pthread_cond_clockwait")};

std::string_view bare(std::string_view name) {
  while (name.starts_with("_")) name.remove_prefix(1);
  if (name.starts_with("GI_")) name.remove_prefix(3);
  while (name.starts_with("_")) name.remove_prefix(1);
  if (name.starts_with("libc_")) name.remove_prefix(5);
  if (name.starts_with("new_")) name.remove_prefix(4);
  return name.substr(0, name.find('@'));
}

struct Count {
  i64 self = 0;
  i64 total = 0;
  std::map<std::string, i64> paths;
};

std::string path_of(const CallStack& stack, size_t at) {
  std::string out;
  for (size_t i = at + 1; i < stack.size() && i <= at + kPathFramesMax && stack[at] != "main";
       ++i) {
    out += (out.empty() ? "" : " < ") + stack[i];
    if (stack[i] == "main") break;
  }
  return out;
}

}  // namespace

bool is_waiting(const CallStack& stack) {
  // The C library's own frames lie between its name for the wait and the system call.
  for (size_t i = 0; i < std::min<size_t>(stack.size(), 4); ++i) {
    const std::string_view name = bare(stack[i]);
    if (std::find(kWaits.begin(), kWaits.end(), name) != kWaits.end()) return true;
  }
  return false;
}

Profile fold(const std::vector<CallStack>& stacks) {
  Profile profile;
  std::map<std::string, Count> counts;
  for (const CallStack& stack : stacks) {
    if (stack.empty()) continue;
    ++profile.samples;
    if (is_waiting(stack)) {
      ++profile.waiting;
      continue;
    }
    std::set<std::string_view> seen;  // recursion counts once
    // What calls main is the same for every program.
    const auto outermost = std::find(stack.begin(), stack.end(), "main");
    const auto depth = static_cast<size_t>(outermost - stack.begin()) +
                       static_cast<size_t>(outermost != stack.end());
    for (size_t i = 0; i < depth; ++i) {
      if (!seen.insert(stack[i]).second) continue;
      Count& count = counts[stack[i]];
      ++count.total;
      if (i == 0) ++count.self;
      ++count.paths[path_of(stack, i)];
    }
  }
  const auto busy = static_cast<f64>(std::max<i64>(1, profile.busy()));
  for (const auto& [function, count] : counts) {
    auto path = std::max_element(count.paths.begin(), count.paths.end(),
                                 [](const auto& a, const auto& b) { return a.second < b.second; });
    profile.entries.push_back({function, static_cast<f64>(count.self) / busy,
                               static_cast<f64>(count.total) / busy, path->first});
  }
  std::sort(profile.entries.begin(), profile.entries.end(),
            [](const ProfileEntry& a, const ProfileEntry& b) {
              return std::tie(b.self, b.total, a.function) < std::tie(a.self, a.total, b.function);
            });
  if (profile.entries.size() > kProfileEntriesMax) profile.entries.resize(kProfileEntriesMax);
  if (profile.busy() == 0) profile.missing = "no sample found the program at work";
  return profile;
}

const ProfileEntry* Profile::find(const std::string& function) const {
  for (const ProfileEntry& entry : entries) {
    if (entry.function == function) return &entry;
  }
  for (const ProfileEntry& entry : entries) {
    if (entry.function.ends_with("::" + function) || bare(entry.function) == function) {
      return &entry;
    }
  }
  return nullptr;
}

Json to_json(const Profile& profile) {
  Json json = Json::object({{"samples", profile.samples}, {"waiting", profile.waiting}});
  if (!profile.missing.empty()) json.set("missing", profile.missing);
  Json entries = Json::array();
  for (const ProfileEntry& entry : profile.entries) {
    entries.push(Json::object({{"function", entry.function},
                               {"self", entry.self},
                               {"total", entry.total},
                               {"path", entry.path}}));
  }
  json.set("entries", std::move(entries));
  return json;
}

Profile profile_from_json(const Json& json) {
  Profile profile;
  profile.samples = json["samples"].as_int();
  profile.waiting = json["waiting"].as_int();
  profile.missing = json["missing"].as_string();
  for (const Json& item : json["entries"].items()) {
    profile.entries.push_back({item["function"].as_string(), item["self"].as_double(),
                               item["total"].as_double(), item["path"].as_string()});
  }
  return profile;
}

std::string to_text(const Profile& profile, size_t lines_max) {
  if (!profile.missing.empty()) return "no profile: " + profile.missing + "\n";
  char text[160];
  std::snprintf(text, sizeof text,
                "%lld samples of wall-clock time, %.0f %% of them waiting for work; of the rest:\n"
                "   self  total\n",
                static_cast<long long>(profile.samples),
                100.0 * static_cast<f64>(profile.waiting) / static_cast<f64>(profile.samples));
  std::string out = text;
  for (size_t i = 0; i < std::min(lines_max, profile.entries.size()); ++i) {
    const ProfileEntry& entry = profile.entries[i];
    std::snprintf(text, sizeof text, "  %4.0f %%  %3.0f %%  ", entry.self * 100, entry.total * 100);
    out += text + entry.function;
    if (!entry.path.empty()) out += "  < " + entry.path;
    out += "\n";
  }
  return out;
}

f64 gain_bound(f64 share) {
  constexpr f64 kAll = 1e6;
  return share >= 1 ? kAll : 1 / (1 - std::max(0.0, share)) - 1;
}

}  // namespace team
