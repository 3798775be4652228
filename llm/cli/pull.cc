// fleetlm pull: fetches a model, one file or all that a model consists of.
#include "base/files.h"
#include "base/json.h"
#include "llm/cli/commands.h"
#include "llm/cli/download.h"

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <set>

namespace llm {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

std::string file_name(const std::string& url) {
  const std::string path = url.substr(0, url.find_first_of("?#"));
  return path.substr(path.rfind('/') + 1);
}

// A bar on a terminal, nothing in a pipe.
class Bar {
 public:
  explicit Bar(std::string name) : name_(std::move(name)), shown_(::isatty(2) != 0) {}
  ~Bar() {
    if (drawn_) std::fputc('\n', stderr);
  }
  void draw(u64 done, u64 total) {
    const u64 tenths = total == 0 ? done >> 20 : done * 1000 / total;
    if (!shown_ || tenths == last_) return;
    last_ = tenths;
    drawn_ = true;
    constexpr u64 kWidth = 30;
    const u64 filled = total == 0 ? 0 : done * kWidth / total;
    std::fprintf(stderr, "\r%-32.32s [%s%s] %5.1f%% %.1f MB", name_.c_str(),
                 std::string(filled, '#').c_str(), std::string(kWidth - filled, ' ').c_str(),
                 total == 0 ? 0.0 : static_cast<f64>(tenths) / 10, static_cast<f64>(done) / 1e6);
  }

 private:
  std::string name_;
  bool shown_;
  bool drawn_ = false;
  u64 last_ = ~u64{0};
};

class Pull {
 public:
  Pull(std::string base, std::string folder) : base_(std::move(base)), folder_(std::move(folder)) {}

  Status file(const std::string& name, const std::string& to, const std::string& sha256) {
    if (base::file_exists(to) && sha256.empty()) {
      std::printf("%s is here already\n", to.c_str());
      return {};
    }
    Bar bar(name);
    DownloadOptions options;
    options.sha256 = sha256;
    options.progress = [&](u64 done, u64 total) { bar.draw(done, total); };
    const Downloaded got = TRY(download(base_ + name, to, options));
    std::printf("%s  %s%s\n", got.sha256.c_str(), to.c_str(),
                got.checked ? "" : "  (the server sent no checksum)");
    return {};
  }

  Status in_folder(const std::string& name) { return file(name, folder_ + "/" + name, ""); }

  // Fine when the server has none.
  Result<bool> optional(const std::string& name) {
    const Status done = in_folder(name);
    if (!done.ok() && done.error().code() != ErrorCode::kNotFound) return done.error();
    if (!done.ok()) ::unlink((folder_ + "/" + name + ".partial").c_str());
    return done.ok();
  }

  // What a Hugging Face folder consists of.
  Status whole_folder() {
    TRY(base::make_directories(folder_));
    TRY(in_folder("config.json"));
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json",
                             "chat_template.jinja"}) {
      TRY(optional(name));
    }
    if (!TRY(optional("model.safetensors.index.json"))) return in_folder("model.safetensors");
    const std::string index = TRY(base::read_file(folder_ + "/model.safetensors.index.json"));
    const base::Json map = TRY(base::Json::parse(index))["weight_map"];
    std::set<std::string> names;
    for (const auto& [tensor, name] : map.members()) names.insert(name.as_string());
    for (const std::string& name : names) {
      if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos) {
        return Error(ErrorCode::kCorruption, "the index names a file outside its folder");
      }
      TRY(in_folder(name));
    }
    return {};
  }

 private:
  const std::string base_, folder_;
};

// "x-00001-of-00003.gguf" is three files.
std::vector<std::string> parts_of(const std::string& name) {
  const size_t of = name.rfind("-of-");
  if (!name.ends_with(".gguf") || of == std::string::npos || of < 6 ||
      name.size() - of != std::string_view("-of-00003.gguf").size()) {
    return {name};
  }
  const int count = std::atoi(name.c_str() + of + 4);
  std::vector<std::string> names;
  for (int i = 1; i <= std::min(count, 4096); ++i) {
    char number[16];
    std::snprintf(number, sizeof number, "%05d", i);
    names.push_back(name.substr(0, of - 5) + number + name.substr(of));
  }
  return names;
}

Status pull(const std::string& url, const std::string& to, const std::string& sha256) {
  const std::string name = file_name(url);
  const bool one = name.ends_with(".gguf") || name.ends_with(".safetensors");
  if (!one) {
    if (!sha256.empty()) {
      return Error(ErrorCode::kInvalidArgument, "--sha256 is for one file, not for a folder");
    }
    return Pull(url + (url.ends_with('/') ? "" : "/"), to).whole_folder();
  }
  const std::string base = url.substr(0, url.rfind(name));
  const std::vector<std::string> parts = parts_of(name);
  if (parts.size() == 1) {
    const std::string path = base::is_directory(to) ? to + "/" + name : to;
    return Pull(base, "").file(url.substr(base.size()), path, sha256);
  }
  TRY(base::make_directories(to));
  Pull all(base, to);
  for (const std::string& part : parts) TRY(all.in_folder(part));
  return {};
}

}  // namespace

int run_pull(int argc, char** argv) {
  CLI::App app(
      "Fetches a model: a .gguf or .safetensors file, or all files of the Hugging Face folder at a "
      "base URL. Run again to go on after an interruption.",
      "fleetlm pull");
  std::string url;
  std::string to;
  std::string sha256;
  app.add_option("url", url, "a file, or the base of a model's files")->required();
  app.add_option("to", to, "the file or folder to write")->required();
  app.add_option("--sha256", sha256, "what the file must hash to");
  CLI11_PARSE(app, argc, argv);
  const auto done = pull(url, to, sha256);
  return done.ok() ? 0 : fail(done.error());
}

}  // namespace llm
