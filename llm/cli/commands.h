// The commands of fleetlm and what they share: options of the engine, opening a model.
#pragma once

#include "llm/engine/engine.h"
#include "llm/model/load.h"
#include "llm/template/chat.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace llm {

struct Command {
  std::string_view name;
  int (*run)(int argc, char** argv);  // argv[0] is the command's name
};
std::span<const Command> commands();

int run_chat(int argc, char** argv);
int run_run(int argc, char** argv);
int run_info(int argc, char** argv);
int run_serve(int argc, char** argv);
int run_bench(int argc, char** argv);
int run_quantize(int argc, char** argv);
int run_convert(int argc, char** argv);
int run_pull(int argc, char** argv);

// Options that every command with a model takes.
struct ModelOptions {
  std::string path;
  i32 threads = 0;  // of all ranks together; 0: one for each processor
  i32 ranks = 1;
  bool exact = false;
  i32 context = 2048;
  i32 slots = 4;
  i32 cache_mb = 2048;
  std::string speculation = "ngram";
  std::string draft_path;    // for dspark
  std::string draft_layout;  // anchor, shifted or what the file says
  f32 confidence_min = 0;
  i32 draft_max = 7;
  bool adapt_drafts = true;
  bool fusion = true;
  bool comm = true;
  bool rebuild_step = false;
  bool prefix_cache = true;
  void add_to(CLI::App* app);
};

struct SamplingOptions {
  f32 temperature = 0.6f;
  f32 top_p = 0.95f;
  i32 top_k = 0;
  u64 seed = 0;  // 0: a new one each time
  i32 max_tokens = 512;
  void add_to(CLI::App* app);
  SamplingParams params() const;
};

// A model with an engine over it.
struct Session {
  std::unique_ptr<RankGroup> group;  // null with one rank
  std::unique_ptr<Crew> crew;
  LoadedModel loaded;
  ChatTemplate chat;
  std::unique_ptr<Gguf> draft_file;
  std::unique_ptr<Drafter> drafter;
  std::unique_ptr<Engine> engine;
};
// The model alone, without an engine.
base::Status open_model(const ModelOptions& options, Session* session);
// With ranks, processes are started first, so no thread may run yet; the other ranks never return.
base::Result<std::unique_ptr<Session>> open_session(const ModelOptions& options);

// Prints "fleetlm: MESSAGE" and returns 1.
int fail(const base::Error& error);

}  // namespace llm
