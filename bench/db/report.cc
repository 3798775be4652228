#include "bench/db/report.h"

#include "base/files.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace bench {
namespace {

std::string processor() {
  auto text = base::read_file("/proc/cpuinfo");
  const std::string key = "model name";
  const size_t at = text.ok() ? text->find(key) : std::string::npos;
  if (at == std::string::npos) return "unknown processor";
  const size_t from = text->find(": ", at) + 2;
  return text->substr(from, text->find('\n', from) - from);
}

f64 load_average() {
  f64 load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

std::string day() {
  char text[32];
  const std::time_t now = std::time(nullptr);
  std::tm parts;
  ::gmtime_r(&now, &parts);
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

std::string number(f64 value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

bool is_loss(const Outcome& outcome) {
  return outcome.problem.empty() && outcome.ratio < 0.995;
}

}  // namespace

f64 geometric_mean(const std::vector<Outcome>& outcomes, const std::string& group) {
  f64 logs = 0;
  int counted = 0;
  for (const Outcome& one : outcomes) {
    if (!one.problem.empty() || (!group.empty() && one.group != group)) continue;
    logs += std::log(one.ratio);
    counted++;
  }
  return counted > 0 ? std::exp(logs / counted) : 0;
}

void print_head(const RunFacts& facts) {
#ifndef __OPTIMIZE__
  std::printf("warning: db_bench itself was built without optimisation; use the release preset\n");
#endif
  std::printf("ours:    %s (%s)\ntheirs:  %s (%s)\n", facts.ours.c_str(), facts.our_version.c_str(),
              facts.theirs.c_str(), facts.their_version.c_str());
  std::printf("machine: %s, %ld CPUs, load %.1f at the start, %s\n", processor().c_str(),
              ::sysconf(_SC_NPROCESSORS_ONLN), load_average(), day().c_str());
  std::printf(
      "%lld rows; ratio = theirs / ours, median of %d pairs [quartiles]; above 1 ours is "
      "faster\n\n",
      static_cast<long long>(facts.rows), facts.rounds);
  std::printf("%-9s %-40s %8s  %-13s %12s %12s%s\n", "group", "workload", "ratio", "quartiles",
              "ours us/op", "theirs us/op", facts.counts_instructions ? "  instructions" : "");
}

void print_row(const Outcome& o) {
  if (!o.problem.empty()) {
    std::printf("%-9s %-40s %8s  %s\n", o.group.c_str(), o.name.c_str(), "-", o.problem.c_str());
  } else {
    std::printf("%-9s %-40s %7.2fx  [%.2f, %.2f]%*s %12.2f %12.2f", o.group.c_str(), o.name.c_str(),
                o.ratio, o.low, o.high, o.low >= 10 || o.high >= 10 ? 0 : 1, "", o.ours_us,
                o.theirs_us);
    if (o.instructions > 0) std::printf(" %12.2fx", o.instructions);
    std::printf("%s%s\n", o.wall ? "  wall" : "", is_loss(o) ? "  LOSS" : "");
  }
  std::fflush(stdout);
}

void print_summary(const std::vector<Outcome>& outcomes) {
  std::printf("\ngeometric means:");
  std::string group;
  int compared = 0, losses = 0;
  for (const Outcome& one : outcomes) {
    if (one.group != group) {
      group = one.group;
      std::printf(" %s %.2fx,", group.c_str(), geometric_mean(outcomes, group));
    }
    compared += one.problem.empty();
    losses += is_loss(one);
  }
  std::printf(" all %.2fx\n%d of %zu workloads compared, %d lost; load %.1f at the end\n",
              geometric_mean(outcomes), compared, outcomes.size(), losses, load_average());
}

base::Status write_json(const std::string& path, const RunFacts& facts,
                        const std::vector<Outcome>& outcomes) {
  std::string text =
      "{\"ours\": " + quoted(facts.our_version) + ", \"theirs\": " + quoted(facts.their_version) +
      ", \"processor\": " + quoted(processor()) +
      ", \"cpus\": " + std::to_string(::sysconf(_SC_NPROCESSORS_ONLN)) +
      ", \"load\": " + number(load_average()) + ", \"day\": " + quoted(day()) +
      ", \"rows\": " + std::to_string(facts.rows) +
      ", \"rounds\": " + std::to_string(facts.rounds) +
      ", \"geometric_mean\": " + number(geometric_mean(outcomes)) + ", \"workloads\": [\n";
  for (size_t i = 0; i < outcomes.size(); i++) {
    const Outcome& o = outcomes[i];
    text += "  {\"group\": " + quoted(o.group) + ", \"name\": " + quoted(o.name) +
            ", \"ratio\": " + number(o.ratio) + ", \"low\": " + number(o.low) +
            ", \"high\": " + number(o.high) + ", \"ours_us\": " + number(o.ours_us) +
            ", \"theirs_us\": " + number(o.theirs_us) +
            ", \"instructions\": " + number(o.instructions) +
            ", \"clock\": " + (o.wall ? "\"wall\"" : "\"cpu\"") +
            ", \"problem\": " + quoted(o.problem) + "}" + (i + 1 < outcomes.size() ? ",\n" : "\n");
  }
  return base::write_file(path, text + "]}\n");
}

}  // namespace bench
