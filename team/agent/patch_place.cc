#include "team/agent/patch_place.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using Lines = std::vector<std::string>;

constexpr int kFuzzyRung = 3;
constexpr f64 kFuzzyScoreMin = 0.85;
constexpr f64 kFuzzyLead = 0.1;       // over the second-best place
constexpr size_t kFuzzyLinesMin = 3;  // shorter hunks look like too many places
constexpr size_t kFuzzyFileLinesMax = 20'000;
constexpr size_t kShownLinesMax = 14;

std::string_view trim_end(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

std::string_view trim(std::string_view text) {
  text = trim_end(text);
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? "" : text.substr(begin);
}

std::string_view indent_of(std::string_view line) {
  return line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
}

bool same(std::string_view a, std::string_view b, int rung) {
  switch (rung) {
    case 0:
      return a == b;
    case 1:
      return trim_end(a) == trim_end(b);
    default:
      return trim(a) == trim(b);
  }
}

std::vector<size_t> matches(const Lines& lines, const Lines& wanted, int rung) {
  std::vector<size_t> found;
  if (wanted.empty() || wanted.size() > lines.size()) return found;
  for (size_t at = 0; at + wanted.size() <= lines.size(); ++at) {
    bool all = true;
    for (size_t i = 0; all && i < wanted.size(); ++i) all = same(lines[at + i], wanted[i], rung);
    if (all) found.push_back(at);
  }
  return found;
}

// Share of two-letter pairs in common (Dice), from 0 to 1.
f64 likeness(std::string_view a, std::string_view b) {
  a = trim(a);
  b = trim(b);
  if (a == b) return 1;
  if (a.size() < 2 || b.size() < 2) return 0;
  std::vector<u16> left, right;
  for (size_t i = 0; i + 1 < a.size(); ++i)
    left.push_back(static_cast<u16>(a[i] << 8 | (a[i + 1] & 0xFF)));
  for (size_t i = 0; i + 1 < b.size(); ++i)
    right.push_back(static_cast<u16>(b[i] << 8 | (b[i + 1] & 0xFF)));
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  size_t common = 0, i = 0, j = 0;
  while (i < left.size() && j < right.size()) {
    if (left[i] == right[j])
      ++common, ++i, ++j;
    else if (left[i] < right[j])
      ++i;
    else
      ++j;
  }
  return 2.0 * static_cast<f64>(common) / static_cast<f64>(left.size() + right.size());
}

f64 window_score(const Lines& lines, size_t at, const Lines& wanted) {
  // Lines that are alike only by chance would add up; a place needs half of its lines the same.
  size_t equal = 0;
  for (size_t i = 0; i < wanted.size(); ++i) equal += same(lines[at + i], wanted[i], 2);
  if (equal * 2 < wanted.size()) return 0;
  f64 sum = 0;
  for (size_t i = 0; i < wanted.size(); ++i) sum += likeness(lines[at + i], wanted[i]);
  return sum / static_cast<f64>(wanted.size());
}

std::optional<size_t> fuzzy_match(const Lines& lines, const Lines& wanted) {
  if (wanted.size() < kFuzzyLinesMin || wanted.size() > lines.size() ||
      lines.size() > kFuzzyFileLinesMax) {
    return std::nullopt;
  }
  f64 best = 0, second = 0;
  size_t place = 0;
  for (size_t at = 0; at + wanted.size() <= lines.size(); ++at) {
    const f64 score = window_score(lines, at, wanted);
    if (score > best) {
      second = best;
      best = score;
      place = at;
    } else {
      second = std::max(second, score);
    }
  }
  if (best < kFuzzyScoreMin || best - second < kFuzzyLead) return std::nullopt;
  return place;
}

bool tells_something(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c); }) >=
         3;
}

// True when the file holds what the hunk would make of it, and no untouched place is left. Needs
// lines that tell something: a brace is everywhere.
bool already_there(const Hunk& hunk, const Lines& lines, const std::vector<size_t>& old_places) {
  const Lines after = hunk.new_lines();
  size_t telling = 0;
  bool adds = false;
  for (const PatchLine& line : hunk.lines) {
    if (line.tag == '+') adds = true;
  }
  for (const PatchLine& line : hunk.lines) {
    if (line.tag == (adds ? '+' : ' ')) telling += tells_something(line.text);
  }
  if (telling < (adds ? 1u : 2u)) return false;
  const std::vector<size_t> new_places = matches(lines, after, 1);
  if (new_places.empty()) return false;
  const size_t old_size = hunk.old_lines().size();
  return std::all_of(old_places.begin(), old_places.end(), [&](size_t old_place) {
    return std::any_of(new_places.begin(), new_places.end(), [&](size_t place) {
      return place <= old_place && old_place + old_size <= place + after.size();
    });
  });
}

std::string numbered(const Lines& lines, size_t from, size_t count) {
  std::string text;
  for (size_t i = from; i < std::min(lines.size(), from + count); ++i) {
    text += std::to_string(i + 1) + "\t" + lines[i] + "\n";
  }
  return text;
}

Error not_found(const Hunk& hunk, const std::string& path, const Lines& lines) {
  const Lines wanted = hunk.old_lines();
  std::string text = "no place in " + path + " matches these lines of the patch:\n";
  for (size_t i = 0; i < std::min(wanted.size(), kShownLinesMax); ++i) text += wanted[i] + "\n";
  size_t best_at = 0;
  f64 best = 0;
  for (size_t at = 0; at < lines.size() && lines.size() <= kFuzzyFileLinesMax; ++at) {
    f64 sum = 0;
    for (size_t i = 0; i < wanted.size() && at + i < lines.size(); ++i) {
      sum += same(lines[at + i], wanted[i], 2) ? 1 : 0;
    }
    if (sum == 0 && !wanted.empty()) sum = likeness(lines[at], wanted[0]) / 2;
    if (sum > best) best = sum, best_at = at;
  }
  if (best > 0.2) {
    text += "The nearest lines of the file are:\n" +
            numbered(lines, best_at, std::min(wanted.size() + 2, kShownLinesMax));
  }
  text += "Nothing was changed. Read the file again and send the patch with its exact lines.";
  return Error(ErrorCode::kNotFound, text);
}

Error ambiguous(const std::string& path, const std::vector<size_t>& places) {
  std::string text = "the lines of the patch match " + std::to_string(places.size()) +
                     " places in " + path + " (lines";
  for (size_t i = 0; i < std::min<size_t>(places.size(), 6); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(places[i] + 1);
  }
  return Error(ErrorCode::kConflict,
               text +
                   "). Nothing was changed. Add more lines around the change so that it is clear "
                   "which is meant.");
}

// Narrows several places down by what the patch says about position.
std::vector<size_t> narrowed(const Hunk& hunk, const Lines& lines, std::vector<size_t> places,
                             int offset) {
  if (places.size() <= 1) return places;
  const size_t size = hunk.old_lines().size();
  if (hunk.at_end) {
    std::erase_if(places, [&](size_t at) { return at + size != lines.size(); });
    return places;
  }
  if (!hunk.anchor.empty()) {
    for (size_t at = 0; at < lines.size(); ++at) {
      if (trim(lines[at]).find(trim(hunk.anchor)) == std::string_view::npos) continue;
      const auto next = std::lower_bound(places.begin(), places.end(), at);
      if (next != places.end()) return {*next};
    }
  }
  if (hunk.line_hint > 0) {
    const int hint = hunk.line_hint - 1 + offset;
    for (const size_t at : places) {
      if (static_cast<int>(at) == hint) return {at};
    }
  }
  return places;
}

// The lines that replace `count` lines at `at`. Kept lines stay as the file has them; new ones move
// to the file's indentation when the hunk was found by ignoring it.
Lines replacement(const Hunk& hunk, const Lines& lines, size_t at, int rung) {
  std::string_view theirs, ours;
  size_t row = at;
  for (const PatchLine& line : hunk.lines) {
    if (line.tag == '+') continue;
    if (!trim(line.text).empty()) {
      theirs = indent_of(line.text);
      ours = indent_of(lines[row]);
      break;
    }
    ++row;
  }
  Lines out;
  row = at;
  for (const PatchLine& line : hunk.lines) {
    if (line.tag == '-') {
      ++row;
    } else if (line.tag == ' ') {
      out.push_back(lines[row++]);
    } else if (rung >= 2 && theirs != ours && line.text.starts_with(theirs) &&
               !trim(line.text).empty()) {
      out.push_back(std::string(ours) + line.text.substr(theirs.size()));
    } else {
      out.push_back(line.text);
    }
  }
  return out;
}

void splice(Lines& lines, size_t at, size_t count, Lines with, int& offset) {
  offset += static_cast<int>(with.size()) - static_cast<int>(count);
  const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(at);
  lines.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at),
               std::make_move_iterator(with.begin()), std::make_move_iterator(with.end()));
}

// A hunk of new lines only: it says by anchor, line or end where they go.
base::Result<Placed> place_insertion(const Hunk& hunk, const std::string& path, Lines& lines,
                                     int& offset) {
  if (already_there(hunk, lines, {})) return Placed{true, 0};
  std::optional<size_t> at;
  if (!hunk.anchor.empty()) {
    for (size_t i = 0; i < lines.size() && !at; ++i) {
      if (trim(lines[i]) == trim(hunk.anchor)) at = i + 1;
    }
  } else if (hunk.at_end || lines.empty()) {
    at = lines.size();
  } else if (hunk.line_hint > 0) {
    const int hint = hunk.line_hint + offset;
    if (hint >= 0 && static_cast<size_t>(hint) <= lines.size()) at = static_cast<size_t>(hint);
  }
  if (!at) {
    return Error(ErrorCode::kConflict, "the patch adds lines to " + path +
                                           " without saying where. Nothing was changed. Add the "
                                           "lines before and after them.");
  }
  splice(lines, *at, 0, hunk.new_lines(), offset);
  return Placed{};
}

}  // namespace

base::Result<Placed> place_hunk(const Hunk& hunk, const std::string& path, Lines& lines,
                                int& offset) {
  const Lines wanted = hunk.old_lines();
  if (wanted.empty()) return place_insertion(hunk, path, lines, offset);
  if (wanted == hunk.new_lines()) {
    return Error(ErrorCode::kInvalidArgument, "a part of the patch for " + path +
                                                  " changes nothing; it has no '-' or '+' lines");
  }
  for (int rung = 0; rung < kFuzzyRung; ++rung) {
    const std::vector<size_t> places = matches(lines, wanted, rung);
    if (rung < 2 && already_there(hunk, lines, places)) return Placed{true, rung};
    if (places.empty()) continue;
    const std::vector<size_t> left = narrowed(hunk, lines, places, offset);
    if (left.size() != 1) return ambiguous(path, left.empty() ? places : left);
    splice(lines, left[0], wanted.size(), replacement(hunk, lines, left[0], rung), offset);
    return Placed{false, rung};
  }
  if (const std::optional<size_t> at = fuzzy_match(lines, wanted)) {
    splice(lines, *at, wanted.size(), replacement(hunk, lines, *at, kFuzzyRung), offset);
    return Placed{false, kFuzzyRung};
  }
  return not_found(hunk, path, lines);
}

}  // namespace team
