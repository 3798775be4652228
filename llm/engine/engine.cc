#include "llm/engine/engine.h"

#include <algorithm>
#include <cstring>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Result;

const char* name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "";
}

// A request on its way. `tokens` are the prompt and what was generated; the first `computed` of
// them are in the cache. Generating means that all but the last are.
struct Engine::Sequence {
  RequestId id = 0;
  GenerateRequest request;
  std::vector<i32> tokens;
  i32 prompt_size = 0;
  i32 computed = 0;
  i32 slot = -1;
  i32 pages = 0;      // in the slot's table
  i32 published = 0;  // of them, findable
  i32 first_row = -1;
  i32 row_count = 0;
  i32 first_logit = 0;
  std::vector<i32> draft;
  i32 draft_count = 0;
  AcceptanceRate acceptance;
  TextStream text{{}};
  Usage usage;
  Chunk chunk;
  FinishReason finish = FinishReason::kNone;
  std::string error;
  bool cancelled = false;

  bool generating() const {
    return computed + 1 == static_cast<i32>(tokens.size()) && computed >= prompt_size - 1;
  }
  std::span<const i32> generated() const {
    return std::span<const i32>(tokens).subspan(static_cast<size_t>(prompt_size));
  }
};

namespace {

i32 pages_for(i32 tokens) {
  return (tokens + kPageTokens - 1) / kPageTokens;
}

}  // namespace

Engine::Engine(Model* model, const Tokenizer* tokenizer, Drafter* drafter,
               const EngineOptions& options)
    : model_(*model),
      tokenizer_(*tokenizer),
      drafter_(drafter),
      options_(options),
      pool_([&] {
        const u64 page_bytes = std::max<u64>(1, model->info().cache_bytes_per_token * kPageTokens);
        const u64 useful =
            static_cast<u64>(options.slots) * static_cast<u64>(pages_for(options.context)) * 2;
        return static_cast<i32>(std::min(options.cache_bytes / page_bytes, useful));
      }()),
      sampler_(model->info().vocab),
      pages_per_slot_(pages_for(options.context)) {
  for (i32 slot = options.slots; slot > 0; --slot) free_slots_.push_back(slot - 1);
  running_.reserve(static_cast<size_t>(options.slots));
  tasks_.reserve(static_cast<size_t>(options.slots));
  drafting_.reserve(static_cast<size_t>(options.slots));
}

Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(Model* model, const Tokenizer* tokenizer,
                                               Drafter* drafter, const EngineOptions& wanted) {
  EngineOptions options = wanted;
  options.context = std::min(options.context, model->info().context);
  const i32 width = 1 + options.draft_max;
  options.step_rows = std::max(options.step_rows, options.slots * width);
  std::unique_ptr<Engine> engine(new Engine(model, tokenizer, drafter, options));
  if (engine->pool_.total() < engine->pages_per_slot_) {
    return Error(ErrorCode::kLimit,
                 "the cache limit of " + std::to_string(options.cache_bytes >> 20) +
                     " MiB does not hold one sequence of " + std::to_string(options.context) +
                     " tokens; raise --cache-mb or lower --context");
  }
  const Capacity capacity{.pages = engine->pool_.total(),
                          .rows = options.step_rows,
                          .logit_rows = options.slots * width,
                          .context = options.context};
  model->reserve(capacity);
  engine->place_step();
  if (drafter != nullptr) drafter->reserve(capacity, options.slots);
  model->set_tuning(options.tuning);
  engine->publish_stats();
  return engine;
}

// Rows and page table, where the model reads them in place.
void Engine::place_step() {
  const auto entries = static_cast<size_t>(options_.slots) * static_cast<size_t>(pages_per_slot_);
  const auto rows = static_cast<size_t>(options_.step_rows);
  const size_t table_bytes = (entries * sizeof(i32) + 63) / 64 * 64;
  u8* memory = model_.step_memory(table_bytes + rows * sizeof(BatchRow));
  page_table_ = {reinterpret_cast<i32*>(memory), entries};
  rows_ = {reinterpret_cast<BatchRow*>(memory + table_bytes), rows};
}

Result<RequestId> Engine::submit(GenerateRequest request) {
  const auto size = static_cast<i64>(request.prompt.size());
  if (size == 0) return Error(ErrorCode::kInvalidArgument, "the prompt is empty");
  if (size >= options_.context) {
    return Error(ErrorCode::kInvalidArgument, "the prompt has " + std::to_string(size) +
                                                  " tokens; this server's context is " +
                                                  std::to_string(options_.context));
  }
  for (TokenId token : request.prompt) {
    if (token < 0 || token >= model_.info().vocab) {
      return Error(ErrorCode::kInvalidArgument,
                   "the prompt has a token that the model does not know");
    }
  }
  auto s = std::make_unique<Sequence>();
  s->tokens.reserve(static_cast<size_t>(options_.context) + 1);
  s->tokens.assign(request.prompt.begin(), request.prompt.end());
  s->prompt_size = static_cast<i32>(size);
  s->draft.resize(static_cast<size_t>(options_.draft_max));
  s->text = TextStream(std::move(request.stops));
  s->usage.prompt_tokens = s->prompt_size;
  s->request = std::move(request);
  const std::lock_guard lock(mutex_);
  if (static_cast<i32>(arrivals_.size()) + shown_.waiting >= options_.queue_max) {
    return Error(ErrorCode::kLimit, "too many requests are waiting; try again later");
  }
  s->id = next_id_++;
  const RequestId id = s->id;
  arrivals_.push_back(std::move(s));
  inbox_count_.fetch_add(1, std::memory_order_release);
  return id;
}

void Engine::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  cancels_.push_back(id);
  inbox_count_.fetch_add(1, std::memory_order_release);
}

void Engine::read_inbox() {
  if (!has_inbox()) return;
  const std::lock_guard lock(mutex_);
  inbox_count_.store(0, std::memory_order_release);
  for (auto& s : arrivals_) {
    ++counts_.requests;
    waiting_.push_back(std::move(s));
  }
  arrivals_.clear();
  for (RequestId id : cancels_) {
    for (auto* list : {&running_, &waiting_}) {
      for (auto& s : *list) {
        if (s->id == id) s->cancelled = true;
      }
    }
  }
  cancels_.clear();
}

bool Engine::step() {
  read_inbox();
  for (auto* list : {&running_, &waiting_}) {
    std::erase_if(*list, [&](auto& s) {
      if (s->cancelled) finish(s.get(), FinishReason::kCancelled, "");
      return s->cancelled;
    });
  }
  admit();
  if (running_.empty()) {
    publish_stats();
    return has_inbox();
  }
  plan_drafts();
  plan_rows();
  if (row_count_ > 0) compute_rows();
  after_step();
  publish_stats();
  return true;
}

void Engine::compute_rows() {
  const Step step{rows_.data(), row_count_, page_table_.data(), pages_per_slot_};
  const i64 start = base::system_clock().monotonic_us();
  if (options_.rebuild_step) {
    // The ablation's other side: fresh tables, copied, as an engine without a plan would.
    const std::vector<BatchRow> rows(rows_.begin(), rows_.begin() + row_count_);
    const std::vector<i32> table(page_table_.begin(), page_table_.end());
    counts_.metadata_bytes += rows.size() * sizeof(BatchRow) + table.size() * sizeof(i32);
    model_.forward({rows.data(), row_count_, table.data(), pages_per_slot_});
  } else {
    model_.forward(step);
  }
  if (drafter_ != nullptr) drafter_->observe(step);
  // Steps of verification alone: prompt chunks have no logits to find.
  if (logit_count_ == row_count_) {
    costs_.observe_step(row_count_, static_cast<f64>(base::system_clock().monotonic_us() - start));
  }
  ++counts_.steps;
  counts_.rows += static_cast<u64>(row_count_);
}

void Engine::admit() {
  while (!waiting_.empty() && !free_slots_.empty()) {
    Sequence* s = waiting_.front().get();
    // Room for the prompt and a first page of answer, so that admission does not thrash.
    const i32 need = std::min(pages_for(static_cast<i32>(s->tokens.size()) + 1), pages_per_slot_);
    if (!running_.empty() && pool_.available() < need) return;
    s->slot = free_slots_.back();
    free_slots_.pop_back();
    if (options_.prefix_cache) attach_prefix(s);
    running_.push_back(std::move(waiting_.front()));
    waiting_.erase(waiting_.begin());
  }
}

void Engine::attach_prefix(Sequence* s) {
  i32* table = page_table_.data() + static_cast<i64>(s->slot) * pages_per_slot_;
  i32 parent = -1;
  // The last token is always computed: its logits are wanted.
  while ((s->pages + 1) * kPageTokens < static_cast<i32>(s->tokens.size())) {
    const auto tokens = std::span<const i32>(s->tokens).subspan(
        static_cast<size_t>(s->pages * kPageTokens), kPageTokens);
    const i32 page = pool_.share(parent, tokens);
    if (page < 0) break;
    table[s->pages++] = parent = page;
  }
  s->published = s->pages;
  s->computed = s->pages * kPageTokens;
  s->usage.cached_tokens = std::min(s->computed, s->prompt_size);
  counts_.cached_prompt_tokens += static_cast<u64>(s->computed);
}

// How many guesses to ask for; the speed depends on it, the answer does not.
i32 Engine::draft_limit(const Sequence& s) const {
  const i32 most = std::min(options_.draft_max, drafter_->longest());
  if (!options_.adapt_drafts) return most;
  return costs_.best_length(static_cast<i32>(running_.size()), s.acceptance.value(), most);
}

void Engine::plan_drafts() {
  tasks_.clear();
  drafting_.clear();
  for (auto& s : running_) s->draft_count = 0;
  if (drafter_ == nullptr) return;
  for (auto& s : running_) {
    if (!s->generating() || s->request.rule || s->request.sampling.changes_logits()) continue;
    const i32 size = static_cast<i32>(s->tokens.size());
    const i32 left = s->prompt_size + s->request.max_tokens - size;
    const i32 limit = std::min({draft_limit(*s), left - 1, options_.context - size - 1});
    if (limit <= 0 || !cover(s.get(), size, false)) continue;
    tasks_.push_back({s->slot, s->tokens, &s->request.sampling, limit, s->draft.data(), 0});
    drafting_.push_back(s.get());
  }
  if (tasks_.empty()) return;
  const i64 start = base::system_clock().monotonic_us();
  drafter_->propose(tasks_, page_table_.data(), pages_per_slot_);
  costs_.observe_draft(static_cast<f64>(base::system_clock().monotonic_us() - start));
  for (size_t i = 0; i < tasks_.size(); ++i) drafting_[i]->draft_count = tasks_[i].count;
}

void Engine::plan_rows() {
  row_count_ = logit_count_ = 0;
  for (auto& s : running_) {
    s->first_row = -1;
    s->row_count = 0;
  }
  // The oldest plan first and may send younger ones back, so the oldest always gets on.
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i]->generating()) plan_decode(running_[i].get());
  }
  for (size_t turn = 0; turn < running_.size(); ++turn) {
    Sequence* s = running_[(prefill_turn_ + turn) % running_.size()].get();
    if (s->generating()) continue;
    const i32 left = options_.step_rows - row_count_;
    if (left <= 0) break;
    plan_prefill(s, left);
  }
  ++prefill_turn_;
  // Prompts that wait for each other's pages: the youngest steps back.
  if (row_count_ == 0 && running_.size() > 1) preempt(running_.back().get());
}

// Pages for the first `tokens` tokens of s. False: none left.
bool Engine::cover(Sequence* s, i32 tokens, bool may_preempt) {
  i32* table = page_table_.data() + static_cast<i64>(s->slot) * pages_per_slot_;
  while (s->pages < pages_for(tokens)) {
    const i32 page = pool_.allocate();
    if (page >= 0) {
      table[s->pages++] = page;
    } else if (!may_preempt || !make_room(s)) {
      return false;
    }
  }
  return true;
}

// Sends the youngest sequence back to the queue, if it is younger than `keep`.
bool Engine::make_room(const Sequence* keep) {
  Sequence* victim = running_.back().get();
  if (victim == keep) return false;
  preempt(victim);
  return true;
}

void Engine::preempt(Sequence* s) {
  ++counts_.preempted;
  release(s);
  s->draft_count = 0;
  const auto it =
      std::find_if(running_.begin(), running_.end(), [&](auto& other) { return other.get() == s; });
  waiting_.insert(waiting_.begin(), std::move(*it));
  running_.erase(it);
}

void Engine::plan_decode(Sequence* s) {
  const i32 size = static_cast<i32>(s->tokens.size());
  if (!cover(s, size + s->draft_count, false)) {
    s->draft_count = 0;
    if (!cover(s, size, true)) {
      // The youngest waits for the others; alone, nothing would ever help.
      if (running_.size() > 1) return;
      s->finish = FinishReason::kError;
      s->error = "the cache is too small for this request";
      return;
    }
  }
  s->first_row = row_count_;
  s->row_count = 1 + s->draft_count;
  s->first_logit = logit_count_;
  for (i32 i = 0; i < s->row_count; ++i) {
    const i32 token = i == 0 ? s->tokens.back() : s->draft[static_cast<size_t>(i - 1)];
    rows_[static_cast<size_t>(row_count_++)] = {token, size - 1 + i, s->slot, true};
  }
  logit_count_ += s->row_count;
  counts_.decode_rows += static_cast<u64>(s->row_count);
}

void Engine::plan_prefill(Sequence* s, i32 budget) {
  const i32 size = static_cast<i32>(s->tokens.size());
  const i32 count = std::min(budget, size - s->computed);
  if (!cover(s, s->computed + count, false)) {
    if (row_count_ == 0 && running_.size() == 1) {
      s->finish = FinishReason::kError;
      s->error = "the cache is too small for this request";
    }
    return;
  }
  s->first_row = row_count_;
  s->row_count = count;
  s->first_logit = logit_count_;
  for (i32 i = 0; i < count; ++i) {
    const i32 position = s->computed + i;
    const bool last = position + 1 == size;
    rows_[static_cast<size_t>(row_count_++)] = {s->tokens[static_cast<size_t>(position)], position,
                                                s->slot, last};
    logit_count_ += last ? 1 : 0;
  }
  counts_.prefill_rows += static_cast<u64>(count);
  counts_.prompt_tokens += static_cast<u64>(count);
}

void Engine::after_step() {
  for (auto& s : running_) {
    if (s->row_count > 0) settle(s.get());
  }
  std::erase_if(running_, [&](auto& s) {
    if (s->finish == FinishReason::kNone) return false;
    finish(s.get(), s->finish, std::move(s->error));
    return true;
  });
}

// Takes the tokens that a step has decided. Row i of a sequence decides the token after it; a guess
// that equals the decision makes the next row valid too.
void Engine::settle(Sequence* s) {
  const bool decided = rows_[static_cast<size_t>(s->first_row + s->row_count - 1)].logits;
  const bool was_prompt =
      s->computed + 1 < static_cast<i32>(s->tokens.size()) || s->draft_count == 0;
  if (was_prompt) {
    s->computed += s->row_count;
    s->acceptance.rest();
    if (decided) take_token(s, s->first_logit, s->computed);
  } else {
    s->usage.drafted_tokens += s->draft_count;
    counts_.drafted += static_cast<u64>(s->draft_count);
    ++counts_.rounds;
    const i32 drafted = s->draft_count;
    const i32 before = s->usage.accepted_tokens;
    for (i32 i = 0; i < s->row_count; ++i) {
      ++s->computed;
      if (!take_token(s, s->first_logit + i, s->computed)) break;
      if (i + 1 == s->row_count || s->tokens.back() != s->draft[static_cast<size_t>(i)]) break;
      ++s->usage.accepted_tokens;
      ++counts_.accepted;
    }
    s->acceptance.observe(s->usage.accepted_tokens - before, drafted);
  }
  s->row_count = 0;
  if (options_.prefix_cache) publish_pages(s);
  if (s->finish == FinishReason::kNone && s->request.sink &&
      (!s->chunk.text.empty() || !s->chunk.tokens.empty())) {
    s->chunk.usage = s->usage;
    s->request.sink(std::move(s->chunk));
    s->chunk = Chunk();
  }
}

// Samples the token at `position` and adds it. False: the answer has ended.
bool Engine::take_token(Sequence* s, i32 logit_row, i64 position) {
  const SamplingParams& params = s->request.sampling;
  const f32* logits = model_.logits(logit_row);
  const bool plain = params.temperature <= 0 && !params.changes_logits() && !s->request.rule;
  const std::span<const u64> allowed =
      s->request.rule ? s->request.rule->allowed() : std::span<const u64>();
  const i32 token = plain ? model_.argmax(logit_row)
                          : sampler_.sample(logits, params, position, s->generated(), allowed);
  ++counts_.generated;
  ++s->usage.completion_tokens;
  const bool stops = !s->request.ignore_stop_tokens && tokenizer_.is_stop(token);
  if (stops) {
    s->finish = FinishReason::kStop;
    return false;
  }
  s->tokens.push_back(token);
  if (s->request.logprobs >= 0) {
    TokenReport report{token, 0, {}};
    report.logprob = sampler_.logprobs(logits, token, s->request.logprobs, &report.top);
    s->chunk.tokens.push_back(std::move(report));
  }
  if (s->text.append(tokenizer_.bytes_of(token), &s->chunk.text)) {
    s->finish = FinishReason::kStop;
    return false;
  }
  if (s->request.rule) {
    s->request.rule->accept(token);
    if (s->request.rule->complete()) s->finish = FinishReason::kStop;
  }
  if (s->finish == FinishReason::kNone &&
      (s->usage.completion_tokens >= s->request.max_tokens ||
       static_cast<i32>(s->tokens.size()) >= options_.context)) {
    s->finish = FinishReason::kLength;
  }
  return s->finish == FinishReason::kNone;
}

void Engine::publish_pages(Sequence* s) {
  i32* table = page_table_.data() + static_cast<i64>(s->slot) * pages_per_slot_;
  while ((s->published + 1) * kPageTokens <= s->computed) {
    const i32 at = s->published;
    const auto tokens =
        std::span<const i32>(s->tokens).subspan(static_cast<size_t>(at * kPageTokens), kPageTokens);
    table[at] = pool_.publish(table[at], at == 0 ? -1 : table[at - 1], tokens);
    ++s->published;
  }
}

void Engine::finish(Sequence* s, FinishReason reason, std::string error) {
  s->text.finish(&s->chunk.text);
  s->chunk.finish = reason;
  s->chunk.error = std::move(error);
  s->chunk.usage = s->usage;
  ++counts_.finished;
  if (reason == FinishReason::kCancelled) ++counts_.cancelled;
  if (s->slot >= 0) release(s);
  if (s->request.sink) s->request.sink(std::move(s->chunk));
}

void Engine::release(Sequence* s) {
  const i32* table = page_table_.data() + static_cast<i64>(s->slot) * pages_per_slot_;
  // From the end, so that the beginning of a text is the last to be reclaimed.
  for (i32 i = s->pages; i > 0; --i) pool_.release(table[i - 1]);
  free_slots_.push_back(s->slot);
  s->slot = -1;
  s->pages = s->published = s->computed = 0;
  s->first_row = -1;
  s->row_count = 0;
}

void Engine::publish_stats() {
  counts_.running = static_cast<i32>(running_.size());
  counts_.waiting = static_cast<i32>(waiting_.size());
  counts_.pages_total = pool_.total();
  counts_.pages_available = pool_.available();
  const std::lock_guard lock(mutex_);
  shown_ = counts_;
}

EngineStats Engine::stats() const {
  const std::lock_guard lock(mutex_);
  return shown_;
}

}  // namespace llm
