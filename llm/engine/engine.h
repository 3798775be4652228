// Runs many requests through one model: continuous batching, paged cache with shared prefixes,
// chunked prefill, speculation with exact verification, fair shares, cancellation.
//
// One thread calls step() again and again; any thread may submit() and cancel(). Each step takes
// one row for every sequence that generates, plus its guesses, and fills the rest of its rows with
// prompt chunks, in turn. A token depends only on its request, never on its company.
// In a steady decode step nothing is allocated and no table is rebuilt: rows are advanced in place.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "llm/engine/page_pool.h"
#include "llm/engine/text_stream.h"
#include "llm/model/model.h"
#include "llm/speculation/cost_table.h"
#include "llm/speculation/drafter.h"
#include "llm/speculation/sampler.h"
#include "llm/tokenizer/tokenizer.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace llm {

enum class FinishReason { kNone, kStop, kLength, kCancelled, kError };
const char* name_of(FinishReason reason);

struct Usage {
  i32 prompt_tokens = 0;
  i32 cached_tokens = 0;  // of the prompt, taken from the prefix cache
  i32 completion_tokens = 0;
  i32 drafted_tokens = 0;
  i32 accepted_tokens = 0;  // of the drafted
};

struct TokenReport {
  TokenId token = 0;
  f32 logprob = 0;
  std::vector<Sampler::Candidate> top;
};

// What one step adds to an answer.
struct Chunk {
  std::string text;
  std::vector<TokenReport> tokens;  // only when logprobs were asked for
  FinishReason finish = FinishReason::kNone;
  std::string error;
  Usage usage;
};

// Which tokens may come next; for grammars and schemas. One per request.
class TokenRule {
 public:
  virtual ~TokenRule() = default;
  // A bit per token of the vocabulary; valid until the next call.
  virtual std::span<const u64> allowed() = 0;
  virtual void accept(TokenId token) = 0;
  // Nothing may follow: the answer is complete.
  virtual bool complete() const = 0;
};

struct GenerateRequest {
  std::vector<TokenId> prompt;
  i32 max_tokens = 256;
  SamplingParams sampling;
  std::vector<std::string> stops;
  bool ignore_stop_tokens = false;
  i32 logprobs = -1;  // how many alternatives to report; -1: no report
  std::shared_ptr<TokenRule> rule;
  // Called on the engine's thread; the last chunk has a finish reason. Must not block.
  std::function<void(Chunk&&)> sink;
};

struct EngineOptions {
  i32 slots = 8;                 // sequences computed at once
  i32 context = 2048;            // tokens of one sequence
  i32 step_rows = 128;           // of one step
  u64 cache_bytes = 1ull << 30;  // memory cap of the cache
  i32 queue_max = 256;           // requests waiting for a slot
  i32 draft_max = 7;             // guesses of one sequence
  bool adapt_drafts = false;     // as many of them as have paid off lately (cost_table.h)
  bool prefix_cache = true;
  bool rebuild_step = false;  // ablation: build and copy every table anew each step
  StepTuning tuning;
};

struct EngineStats {
  u64 steps = 0, rows = 0, decode_rows = 0, prefill_rows = 0;
  u64 generated = 0, drafted = 0, accepted = 0, rounds = 0;
  u64 cached_prompt_tokens = 0, prompt_tokens = 0;
  u64 requests = 0, finished = 0, cancelled = 0, preempted = 0;
  u64 metadata_bytes = 0;  // copied into step tables
  i32 running = 0, waiting = 0, pages_total = 0, pages_available = 0;
};

using RequestId = u64;

class Engine {
 public:
  // `model`, `tokenizer` and `drafter` (may be null) outlive the engine. Reserves all memory.
  // Errors: kLimit when the cache cap cannot hold one sequence.
  static base::Result<std::unique_ptr<Engine>> create(Model* model, const Tokenizer* tokenizer,
                                                      Drafter* drafter,
                                                      const EngineOptions& options);
  ~Engine();

  // Errors: kInvalidArgument for a prompt that cannot fit; kLimit when the queue is full.
  base::Result<RequestId> submit(GenerateRequest request);
  void cancel(RequestId id);

  // One step. False: there was nothing to do.
  bool step();
  // Steps until there is nothing to do.
  void run() {
    while (step()) {
    }
  }
  bool has_inbox() const { return inbox_count_.load(std::memory_order_acquire) != 0; }

  // Any thread; counts are those of the last finished step.
  EngineStats stats() const;
  const EngineOptions& options() const { return options_; }
  // Between requests: who guesses (null: nobody), and the switches of the ablation.
  void set_drafter(Drafter* drafter, bool adapt_drafts) {
    drafter_ = drafter;
    options_.adapt_drafts = adapt_drafts;
  }
  // What steps and drafts have taken since set_switches().
  const CostTable& costs() const { return costs_; }
  void set_switches(const StepTuning& tuning, bool rebuild_step) {
    model_.set_tuning(tuning);
    options_.rebuild_step = rebuild_step;
    costs_ = CostTable();
  }

 private:
  struct Sequence;
  Engine(Model* model, const Tokenizer* tokenizer, Drafter* drafter, const EngineOptions& options);
  void place_step();
  void read_inbox();
  void admit();
  void attach_prefix(Sequence* s);
  void plan_drafts();
  void plan_rows();
  void plan_decode(Sequence* s);
  void plan_prefill(Sequence* s, i32 budget);
  bool cover(Sequence* s, i32 tokens, bool may_preempt);
  bool make_room(const Sequence* keep);
  void preempt(Sequence* s);
  void compute_rows();
  i32 draft_limit(const Sequence& s) const;
  void after_step();
  void settle(Sequence* s);
  bool take_token(Sequence* s, i32 logit_row, i64 position);
  void publish_pages(Sequence* s);
  void finish(Sequence* s, FinishReason reason, std::string error);
  void release(Sequence* s);
  void publish_stats();

  Model& model_;
  const Tokenizer& tokenizer_;
  Drafter* drafter_;
  EngineOptions options_;
  PagePool pool_;
  Sampler sampler_;
  i32 pages_per_slot_;

  std::span<i32> page_table_;  // both in the model's step memory
  std::span<BatchRow> rows_;
  i32 row_count_ = 0;
  i32 logit_count_ = 0;
  std::vector<std::unique_ptr<Sequence>> running_;  // in order of admission
  std::vector<std::unique_ptr<Sequence>> waiting_;
  std::vector<i32> free_slots_;
  std::vector<DraftTask> tasks_;
  std::vector<Sequence*> drafting_;
  size_t prefill_turn_ = 0;
  CostTable costs_;
  EngineStats counts_;

  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Sequence>> arrivals_;
  std::vector<RequestId> cancels_;
  RequestId next_id_ = 1;
  EngineStats shown_;
  std::atomic<u32> inbox_count_{0};
};

}  // namespace llm
