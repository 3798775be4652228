// The charts of a served product over time: latency quantiles on a log scale, memory and errors.
#include "team/report/charts.h"
#include "team/report/story.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace team {
namespace {

using base::Json;

constexpr f64 kWidth = 470;
constexpr f64 kHeight = 170;
constexpr f64 kLeft = 58;
constexpr f64 kBottom = 22;
constexpr f64 kTop = 12;

template <class... Values>
std::string format(const char* text, Values... values) {
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, text, values...);
  return buffer;
}

struct Axis {
  f64 span_ms = 1;
  f64 x(f64 ms) const { return kLeft + (kWidth - kLeft - 6) * ms / span_ms; }
};

Axis axis_of(const Json& points) {
  f64 last = 1;
  for (const Json& p : points.items()) last = std::max(last, p["at_ms"].as_double());
  return {last};
}

std::string frame(const Axis& axis) {
  return format(
             "<svg viewBox='0 0 %.0f %.0f' width='%.0f'><line x1='%.0f' x2='%.0f' y1='%.0f' "
             "y2='%.0f' "
             "stroke='var(--line)'/>",
             kWidth, kHeight, kWidth, kLeft, kWidth - 6, kHeight - kBottom, kHeight - kBottom) +
         format(
             "<text x='%.0f' y='%.0f' class=soft>0 s</text><text x='%.0f' y='%.0f' class=soft "
             "text-anchor='end'>%.1f s</text>",
             kLeft, kHeight - 5, kWidth - 6, kHeight - 5, axis.span_ms / 1e3);
}

std::string grid_line(f64 y, const std::string& label) {
  return format(
      "<line x1='%.0f' x2='%.0f' y1='%.1f' y2='%.1f' stroke='var(--line)' "
      "stroke-dasharray='2 4'/><text x='%.0f' y='%.1f' class=soft "
      "text-anchor='end'>%s</text>",
      kLeft, kWidth - 6, y, y, kLeft - 7, y + 4, label.c_str());
}

std::string milliseconds(f64 us) {
  return us >= 1e6   ? format("%.0f s", us / 1e6)
         : us >= 1e3 ? format("%.0f ms", us / 1e3)
                     : format("%.0f \u00b5s", us);
}

// A restart is a mark on the time axis.
std::string restarts(const Json& points, const Axis& axis) {
  std::string out;
  for (const Json& p : points.items()) {
    if (p["restarts"].as_int() == 0) continue;
    const f64 x = axis.x(p["at_ms"].as_double());
    out += format(
        "<line x1='%.1f' x2='%.1f' y1='%.0f' y2='%.0f' stroke='var(--warn)' "
        "stroke-dasharray='3 3'><title>restarted</title></line>",
        x, x, kTop, kHeight - kBottom);
  }
  return out;
}

}  // namespace

std::string latency_chart(const Json& operation) {
  const Json& points = operation["series"]["points"];
  const Axis axis = axis_of(points);
  f64 low = 1e12, high = 1;
  for (const Json& p : points.items()) {
    if (p["answers"].as_int() == 0) continue;
    low = std::min(low, p["p50_us"].as_double());
    high = std::max(high, p["p99_us"].as_double());
  }
  if (low > high) return "<p class=soft>nothing was answered</p>";
  // Whole decades.
  const f64 bottom = std::floor(std::log10(std::max(1.0, low)));
  const f64 top = std::max(bottom + 1, std::ceil(std::log10(high)));
  auto y = [&](f64 us) {
    const f64 part = (std::log10(std::max(1.0, us)) - bottom) / (top - bottom);
    return kHeight - kBottom - (kHeight - kBottom - kTop) * part;
  };
  std::string out = frame(axis);
  for (f64 decade = bottom; decade <= top; ++decade) {
    const f64 us = std::pow(10, decade);
    out += grid_line(y(us), milliseconds(us));
  }
  out += restarts(points, axis);
  int colour = 0;
  for (const char* key : {"p50_us", "p99_us"}) {
    std::string path;
    for (const Json& p : points.items()) {
      if (p["answers"].as_int() == 0) continue;
      path += format("%s%.1f %.1f", path.empty() ? "M" : " L", axis.x(p["at_ms"].as_double()),
                     y(p[key].as_double()));
    }
    out += "<path d='" + path +
           format(
               "' fill='none' stroke='var(--c%d)' stroke-width='2' "
               "stroke-linejoin='round'/>",
               colour++);
  }
  return out +
         "</svg><p class=key><i style='background:var(--c0)'></i>p50 <i "
         "style='background:var(--c1)'></i>p99 <i class=dash></i>restart</p>";
}

std::string memory_chart(const Json& operation) {
  const Json& points = operation["series"]["points"];
  const Axis axis = axis_of(points);
  f64 most = 1;
  for (const Json& p : points.items()) most = std::max(most, p["rss"].as_double());
  auto y = [&](f64 bytes) {
    return kHeight - kBottom - (kHeight - kBottom - kTop) * bytes / (most * 1.1);
  };
  std::string path, errors;
  f64 last_x = kLeft;
  for (const Json& p : points.items()) {
    const f64 x = axis.x(p["at_ms"].as_double());
    if (p["rss"].as_int() > 0) {
      path += format(" L%.1f %.1f", x, y(p["rss"].as_double()));
      last_x = x;
    }
    if (p["errors"].as_int() > 0) {
      errors += format(
          "<circle cx='%.1f' cy='%.0f' r='4' fill='var(--bad)'><title>%lld requests "
          "without a good answer</title></circle>",
          x, kHeight - kBottom, static_cast<long long>(p["errors"].as_int()));
    }
  }
  std::string out = frame(axis);
  for (const f64 part : {0.5, 1.0})
    out += grid_line(y(most * part), format("%.1f MB", most * part / 1e6));
  if (!path.empty()) {
    const std::string line = "M" + path.substr(2);
    out += "<path d='" + line +
           format(" L%.1f %.1f L%.1f %.1f Z' fill='var(--c3)' opacity='.14'/>", last_x,
                  kHeight - kBottom, kLeft, kHeight - kBottom) +
           "<path d='" + line +
           "' fill='none' stroke='var(--c3)' stroke-width='2' stroke-linejoin='round'/>";
  }
  return out + restarts(points, axis) + errors +
         "</svg><p class=key><i style='background:var(--c3)'></i>memory <i class=dot></i>errors <i "
         "class=dash></i>restart</p>";
}

}  // namespace team
