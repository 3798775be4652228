#include "team/agent/toolbox.h"

#include "base/files.h"
#include "base/hash.h"
#include "team/agent/patch.h"
#include "team/agent/symbols.h"
#include "team/agent/tool_table.h"
#include "team/core/glob.h"

#include <re2/re2.h>

#include <algorithm>
#include <csignal>
#include <map>

namespace team {
namespace {

using base::Json;
using base::Result;

constexpr i64 kReadLinesDefault = 400;
constexpr size_t kLineBytesMax = 2'000;
constexpr size_t kMatchesMax = 100;
constexpr size_t kListMax = 500;
constexpr i64 kRunSecondsMax = 600;
constexpr size_t kGuardedBytesMax = 64 << 20;

ToolResult text_result(std::string text) {
  ToolResult result;
  result.text = std::move(text);
  return result;
}

ToolResult error_result(std::string text) {
  ToolResult result = text_result(std::move(text));
  result.is_error = true;
  return result;
}

bool cut_is_character_start(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

// Head and tail within `bytes`, cut at line ends where there are some near.
std::string head_and_tail(const std::string& text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t head = bytes * 2 / 5;
  size_t tail = text.size() - bytes * 3 / 5;
  if (const size_t line = text.rfind('\n', head); line != std::string::npos && line + 500 > head) {
    head = line + 1;
  }
  if (const size_t line = text.find('\n', tail); line != std::string::npos && line < tail + 500) {
    tail = line + 1;
  }
  while (head > 0 && !cut_is_character_start(text[head])) --head;
  while (tail < text.size() && !cut_is_character_start(text[tail])) ++tail;
  return text.substr(0, head) + "\n[" + std::to_string(tail - head) + " bytes left out]\n" +
         text.substr(tail);
}

// What a model is shown must be text: other bytes become '?'.
std::string printable(std::string text) {
  for (size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const size_t length = lead < 0x80           ? 1
                          : (lead >> 5) == 0x6  ? 2
                          : (lead >> 4) == 0xE  ? 3
                          : (lead >> 3) == 0x1E ? 4
                                                : 0;
    bool good = length > 0 && at + length <= text.size();
    for (size_t i = 1; good && i < length; ++i) good = !cut_is_character_start(text[at + i]);
    if (lead < 0x20 && lead != '\n' && lead != '\t') good = false;
    if (!good) text[at] = '?';
    at += good ? length : 1;
  }
  return text;
}

std::string status_text(const base::ProcessResult& ran, i64 timeout_ms, i64 out_of_memory_kills) {
  if (ran.timed_out) {
    return "timed out after " + std::to_string(timeout_ms / 1'000) +
           " s; everything it had started "
           "was ended";
  }
  std::string text = ran.signal != 0 ? "ended by signal " + std::to_string(ran.signal)
                                     : "exit status " + std::to_string(ran.exit_code);
  if (out_of_memory_kills > 0) text += " (out of memory)";
  return text;
}

}  // namespace

struct Toolbox::Impl {
  const Workspace& workspace;
  const Sandbox& sandbox;
  ToolboxOptions options;
  std::vector<ToolSpec> specs;
  base::TempDir logs{"fleet-tools"};
  std::unique_ptr<SandboxNetwork> network;  // made at the first `start`; `run` then joins it

  struct Background {
    SandboxProcess process;
    std::string log;
    size_t shown = 0;
  };
  std::map<std::string, Background> running;
  int started = 0;

  bool may_change(const std::string& path) const {
    for (const std::string& glob : options.read_only_globs) {
      if (glob_matches(glob, path)) return false;
    }
    if (options.write_globs.empty()) return true;
    return std::any_of(options.write_globs.begin(), options.write_globs.end(),
                       [&](const std::string& glob) { return glob_matches(glob, path); });
  }

  std::string refusal(const std::string& path) const {
    std::string text = path + " may not be changed by this task";
    if (!options.write_globs.empty()) {
      text += "; it may change";
      for (const std::string& glob : options.write_globs) text += " " + glob;
    }
    return text + ".";
  }

  ToolResult changed(std::string text) const {
    ToolResult result = text_result(std::move(text));
    result.mutated = true;
    result.tree_hash = workspace.tree_hash().value_or("");
    return result;
  }

  ToolResult read(const Json& arguments);
  ToolResult list(const Json& arguments);
  ToolResult search(const Json& arguments);
  ToolResult symbols(const Json& arguments);
  ToolResult patch(const Json& arguments);
  ToolResult write(const Json& arguments);
  ToolResult run(const Json& arguments);
  ToolResult start(const Json& arguments);
  ToolResult poll(const Json& arguments);
  ToolResult stop(const Json& arguments);
  ToolResult dispatch(const std::string& tool, const Json& arguments);

  SandboxSpec shell(const std::string& command) const;
  std::map<std::string, std::string> guarded_files() const;
  std::string put_back(const std::map<std::string, std::string>& guarded) const;
  std::string new_output(Background& background) const;
};

ToolResult Toolbox::Impl::read(const Json& arguments) {
  const std::string& path = arguments["path"].as_string();
  Result<std::string> content = workspace.read(path);
  if (!content.ok()) {
    if (content.error().code() == base::ErrorCode::kNotFound) {
      return error_result(path + " is not there. Use list to see the files.");
    }
    return error_result(content.error().message());
  }
  const i64 from = std::max<i64>(1, arguments["from"].as_int(1));
  const i64 to = arguments["to"].as_int(from + kReadLinesDefault - 1);
  std::string text;
  i64 number = 0;
  size_t at = 0;
  while (at < content->size()) {
    const size_t end = std::min(content->find('\n', at), content->size());
    if (++number >= from && number <= to) {
      text += std::to_string(number) + "\t" +
              content->substr(at, std::min(end - at, kLineBytesMax)) + "\n";
    }
    at = end + 1;
  }
  if (number == 0) return text_result("(the file is empty)");
  if (from > number) {
    return error_result(path + " has only " + std::to_string(number) + " lines.");
  }
  if (to < number) {
    text += "[lines " + std::to_string(to + 1) + " to " + std::to_string(number) + " not shown]\n";
  }
  return text_result(printable(std::move(text)));
}

ToolResult Toolbox::Impl::list(const Json& arguments) {
  const std::string path = arguments["path"].as_string();
  Result<std::vector<std::string>> files = workspace.files();
  if (!files.ok()) return error_result(files.error().message());
  const std::string prefix = path.empty() || path == "." ? ""
                             : path.ends_with("/")       ? path
                                                         : path + "/";
  std::string text;
  size_t shown = 0, all = 0;
  for (const std::string& file : *files) {
    if (!file.starts_with(prefix)) continue;
    if (++all <= kListMax) text += file + "\n", ++shown;
  }
  if (all == 0) {
    return text_result(prefix.empty() ? "(the workspace is empty)"
                                      : "(no files below " + path + ")");
  }
  if (all > shown) text += "[" + std::to_string(all - shown) + " more; name a folder]\n";
  return text_result(std::move(text));
}

ToolResult Toolbox::Impl::search(const Json& arguments) {
  RE2::Options quiet;
  quiet.set_log_errors(false);
  const RE2 pattern(arguments["pattern"].as_string(), quiet);
  if (!pattern.ok()) {
    return error_result("The pattern is not a regular expression: " + pattern.error());
  }
  const std::string& glob = arguments["glob"].as_string();
  Result<std::vector<std::string>> files = workspace.files();
  if (!files.ok()) return error_result(files.error().message());
  std::string text;
  size_t found = 0;
  for (const std::string& file : *files) {
    if (!glob.empty() && !glob_matches(glob, file)) continue;
    Result<std::string> content = workspace.read(file, 4 << 20);
    if (!content.ok() || content->find('\0') != std::string::npos) continue;
    i64 number = 0;
    for (size_t at = 0; at < content->size();) {
      const size_t end = std::min(content->find('\n', at), content->size());
      ++number;
      const re2::StringPiece line(content->data() + at, end - at);
      if (RE2::PartialMatch(line, pattern) && ++found <= kMatchesMax) {
        text += file + ":" + std::to_string(number) + ": " +
                content->substr(at, std::min<size_t>(end - at, 300)) + "\n";
      }
      at = end + 1;
    }
  }
  if (found == 0) return text_result("(no matches)");
  if (found > kMatchesMax) {
    text += "[" + std::to_string(found - kMatchesMax) + " more matches; narrow the pattern]\n";
  }
  return text_result(printable(std::move(text)));
}

ToolResult Toolbox::Impl::symbols(const Json& arguments) {
  const std::string& wanted = arguments["path"].as_string();
  Result<std::vector<std::string>> files = workspace.files();
  if (!files.ok()) return error_result(files.error().message());
  std::string text;
  for (const std::string& file : *files) {
    if (!wanted.empty() && file != wanted && !file.starts_with(wanted + "/")) continue;
    Result<std::string> content = workspace.read(file, 4 << 20);
    if (!content.ok()) continue;
    const std::vector<Symbol> found = symbols_of(file, *content);
    if (found.empty()) continue;
    text += file + "\n";
    for (const Symbol& symbol : found) {
      text += "  " + std::to_string(symbol.line) + "\t" + symbol.text + "\n";
    }
  }
  return text_result(text.empty() ? "(no symbols found)" : printable(std::move(text)));
}

ToolResult Toolbox::Impl::patch(const Json& arguments) {
  const std::string& text = arguments["patch"].as_string();
  const FileReader read = [&](const std::string& path) -> Result<std::optional<std::string>> {
    Result<std::string> content = workspace.read(path);
    if (content.ok()) return std::optional<std::string>(std::move(*content));
    if (content.error().code() == base::ErrorCode::kNotFound) return std::optional<std::string>();
    return std::move(content).error();
  };
  Result<PatchPlan> plan = plan_patch(text, read);
  if (!plan.ok()) return error_result(plan.error().message());
  for (const FileChange& change : plan->changes) {
    if (!may_change(change.path))
      return error_result(refusal(change.path) + " Nothing was changed.");
  }
  Result<PatchPlan> applied = apply_patch(text, workspace);
  if (!applied.ok()) return error_result(applied.error().message());
  if (applied->changes.empty()) {
    return changed("All of it was there already; nothing was changed.");
  }
  std::string said = "Changed:";
  for (const FileChange& change : applied->changes) {
    said += "\n" + change.path + (change.content ? "" : " (removed)");
  }
  if (applied->already_applied > 0) {
    said += "\n" + std::to_string(applied->already_applied) + " of " +
            std::to_string(applied->hunks) + " parts were there already.";
  }
  if (applied->inexact > 0) {
    said += "\n" + std::to_string(applied->inexact) +
            " parts did not match exactly and were placed by likeness; read the result.";
  }
  return changed(std::move(said));
}

ToolResult Toolbox::Impl::write(const Json& arguments) {
  const std::string& path = arguments["path"].as_string();
  if (!may_change(path)) return error_result(refusal(path));
  const std::string& content = arguments["content"].as_string();
  if (base::Status written = workspace.write(path, content); !written.ok()) {
    return error_result(written.error().message());
  }
  return changed("Wrote " + path + ", " + std::to_string(content.size()) + " bytes.");
}

SandboxSpec Toolbox::Impl::shell(const std::string& command) const {
  SandboxSpec spec;
  spec.argv = {"bash", "-c", command};
  spec.cwd = "/work";
  spec.mounts = options.mounts;
  spec.mounts.insert(spec.mounts.begin(), {workspace.path(), "/work", true});
  spec.limits = options.run_limits;
  spec.merge_stderr = true;
  spec.network = network.get();
  return spec;
}

// A command can write anywhere in the workspace; what the task may not change is put back after it.
std::map<std::string, std::string> Toolbox::Impl::guarded_files() const {
  std::map<std::string, std::string> guarded;
  if (options.write_globs.empty() && options.read_only_globs.empty()) return guarded;
  Result<std::vector<std::string>> files = workspace.files();
  size_t bytes = 0;
  for (const std::string& file : files.value_or({})) {
    if (may_change(file)) continue;
    Result<std::string> content = workspace.read(file);
    if (!content.ok() || (bytes += content->size()) > kGuardedBytesMax) continue;
    guarded.emplace(file, std::move(*content));
  }
  return guarded;
}

std::string Toolbox::Impl::put_back(const std::map<std::string, std::string>& guarded) const {
  std::string text;
  for (const auto& [path, content] : guarded) {
    Result<std::string> now = workspace.read(path);
    if (now.ok() && *now == content) continue;
    if (workspace.write(path, content).ok()) text += "\n" + refusal(path) + " It was put back.";
  }
  return text;
}

ToolResult Toolbox::Impl::run(const Json& arguments) {
  SandboxSpec spec = shell(arguments["command"].as_string());
  spec.input = arguments["stdin"].as_string();
  if (arguments["timeout_s"].is_integer()) {
    spec.limits.wall_ms =
        std::clamp<i64>(arguments["timeout_s"].as_int(), 1, kRunSecondsMax) * 1'000;
  }
  const std::map<std::string, std::string> guarded = guarded_files();
  Result<SandboxResult> ran = sandbox.run(spec);
  if (!ran.ok()) {
    ToolResult result = error_result(ran.error().message());
    result.lost = ran.error().code() == base::ErrorCode::kCancelled;
    return result;
  }
  const std::string output = printable(ran->out);
  ToolResult result =
      changed(status_text(*ran, spec.limits.wall_ms, ran->out_of_memory_kills) + "\n" +
              head_and_tail(output, options.result_bytes_max) + put_back(guarded));
  if (output.size() > options.result_bytes_max) result.full_log = output;
  // A kill -9 that nobody here sent hit the command, or bubblewrap's init around it.
  result.lost = ran->exit_code == 128 + SIGKILL && !ran->timed_out && ran->out_of_memory_kills == 0;
  return result;
}

ToolResult Toolbox::Impl::start(const Json& arguments) {
  constexpr size_t kRunningMax = 8;
  if (running.size() >= kRunningMax) {
    return error_result("Eight background programs are running already; stop one first.");
  }
  if (network == nullptr) {
    Result<std::unique_ptr<SandboxNetwork>> made = sandbox.make_network();
    if (!made.ok()) {
      ToolResult result = error_result(made.error().message());
      result.lost = made.error().code() == base::ErrorCode::kCancelled;
      return result;
    }
    network = std::move(made).value();
  }
  const std::string id = "p" + std::to_string(++started);
  const std::string log = logs / id;
  SandboxSpec spec = shell(arguments["command"].as_string());
  spec.limits.wall_ms = 0;
  Result<SandboxProcess> process = sandbox.start(spec, {.output_path = log});
  if (!process.ok()) return error_result(process.error().message());
  running.emplace(id, Background{std::move(process).value(), log});
  return text_result("Started as " + id + ". Use poll to see its output and stop to end it.");
}

std::string Toolbox::Impl::new_output(Background& background) const {
  const std::string log = base::read_file(background.log).value_or("");
  const std::string fresh = log.substr(std::min(background.shown, log.size()));
  background.shown = log.size();
  return head_and_tail(printable(fresh), options.result_bytes_max);
}

ToolResult Toolbox::Impl::poll(const Json& arguments) {
  const auto found = running.find(arguments["id"].as_string());
  if (found == running.end()) {
    return error_result(
        "There is no such background program; it may have ended with an earlier "
        "session. Start it again.");
  }
  const std::optional<base::ProcessResult> ended = found->second.process.poll();
  const std::string state = ended ? status_text(*ended, 0, 0) : "running";
  return text_result(state + "\n" + new_output(found->second));
}

ToolResult Toolbox::Impl::stop(const Json& arguments) {
  const auto found = running.find(arguments["id"].as_string());
  if (found == running.end()) return error_result("There is no such background program.");
  constexpr i64 kGraceMs = 2'000;
  const std::optional<base::ProcessResult> ended = found->second.process.stop(kGraceMs);
  std::string text =
      (ended ? status_text(*ended, 0, 0) : "ended") + "\n" + new_output(found->second);
  running.erase(found);
  return text_result(std::move(text));
}

ToolResult Toolbox::Impl::dispatch(const std::string& tool, const Json& arguments) {
  if (tool == "read") return read(arguments);
  if (tool == "list") return list(arguments);
  if (tool == "search") return search(arguments);
  if (tool == "symbols") return symbols(arguments);
  if (tool == "patch") return patch(arguments);
  if (tool == "write") return write(arguments);
  if (tool == "run") return run(arguments);
  if (tool == "start") return start(arguments);
  if (tool == "poll") return poll(arguments);
  if (tool == "stop") return stop(arguments);
  if (tool == "note") return text_result("Noted.");
  if (tool == "check" || tool == "ask") {
    const auto& callback = tool == "check" ? options.check : options.ask;
    if (!callback) return error_result("There is nothing to " + tool + " in this task.");
    Result<std::string> said =
        callback(arguments[tool == "check" ? "gate" : "question"].as_string());
    return said.ok() ? text_result(std::move(*said)) : error_result(said.error().message());
  }
  ToolResult result = text_result(arguments[tool == "submit" ? "summary" : "reason"].as_string());
  result.end = tool == "submit" ? AttemptEnd::kSubmitted : AttemptEnd::kGaveUp;
  return result;
}

Toolbox::Toolbox(const Workspace& workspace, const Sandbox& sandbox, ToolboxOptions options)
    : impl_(new Impl{workspace,
                     sandbox,
                     std::move(options),
                     {},
                     base::TempDir("fleet-tools"),
                     nullptr,
                     {},
                     0}) {
  for (const std::string& name : impl_->options.tools) {
    if (const ToolRow* row = find_tool(name)) impl_->specs.push_back(spec_of(*row));
  }
}

Toolbox::~Toolbox() = default;

const std::vector<ToolSpec>& Toolbox::specs() const {
  return impl_->specs;
}

ToolClass Toolbox::class_of(const std::string& tool) {
  const ToolRow* row = find_tool(tool);
  return row != nullptr && row->changes_workspace ? ToolClass::kWorkspace : ToolClass::kPure;
}

ToolResult Toolbox::run(const ToolCall& call) {
  const ToolRow* row = nullptr;
  std::string names;
  for (const ToolSpec& spec : impl_->specs) {
    names += (names.empty() ? "" : ", ") + spec.name;
    if (spec.name == call.name) row = find_tool(call.name);
  }
  if (row == nullptr) {
    return error_result("There is no tool '" + call.name + "'. The tools are: " + names + ".");
  }
  Result<Json> arguments = Json::parse(call.arguments);
  if (!arguments.ok()) {
    return error_result("The arguments are not valid JSON (" + arguments.error().message() +
                        "). Send the call again.");
  }
  if (std::string problem = check_arguments(*row, *arguments); !problem.empty()) {
    return error_result(problem);
  }
  return impl_->dispatch(call.name, *arguments);
}

}  // namespace team
