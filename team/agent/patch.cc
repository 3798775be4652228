#include "team/agent/patch.h"

#include "team/agent/patch_parse.h"
#include "team/agent/patch_place.h"

#include <algorithm>
#include <map>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;

struct Text {
  std::vector<std::string> lines;
  bool crlf = false;
  bool newline_at_end = true;
};

Text split(const std::string& content) {
  Text text;
  size_t crlf = 0, ends = 0, at = 0;
  while (at < content.size()) {
    const size_t end = content.find('\n', at);
    std::string line = content.substr(at, end == std::string::npos ? end : end - at);
    if (end == std::string::npos) {
      text.newline_at_end = false;
      text.lines.push_back(std::move(line));
      break;
    }
    ++ends;
    crlf += line.ends_with('\r');
    text.lines.push_back(std::move(line));
    at = end + 1;
  }
  // Lines of a CRLF file are compared and written without their CR; a stray one elsewhere is
  // content.
  text.crlf = ends > 0 && crlf == ends;
  if (text.crlf) {
    for (std::string& line : text.lines) {
      if (line.ends_with('\r')) line.pop_back();
    }
  }
  return text;
}

std::string join(const Text& text) {
  std::string content;
  for (size_t i = 0; i < text.lines.size(); ++i) {
    content += text.lines[i];
    if (i + 1 < text.lines.size() || text.newline_at_end) content += text.crlf ? "\r\n" : "\n";
  }
  return content;
}

class Planner {
 public:
  explicit Planner(const FileReader& read) : read_(read) {}

  base::Status take(const FileOperation& operation) {
    if (operation.path.empty()) {
      return Error(ErrorCode::kInvalidArgument, "the patch names no file");
    }
    switch (operation.kind) {
      case FileOperation::Kind::kAdd:
        return add(operation);
      case FileOperation::Kind::kRemove:
        return remove(operation);
      case FileOperation::Kind::kUpdate:
        return update(operation);
    }
    return {};
  }

  PatchPlan finish() {
    for (auto& [path, state] : files_) {
      if (state.now == state.before) continue;
      plan_.changes.push_back({path, state.now, state.moved_from});
    }
    return std::move(plan_);
  }

 private:
  struct State {
    std::optional<std::string> before, now;
    std::string moved_from;
  };

  base::Result<State*> state_of(const std::string& path) {
    auto found = files_.find(path);
    if (found == files_.end()) {
      State state;
      state.before = state.now = TRY(read_(path));
      found = files_.emplace(path, std::move(state)).first;
    }
    return &found->second;
  }

  base::Status add(const FileOperation& operation) {
    State& state = *TRY(state_of(operation.path));
    ++plan_.hunks;
    if (state.now && *state.now == operation.content) {
      ++plan_.already_applied;
      return {};
    }
    if (state.now && !state.now->empty()) {
      return Error(ErrorCode::kExists, operation.path +
                                           " is there already with other content. Nothing was "
                                           "changed. Update it instead of adding it.");
    }
    state.now = operation.content;
    return {};
  }

  base::Status remove(const FileOperation& operation) {
    State& state = *TRY(state_of(operation.path));
    ++plan_.hunks;
    if (!state.now) ++plan_.already_applied;
    state.now.reset();
    return {};
  }

  base::Status update(const FileOperation& operation) {
    State* state = TRY(state_of(operation.path));
    std::string path = operation.path;
    bool moved = false;
    if (!state->now && !operation.move_to.empty()) {
      state = TRY(state_of(operation.move_to));
      path = operation.move_to;
      moved = true;
    }
    if (!state->now) {
      return Error(ErrorCode::kNotFound, operation.path +
                                             " is not there. Nothing was changed. Use "
                                             "list to see the files.");
    }
    Text text = split(*state->now);
    int offset = 0;
    for (const Hunk& hunk : operation.hunks) {
      const Placed placed = TRY(place_hunk(hunk, path, text.lines, offset));
      ++plan_.hunks;
      plan_.already_applied += placed.already;
      plan_.inexact += !placed.already && placed.rung > 0;
    }
    if (operation.hunks.empty()) {
      ++plan_.hunks;
      plan_.already_applied += moved;
    }
    const std::string content = join(text);
    state->now = content;
    if (moved || operation.move_to.empty() || operation.move_to == operation.path) return {};
    State* target = TRY(state_of(operation.move_to));
    if (target->now && *target->now != content) {
      return Error(ErrorCode::kExists, operation.move_to + " is there already; nothing was moved");
    }
    target->now = content;
    target->moved_from = operation.path;
    files_.at(operation.path).now.reset();
    return {};
  }

  const FileReader& read_;
  std::map<std::string, State> files_;  // by path, so that a plan is the same every time
  PatchPlan plan_;
};

}  // namespace

base::Result<PatchPlan> plan_patch(std::string_view patch, const FileReader& read) {
  Planner planner(read);
  for (const FileOperation& operation : TRY(parse_patch(patch))) TRY(planner.take(operation));
  return planner.finish();
}

base::Result<PatchPlan> apply_patch(std::string_view patch, const Workspace& workspace) {
  const FileReader read = [&](const std::string& path) -> base::Result<std::optional<std::string>> {
    base::Result<std::string> content = workspace.read(path);
    if (content.ok()) return std::optional<std::string>(std::move(*content));
    if (content.error().code() == ErrorCode::kNotFound) return std::optional<std::string>();
    return std::move(content).error();
  };
  PatchPlan plan = TRY(plan_patch(patch, read));
  std::vector<std::pair<std::string, std::optional<std::string>>> undo;
  for (const FileChange& change : plan.changes) {
    undo.emplace_back(change.path, TRY(read(change.path)));
    const base::Status done = change.content ? workspace.write(change.path, *change.content)
                                             : workspace.remove(change.path);
    if (done.ok()) continue;
    undo.pop_back();
    for (const auto& [path, content] : undo) {
      (void)(content ? workspace.write(path, *content) : workspace.remove(path));
    }
    return std::move(done).error();
  }
  return plan;
}

}  // namespace team
