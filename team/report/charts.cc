#include "team/report/charts.h"

#include "team/report/html.h"
#include "team/report/story.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>

namespace team {
namespace {

using base::Json;

template <class... Values>
std::string format(const char* text, Values... values) {
  char buffer[600];
  std::snprintf(buffer, sizeof buffer, text, values...);
  return buffer;
}

constexpr int kBoxWidth = 190;
constexpr int kBoxHeight = 46;
constexpr int kColumn = 250;
constexpr int kRow = 62;

const char* colour_of(std::string_view state) {
  if (state == "done" || state == "merged") return "var(--good)";
  if (state == "escalated" || state == "abandoned") return "var(--bad)";
  return "var(--soft)";
}

}  // namespace

std::string task_graph(const RunState& state) {
  std::map<std::string, const Entity*> tasks;
  for (const Entity* t : state.all("task")) tasks[t->id] = t;
  std::map<std::string, int> depth;
  std::function<int(const std::string&)> depth_of = [&](const std::string& id) -> int {
    auto known = depth.find(id);
    if (known != depth.end()) return known->second;
    int deepest = 0;
    if (tasks.contains(id)) {
      for (const Json& need : tasks[id]->facts["needs"].items()) {
        deepest = std::max(deepest, depth_of(need.as_string()) + 1);
      }
    }
    return depth[id] = deepest;
  };
  std::map<int, int> rows;
  std::map<std::string, std::pair<int, int>> at;
  std::string boxes;
  int width = 0;
  int height = 0;
  for (const Entity* t : state.all("task")) {
    int column = depth_of(t->id);
    int x = column * kColumn + 2;
    int y = rows[column]++ * kRow + 2;
    at[t->id] = {x, y};
    width = std::max(width, x + kBoxWidth + 4);
    height = std::max(height, y + kBoxHeight + 6);
    boxes += format("<rect x=%d y=%d width=%d height=%d rx='10' fill='var(--wash)' stroke='%s'/>",
                    x, y, kBoxWidth, kBoxHeight, colour_of(t->state));
    boxes += format("<text x=%d y=%d font-weight=600>%s</text>", x + 12, y + 19,
                    escape_html(t->id).c_str());
    boxes += format("<text x=%d y=%d class=soft>%s</text>", x + 12, y + 36,
                    escape_html(t->facts["title"].as_string().substr(0, 27)).c_str());
  }
  std::string lines;
  for (const auto& [id, task] : tasks) {
    for (const Json& need : task->facts["needs"].items()) {
      auto from = at.find(need.as_string());
      if (from == at.end()) continue;
      int x1 = from->second.first + kBoxWidth;
      int y1 = from->second.second + kBoxHeight / 2;
      int x2 = at[id].first;
      int y2 = at[id].second + kBoxHeight / 2;
      lines += format(
          "<path d='M%d %d C%d %d %d %d %d %d' fill=none stroke='var(--line)' stroke-width='2'/>",
          x1, y1, (x1 + x2) / 2, y1, (x1 + x2) / 2, y2, x2, y2);
    }
  }
  return format("<svg width=%d height=%d viewBox='0 0 %d %d'>", width, height, width, height) +
         lines + boxes + "</svg>";
}

std::string acceptance_curve(const std::vector<Event>& events) {
  constexpr int kWidth = 470;
  constexpr int kHeight = 150;
  if (events.empty()) return "";
  i64 start = events.front().at_us;
  f64 span = static_cast<f64>(std::max<i64>(1, events.back().at_us - start));
  std::map<std::string, bool> passing;
  std::string path;
  f64 y = kHeight - 20;
  for (const Event& event : events) {
    if (kind_of(event) != "criterion") continue;
    passing[event.body["id"].as_string()] = move_of(event) == "passing";
    i64 good =
        std::count_if(passing.begin(), passing.end(), [](const auto& p) { return p.second; });
    f64 x = 10 + (kWidth - 20) * static_cast<f64>(event.at_us - start) / span;
    if (path.empty()) path = format("M10 %.1f", y);
    path += format(" L%.1f %.1f", x, y);
    y = kHeight - 20 - (kHeight - 40) * static_cast<f64>(good) / static_cast<f64>(passing.size());
    path += format(" L%.1f %.1f", x, y);
  }
  if (path.empty()) return "<p class=soft>no criterion was judged</p>";
  path += format(" L%d %.1f", kWidth - 10, y);
  return format(
             "<svg viewBox='0 0 %d %d' width=%d><line x1=10 x2=%d y1=20 y2=20 "
             "stroke='var(--line)'/>"
             "<line x1=10 x2=%d y1=%d y2=%d stroke='var(--line)'/><text x=12 y=15 class=soft>100 "
             "%% of "
             "criteria</text>",
             kWidth, kHeight, kWidth, kWidth - 10, kWidth - 10, kHeight - 20, kHeight - 20) +
         "<path d='" + path +
         "' fill=none stroke='var(--c1)' stroke-width=2.5 stroke-linejoin='round'/>" +
         format(
             "<text x=10 y=%d class=soft>start</text><text x=%d y=%d class=soft "
             "text-anchor=end>%.0f "
             "s</text></svg>",
             kHeight - 4, kWidth - 10, kHeight - 4, span / 1e6);
}

std::string share_bar(const CostTable& table) {
  constexpr f64 kWidth = 470;
  std::string out = format("<svg viewBox='0 0 %.0f 44' width=%.0f>", kWidth, kWidth);
  f64 x = 0;
  int index = 0;
  for (const CostRow& row : table.rows) {
    if (row.name == "total") continue;
    f64 width = kWidth * row.output_share;
    out += format(
        "<rect x=%.1f y=0 width=%.1f height=22 fill='var(--c%d)'><title>%s %.1f %%</title></rect>",
        x, std::max(0.0, width - 1.5), std::min(index, 5), escape_html(row.name).c_str(),
        100 * row.output_share);
    if (width > 52) {
      out += format("<text x=%.1f y=38 class=soft>%s %.0f %%</text>", x,
                    escape_html(row.name).c_str(), 100 * row.output_share);
    }
    x += width;
    ++index;
  }
  return out + "</svg>";
}

std::string interval_chart(const std::vector<const Entity*>& experiments) {
  constexpr f64 kWidth = 900;
  constexpr f64 kZero = 300;
  constexpr f64 kScale = 190;  // pixels for a factor of ten beyond one percent, both ways
  auto place = [&](f64 gain) {
    f64 far = std::log10(1 + std::fabs(gain) / 0.05);
    return std::clamp(kZero + (gain < 0 ? -far : far) * kScale, 60.0, kWidth - 8);
  };
  std::string out;
  int y = 26;
  for (const Entity* x : experiments) {
    const Json& f = x->facts;
    if (!f.has("gain")) continue;
    const char* colour = x->state == "kept" ? "var(--good)" : "var(--warn)";
    f64 low = place(f["low"].as_double());
    f64 high = place(f["high"].as_double());
    f64 middle = place(f["gain"].as_double());
    out += format("<text x=0 y=%d font-weight=600>%s</text>", y + 4, escape_html(x->id).c_str());
    out += format(
        "<line x1=%.1f x2=%.1f y1=%d y2=%d stroke='%s' stroke-width=3 stroke-linecap='round'/>",
        low, high, y, y, colour);
    out += format(
        "<circle cx=%.1f cy=%d r=6 fill='%s'/><text x=%.1f y=%d class=soft text-anchor=middle>%s"
        "</text>",
        middle, y, colour, middle, y - 11, format_percent(f["gain"].as_double()).c_str());
    y += 40;
  }
  if (out.empty()) return "";
  return format(
             "<svg viewBox='0 0 %.0f %d' width=%.0f><line x1=%.0f x2=%.0f y1=4 y2=%d "
             "stroke='var(--line)'/><text x=%.0f y=%d class=soft text-anchor=middle>no "
             "change</text>",
             kWidth, y + 4, kWidth, kZero, kZero, y - 12, kZero, y) +
         out + "</svg>";
}

}  // namespace team
