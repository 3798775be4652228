#include "team/cli/live_view.h"

#include "base/clock.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace team {
namespace {

constexpr const char* kReset = "\033[0m";
constexpr const char* kDim = "\033[2m";
constexpr const char* kBold = "\033[1m";
constexpr const char* kGreen = "\033[32m";
constexpr const char* kRed = "\033[31m";
constexpr const char* kYellow = "\033[33m";
constexpr const char* kCyan = "\033[36m";
constexpr const char* kTick = "\u2714";
constexpr const char* kCross = "\u2718";
constexpr const char* kBack = "\u21a9";
constexpr const char* kDot = "\u00b7";
constexpr int kNameColumns = 15;
constexpr size_t kStoryLinesMax = 3;
constexpr i64 kFrameUs = 120'000;
constexpr const char* kSpinner[] = {"\u280b", "\u2819", "\u2839", "\u2838", "\u283c",
                                    "\u2834", "\u2826", "\u2827", "\u2807", "\u280f"};
constexpr const char* kStageNames[] = {"converge", "design", "plan", "build", "verify", "operate"};

int terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 100;
}

// Cuts text (without escapes) to a number of columns, on a character boundary.
std::string cut(const std::string& text, int columns) {
  int width = 0;
  size_t at = 0;
  while (at < text.size()) {
    size_t next = at + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xc0) == 0x80) ++next;
    if (width + 1 > columns) return text.substr(0, at);
    ++width;
    at = next;
  }
  return text;
}

// The same for text with colours: escapes take no room. A line that wraps would be redrawn in the
// wrong place.
std::string cut_coloured(const std::string& text, int columns) {
  std::string out;
  int width = 0;
  for (size_t at = 0; at < text.size();) {
    size_t next = at + 1;
    const bool escape = text[at] == '\033';
    if (escape) {
      next = text.find('m', at);
      next = next == std::string::npos ? text.size() : next + 1;
    } else {
      while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xc0) == 0x80) ++next;
      if (++width > columns) return out + kReset;
    }
    out.append(text, at, next - at);
    at = next;
  }
  return out;
}

int columns_of(const std::string& text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

// Words on lines of at most `columns`; what is longer than kStoryLinesMax lines is cut.
std::vector<std::string> wrapped(const std::string& text, int columns) {
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ' ');) {
    std::string& line = lines.back();
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > columns) {
      if (lines.size() == kStoryLinesMax) return lines;
      lines.push_back(word);
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  for (std::string& line : lines) line = cut(line, columns);
  return lines;
}

std::string padded(std::string text, int width) {
  const int missing = width - columns_of(text);
  if (missing > 0) text.append(static_cast<size_t>(missing), ' ');
  return text;
}

std::string clock_text(i64 us) {
  i64 s = us / 1'000'000;
  char text[24];
  std::snprintf(text, sizeof text, "%02lld:%02lld", static_cast<long long>(s / 60),
                static_cast<long long>(s % 60));
  return text;
}

struct Mark {
  const char* sign;
  const char* plain;
  const char* colour;
};

Mark mark_of(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return {kTick, "ok  ", kGreen};
    case Tone::kBad:
      return {kCross, "FAIL", kRed};
    case Tone::kWarn:
      return {kBack, "back", kYellow};
    case Tone::kStage:
      return {" ", "====", kCyan};
    case Tone::kClaim:
      return {"\"", "says", kDim};
    case Tone::kPlain:
      break;
  }
  return {kDot, "    ", kDim};
}

}  // namespace

std::string render(const StoryLine& line, bool colour, int width) {
  Mark mark = mark_of(line.tone);
  if (!colour) return std::string(mark.plain) + " " + padded(line.who, kNameColumns) + line.text;
  if (line.tone == Tone::kStage) {
    std::string rule;
    for (int i = static_cast<int>(line.who.size()) + 5; i < std::min(width, 100) - 1; ++i) {
      rule += "\u2500";
    }
    return std::string("\n") + kBold + kCyan + "\u2500\u2500 " + line.who + " " + kReset + kDim +
           rule + kReset;
  }
  bool strong = line.tone == Tone::kBad;
  std::string out = std::string(mark.colour) + "  " + mark.sign + " " + kReset + kBold +
                    padded(line.who, kNameColumns) + kReset;
  bool first = true;
  for (const std::string& piece : wrapped(line.text, width - kNameColumns - 5)) {
    if (!first) out += "\n" + std::string(kNameColumns + 4, ' ');
    out += (strong ? mark.colour : "") + piece + kReset;
    first = false;
  }
  return out;
}

LiveView::LiveView(Options options)
    : options_(std::move(options)), started_us_(base::system_clock().monotonic_us()) {
  if (options_.terminal && !options_.quiet) ticker_ = std::thread([this] { tick(); });
}

LiveView::~LiveView() {
  finish();
}

void LiveView::finish() {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    erase();
    std::fflush(stdout);
  }
  if (ticker_.joinable()) ticker_.join();
}

void LiveView::tick() {
  while (true) {
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return;
      ++frame_;
      erase();
      draw();
      std::fflush(stdout);
    }
    base::system_clock().sleep_us(kFrameUs);
  }
}

void LiveView::activity(const std::string& who, const std::string& what) {
  std::lock_guard lock(mutex_);
  if (what.empty()) {
    activities_.erase(who);
  } else {
    activities_[who] = what;
  }
}

void LiveView::on_event(const Event& event, const RunState& state) {
  std::lock_guard lock(mutex_);
  std::string_view kind = kind_of(event);
  const std::string& id = event.body["id"].as_string();
  if (kind == "stage") numbers_.stages[id] = move_of(event);
  if (kind == "criterion") numbers_.criteria[id] = move_of(event);
  if (kind == "task") {
    numbers_.tasks.clear();
    for (const Entity* task : state.all("task")) ++numbers_.tasks[task->state];
  }
  if (event.type == "usage.booked") {
    numbers_.spent_nusd = state.spent_nusd();
    numbers_.usage += usage_from_json(event.body["usage"]);
    ++numbers_.calls;
  }
  auto line = tell(event, state);
  if (line && !options_.quiet) say(*line);
}

void LiveView::say(const StoryLine& line) {
  erase();
  std::string text = render(line, options_.terminal, terminal_width());
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
  if (options_.terminal) draw();
  std::fflush(stdout);
}

void LiveView::erase() {
  if (drawn_lines_ == 0) return;
  std::printf("\033[%dA\r\033[J", drawn_lines_);
  drawn_lines_ = 0;
}

std::vector<std::string> LiveView::block() const {
  std::vector<std::string> lines;
  std::string stages;
  for (const char* name : kStageNames) {
    auto at = numbers_.stages.find(name);
    std::string state = at == numbers_.stages.end() ? "" : at->second;
    if (state == "done")
      stages += std::string(kGreen) + name + " " + kTick + kReset + "  ";
    else if (state == "failed")
      stages += std::string(kRed) + name + " " + kCross + kReset + "  ";
    else if (state == "started") {
      stages += std::string(kBold) + name + " " + kCyan + kSpinner[frame_ % 10] + kReset + "  ";
    } else
      stages += std::string(kDim) + name + "  " + kReset;
  }
  f64 input = static_cast<f64>(std::max<i64>(1, numbers_.usage.input()));
  char money[160];
  std::snprintf(money, sizeof money, "%s   %s of %s   %lld calls   cache %.0f %%",
                clock_text(base::system_clock().monotonic_us() - started_us_).c_str(),
                format_usd(numbers_.spent_nusd).c_str(), format_usd(options_.budget_nusd).c_str(),
                static_cast<long long>(numbers_.calls),
                100 * static_cast<f64>(numbers_.usage.in_cached) / input);
  lines.push_back(std::string(kDim) + "  " + money + "   words: " + options_.words + kReset);
  lines.push_back("  " + stages);
  std::string accept;
  for (const auto& [id, state] : numbers_.criteria) {
    if (state == "passing")
      accept += std::string(kGreen) + id + " " + kTick + kReset + "  ";
    else if (state == "failing" || state == "regressed") {
      accept += std::string(kRed) + id + " " + kCross + kReset + "  ";
    } else
      accept += std::string(kDim) + id + " " + kDot + kReset + "  ";
  }
  std::string tasks;
  for (const auto& [state, count] : numbers_.tasks)
    tasks += state + " " + std::to_string(count) + "  ";
  if (!accept.empty()) lines.push_back("  " + accept + kDim + "  tasks " + tasks + kReset);
  int width = terminal_width();
  for (const auto& [who, what] : activities_) {
    lines.push_back(std::string("  ") + kCyan + kSpinner[frame_ % 10] + kReset + " " +
                    padded(cut(who, 20), 21) + kDim + cut(what, width - 27) + kReset);
    if (lines.size() > 9) break;
  }
  return lines;
}

void LiveView::draw() {
  std::string out = "\n";
  std::vector<std::string> lines = block();
  const int width = terminal_width();
  for (const std::string& line : lines) out += cut_coloured(line, width) + "\n";
  std::fwrite(out.data(), 1, out.size(), stdout);
  drawn_lines_ = static_cast<int>(lines.size()) + 1;
}

}  // namespace team
