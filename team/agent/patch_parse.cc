#include "team/agent/patch_parse.h"

#include <algorithm>
#include <charconv>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;

constexpr std::string_view kForms =
    " Use one of: '*** Begin Patch' with '*** Update File: path' and lines that start with ' ', "
    "'-' or "
    "'+'; a unified diff with '---', '+++' and '@@'; or path, '<<<<<<< SEARCH', '=======', "
    "'>>>>>>> REPLACE'.";

Error bad(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// The rest of a line that starts with `prefix`, trimmed; false when it does not.
bool rest_after(std::string_view line, std::string_view prefix, std::string& rest) {
  if (!line.starts_with(prefix)) return false;
  rest = trim(line.substr(prefix.size()));
  return true;
}

void add_hunk_line(std::string_view line, Hunk& hunk) {
  if (line.empty()) {
    hunk.lines.push_back({' ', ""});  // editors strip the space of an empty context line
  } else if (line[0] == ' ' || line[0] == '-' || line[0] == '+') {
    hunk.lines.push_back({line[0], std::string(line.substr(1))});
  } else {
    hunk.lines.push_back({' ', std::string(line)});  // models forget the space of context lines
  }
}

// Blank lines at the end of a hunk belong to the patch's layout more often than to the file.
void trim_tail(Hunk& hunk) {
  while (!hunk.lines.empty() && hunk.lines.back() == PatchLine{' ', ""}) hunk.lines.pop_back();
}

class EnvelopeParser {
 public:
  base::Result<std::vector<FileOperation>> parse(const std::vector<std::string_view>& lines) {
    size_t at = 0;
    while (at < lines.size() && trim(lines[at]) != "*** Begin Patch") ++at;
    for (++at; at < lines.size() && trim(lines[at]) != "*** End Patch"; ++at) {
      TRY(take(lines[at]));
    }
    close_hunk();
    if (operations_.empty()) return bad("the patch names no file." + std::string(kForms));
    for (const FileOperation& operation : operations_) {
      if (operation.kind == FileOperation::Kind::kUpdate && operation.hunks.empty() &&
          operation.move_to.empty()) {
        return bad("the patch updates " + operation.path + " but has no lines for it");
      }
    }
    return std::move(operations_);
  }

 private:
  base::Status take(std::string_view line) {
    std::string rest;
    using Kind = FileOperation::Kind;
    if (rest_after(line, "*** Add File:", rest)) return open(Kind::kAdd, rest);
    if (rest_after(line, "*** Update File:", rest)) return open(Kind::kUpdate, rest);
    if (rest_after(line, "*** Delete File:", rest)) return open(Kind::kRemove, rest);
    if (operations_.empty()) {
      if (trim(line).empty()) return {};
      return bad("the patch has lines before its first '*** ... File:' line");
    }
    FileOperation& operation = operations_.back();
    if (rest_after(line, "*** Move to:", rest)) {
      operation.move_to = rest;
      return {};
    }
    switch (operation.kind) {
      case Kind::kAdd:
        if (!line.starts_with('+') && !trim(line).empty()) {
          return bad("every line of an added file starts with '+'; this one does not: " +
                     std::string(line.substr(0, 80)));
        }
        if (line.starts_with('+')) operation.content += std::string(line.substr(1)) + "\n";
        return {};
      case Kind::kRemove:
        if (trim(line).empty()) return {};
        return bad("a deleted file has no lines in the patch");
      case Kind::kUpdate:
        break;
    }
    if (trim(line) == "*** End of File") {
      hunk_.at_end = true;
    } else if (line.starts_with("@@")) {
      close_hunk();
      std::string_view anchor = trim(line.substr(2));
      if (anchor.ends_with("@@")) anchor = trim(anchor.substr(0, anchor.size() - 2));
      // "-10,3 +10,4" is a unified diff's position, not a line of the file.
      if (!anchor.starts_with('-')) hunk_.anchor = anchor;
    } else {
      add_hunk_line(line, hunk_);
    }
    return {};
  }

  base::Status open(FileOperation::Kind kind, const std::string& path) {
    close_hunk();
    if (path.empty()) return bad("a file line of the patch names no file");
    operations_.push_back({kind, path, "", "", {}});
    return {};
  }

  void close_hunk() {
    trim_tail(hunk_);
    if (!hunk_.lines.empty()) operations_.back().hunks.push_back(std::move(hunk_));
    hunk_ = Hunk();
  }

  std::vector<FileOperation> operations_;
  Hunk hunk_;
};

// "a/src/x.c<TAB>date" > "src/x.c"; "" for /dev/null.
std::string diff_path(std::string_view text, std::string_view side) {
  text = trim(text.substr(0, text.find('\t')));
  if (text == "/dev/null") return "";
  if (text.starts_with(side)) text.remove_prefix(side.size());
  return std::string(text);
}

class UnifiedParser {
 public:
  base::Result<std::vector<FileOperation>> parse(const std::vector<std::string_view>& lines) {
    for (size_t at = 0; at < lines.size(); ++at) {
      const std::string_view line = lines[at];
      const bool pair =
          line.starts_with("--- ") && at + 1 < lines.size() && lines[at + 1].starts_with("+++ ");
      std::string rest;
      if (line.starts_with("diff --git ")) {
        close_file();
      } else if (pair) {
        open_file(line.substr(4), lines[at + 1].substr(4));
        ++at;
      } else if (rest_after(line, "rename from ", rest)) {
        rename_from_ = rest;
      } else if (rest_after(line, "rename to ", rest)) {
        operations_.push_back({FileOperation::Kind::kUpdate, rename_from_, rest, "", {}});
      } else if (line.starts_with("@@")) {
        if (operations_.empty()) return bad("a '@@' comes before any '---' and '+++' lines");
        close_hunk();
        open_hunk(line);
      } else if (in_hunk_) {
        take(line);
      }
    }
    close_file();
    if (operations_.empty()) return bad("the diff names no file." + std::string(kForms));
    return std::move(operations_);
  }

 private:
  void open_file(std::string_view from, std::string_view to) {
    close_hunk();
    const std::string old_path = diff_path(from, "a/");
    const std::string new_path = diff_path(to, "b/");
    if (!operations_.empty() && !rename_from_.empty()) {
      rename_from_.clear();  // hunks of the rename that was just opened
      return;
    }
    using Kind = FileOperation::Kind;
    if (old_path.empty()) {
      operations_.push_back({Kind::kAdd, new_path, "", "", {}});
    } else if (new_path.empty()) {
      operations_.push_back({Kind::kRemove, old_path, "", "", {}});
    } else {
      operations_.push_back({Kind::kUpdate, new_path, "", "", {}});
    }
  }

  void open_hunk(std::string_view line) {
    in_hunk_ = true;
    const size_t minus = line.find('-');
    if (minus != std::string_view::npos) {
      std::from_chars(line.data() + minus + 1, line.data() + line.size(), hunk_.line_hint);
    }
  }

  void take(std::string_view line) {
    if (line.starts_with("\\")) {  // "\ No newline at end of file", of the line before
      if (!hunk_.lines.empty() && hunk_.lines.back().tag == '+') no_newline_ = true;
      return;
    }
    add_hunk_line(line, hunk_);
  }

  void close_hunk() {
    trim_tail(hunk_);
    if (in_hunk_ && !hunk_.lines.empty()) {
      FileOperation& operation = operations_.back();
      if (operation.kind == FileOperation::Kind::kAdd) {
        for (const std::string& text : hunk_.new_lines()) operation.content += text + "\n";
        if (no_newline_ && !operation.content.empty()) operation.content.pop_back();
      } else if (operation.kind == FileOperation::Kind::kUpdate) {
        operation.hunks.push_back(std::move(hunk_));
      }
    }
    hunk_ = Hunk();
    in_hunk_ = no_newline_ = false;
  }

  void close_file() {
    close_hunk();
    rename_from_.clear();
  }

  std::vector<FileOperation> operations_;
  Hunk hunk_;
  bool in_hunk_ = false;
  bool no_newline_ = false;
  std::string rename_from_;
};

bool is_marker(std::string_view line, char sign, std::string_view word) {
  size_t count = 0;
  while (count < line.size() && line[count] == sign) ++count;
  return count >= 5 && count <= 9 && trim(line.substr(count)) == word;
}

// "### `src/x.c`:" > "src/x.c".
std::string path_in(std::string_view line) {
  line = trim(line);
  while (!line.empty() && std::string_view("#*`> ").find(line.front()) != std::string_view::npos) {
    line.remove_prefix(1);
  }
  while (!line.empty() && std::string_view("*`: ").find(line.back()) != std::string_view::npos) {
    line.remove_suffix(1);
  }
  return std::string(line);
}

// Lines that both sides share at their ends stay as the file has them.
Hunk replace_hunk(const std::vector<std::string_view>& from,
                  const std::vector<std::string_view>& to) {
  size_t head = 0;
  while (head < from.size() && head < to.size() && from[head] == to[head]) ++head;
  size_t tail = 0;
  while (tail + head < from.size() && tail + head < to.size() &&
         from[from.size() - 1 - tail] == to[to.size() - 1 - tail]) {
    ++tail;
  }
  Hunk hunk;
  for (size_t i = 0; i < head; ++i) hunk.lines.push_back({' ', std::string(from[i])});
  for (size_t i = head; i + tail < from.size(); ++i)
    hunk.lines.push_back({'-', std::string(from[i])});
  for (size_t i = head; i + tail < to.size(); ++i) hunk.lines.push_back({'+', std::string(to[i])});
  for (size_t i = from.size() - tail; i < from.size(); ++i) {
    hunk.lines.push_back({' ', std::string(from[i])});
  }
  return hunk;
}

base::Result<std::vector<FileOperation>> parse_search_replace(
    const std::vector<std::string_view>& lines) {
  std::vector<FileOperation> operations;
  std::string path;
  for (size_t at = 0; at < lines.size(); ++at) {
    const std::string_view line = lines[at];
    if (!is_marker(line, '<', "SEARCH")) {
      const std::string candidate = path_in(line);
      if (!candidate.empty() && candidate.find(' ') == std::string::npos &&
          !line.starts_with("```")) {
        path = candidate;
      }
      continue;
    }
    std::vector<std::string_view> from, to;
    for (++at; at < lines.size() && !is_marker(lines[at], '=', ""); ++at) from.push_back(lines[at]);
    for (++at; at < lines.size() && !is_marker(lines[at], '>', "REPLACE"); ++at) {
      to.push_back(lines[at]);
    }
    if (at >= lines.size()) {
      return bad("a SEARCH block has no '=======' or no '>>>>>>> REPLACE' line");
    }
    if (path.empty()) return bad("no file is named in the line before '<<<<<<< SEARCH'");
    if (from.empty()) {
      FileOperation add{FileOperation::Kind::kAdd, path, "", "", {}};
      for (const std::string_view text : to) add.content += std::string(text) + "\n";
      operations.push_back(std::move(add));
      continue;
    }
    if (operations.empty() || operations.back().path != path) {
      operations.push_back({FileOperation::Kind::kUpdate, path, "", "", {}});
    }
    operations.back().hunks.push_back(replace_hunk(from, to));
  }
  if (operations.empty()) return bad("the patch has no SEARCH block." + std::string(kForms));
  return operations;
}

}  // namespace

std::vector<std::string> Hunk::old_lines() const {
  std::vector<std::string> out;
  for (const PatchLine& line : lines) {
    if (line.tag != '+') out.push_back(line.text);
  }
  return out;
}

std::vector<std::string> Hunk::new_lines() const {
  std::vector<std::string> out;
  for (const PatchLine& line : lines) {
    if (line.tag != '-') out.push_back(line.text);
  }
  return out;
}

base::Result<std::vector<FileOperation>> parse_patch(std::string_view text) {
  const std::vector<std::string_view> lines = split_lines(text);
  const auto any = [&](auto matches) { return std::any_of(lines.begin(), lines.end(), matches); };
  if (any([](std::string_view line) { return trim(line) == "*** Begin Patch"; })) {
    return EnvelopeParser().parse(lines);
  }
  if (any([](std::string_view line) { return is_marker(line, '<', "SEARCH"); })) {
    return parse_search_replace(lines);
  }
  if (any([](std::string_view line) {
        return line.starts_with("--- ") || line.starts_with("rename from ");
      })) {
    return UnifiedParser().parse(lines);
  }
  return bad("this is not a patch." + std::string(kForms));
}

}  // namespace team
