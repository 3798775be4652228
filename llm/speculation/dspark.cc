#include "llm/speculation/dspark.h"

#include "llm/formats/quant.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

Result<DSparkConfig> dspark_config(const Gguf& gguf, std::optional<bool> layout) {
  std::string missing;
  auto need = [&](const std::string& key) {
    const auto value = gguf.integer("dflash." + key);
    if (!value || *value <= 0 || *value > (1 << 24)) {
      if (missing.empty()) missing = key;
      return 1;
    }
    return static_cast<i32>(*value);
  };
  DSparkConfig c;
  c.hidden = need("embedding_length");
  c.layers = need("block_count");
  c.heads = need("attention.head_count");
  c.kv_heads = static_cast<i32>(gguf.integer("dflash.attention.head_count_kv").value_or(c.heads));
  c.head_dim = need("attention.key_length");
  c.ffn = need("feed_forward_length");
  c.block = need("block_size");
  c.eps = static_cast<f32>(gguf.number("dflash.attention.layer_norm_rms_epsilon").value_or(1e-5));
  c.rope_base = gguf.number("dflash.rope.freq_base").value_or(10000);
  c.mask_token = static_cast<i32>(gguf.integer("tokenizer.ggml.mask_token_id").value_or(-1));
  const auto* layers = gguf.integers("dflash.target_layers");
  if (layers == nullptr || layers->empty()) missing = "target_layers";
  if (!missing.empty()) {
    return Error(ErrorCode::kCorruption, "the draft has no usable value for dflash." + missing);
  }
  for (i64 layer : *layers) c.target_layers.push_back(static_cast<i32>(layer));
  const auto said = gguf.boolean("dflash.sample_from_anchor");
  if (!said && !layout) {
    return Error(
        ErrorCode::kInvalidArgument,
        "the draft does not say which block layout it was trained with; give --draft-layout "
        "anchor or --draft-layout shifted");
  }
  c.sample_from_anchor = said.value_or(layout.value_or(true));
  if (const TensorView* w2 = gguf.find("markov_w2.weight"))
    c.markov_rank = static_cast<i32>(w2->columns());
  if (c.kv_heads <= 0 || c.heads % c.kv_heads != 0 || c.head_dim % 2 != 0 || c.block < 2 ||
      c.block > 64 || c.mask_token < 0) {
    return Error(ErrorCode::kCorruption, "the sizes in the draft's metadata do not fit together");
  }
  return c;
}

DSparkDrafter::DSparkDrafter(const DSparkConfig& config, Model* target, const Options& options)
    : config_(config),
      options_(options),
      target_(*target),
      crew_(target->crew()),
      kernels_(best_kernels()),
      element_(options.precision == Precision::kExact ? 4 : 2),
      sampler_(target->info().vocab) {}

Result<std::unique_ptr<DSparkDrafter>> DSparkDrafter::load(const TensorSource& source,
                                                           const DSparkConfig& config,
                                                           Model* target, const Options& options) {
  for (i32 layer : config.target_layers) {
    if (layer < 0 || layer >= target->info().layers) {
      return Error(ErrorCode::kInvalidArgument,
                   "the draft reads a layer that this model does not have");
    }
  }
  if (config.mask_token >= target->info().vocab) {
    return Error(ErrorCode::kInvalidArgument,
                 "the draft's mask token is not in this model's vocabulary");
  }
  if (config.hidden != target->info().hidden) {
    return Error(ErrorCode::kUnsupported,
                 "the draft's width differs from the model's, so it cannot share the embedding");
  }
  std::unique_ptr<DSparkDrafter> draft(new DSparkDrafter(config, target, options));
  TRY(draft->load_weights(source));
  target->capture_inputs(config.target_layers);
  return draft;
}

Status DSparkDrafter::load_weights(const TensorSource& source) {
  const DSparkConfig& c = config_;
  WeightReader reader(source, options_.precision);
  const i32 wide = static_cast<i32>(c.target_layers.size()) * target_.info().hidden;
  fc_ = TRY(reader.matrix("fc.weight", c.hidden, wide));
  context_norm_ = TRY(reader.vector("enc.output_norm.weight", c.hidden));
  final_norm_ = TRY(reader.vector("output_norm.weight", c.hidden));
  for (i32 i = 0; i < c.layers; ++i) {
    const std::string at = "blk." + std::to_string(i) + ".";
    Layer l;
    l.attention_norm = TRY(reader.vector(at + "attn_norm.weight", c.hidden));
    l.ffn_norm = TRY(reader.vector(at + "ffn_norm.weight", c.hidden));
    l.q_norm = TRY(reader.vector(at + "attn_q_norm.weight", c.head_dim));
    l.k_norm = TRY(reader.vector(at + "attn_k_norm.weight", c.head_dim));
    l.q = TRY(reader.matrix(at + "attn_q.weight", c.heads * c.head_dim, c.hidden));
    l.k = TRY(reader.matrix(at + "attn_k.weight", c.kv_heads * c.head_dim, c.hidden));
    l.v = TRY(reader.matrix(at + "attn_v.weight", c.kv_heads * c.head_dim, c.hidden));
    l.output = TRY(reader.matrix(at + "attn_output.weight", c.hidden, c.heads * c.head_dim));
    l.gate = TRY(reader.matrix(at + "ffn_gate.weight", c.ffn, c.hidden));
    l.up = TRY(reader.matrix(at + "ffn_up.weight", c.ffn, c.hidden));
    l.down = TRY(reader.matrix(at + "ffn_down.weight", c.hidden, c.ffn));
    layers_.push_back(std::move(l));
  }
  TRY(load_ids(source, &reader));
  const i32 vocab = target_.info().vocab;
  const i32 known = ids_.empty() ? vocab : static_cast<i32>(ids_.size());
  if (c.markov_rank > 0) {
    markov_in_ = TRY(
        reader.table("markov_w1.weight", static_cast<u64>(vocab), static_cast<u64>(c.markov_rank)));
    markov_out_ = TRY(reader.matrix("markov_w2.weight", known, c.markov_rank));
  }
  if (reader.has("conf_proj.weight")) {
    confidence_weight_ = TRY(reader.vector("conf_proj.weight", c.hidden + c.markov_rank));
    confidence_bias_ = TRY(reader.vector("conf_proj.bias", 1))[0];
  }
  if (reader.has("output.weight")) own_head_ = TRY(reader.matrix("output.weight", known, c.hidden));
  if (!ids_.empty() && own_head_.empty()) {
    return Error(ErrorCode::kCorruption,
                 "the draft has a vocabulary of its own but no head for it");
  }
  return {};
}

Status DSparkDrafter::load_ids(const TensorSource& source, WeightReader* reader) {
  const TensorView* stored = source.find("d2t");
  if (stored == nullptr) return {};
  const i32 vocab = target_.info().vocab;
  if (stored->values() == 0 || stored->values() > static_cast<u64>(vocab)) {
    return Error(ErrorCode::kCorruption, "the draft's vocabulary is larger than the model's");
  }
  for (f32 id : TRY(reader->vector("d2t", static_cast<i32>(stored->values())))) {
    if (!(id >= 0 && id < static_cast<f32>(vocab))) {
      return Error(ErrorCode::kCorruption, "the draft guesses tokens that the model does not have");
    }
    ids_.push_back(static_cast<i32>(id));
  }
  return {};
}

void DSparkDrafter::reserve(const Capacity& cap, i32 slots) {
  const DSparkConfig& c = config_;
  capacity_ = cap;
  slots_ = slots;
  rows_max_ = std::max(cap.rows, slots_ * c.block);
  tail_pages_ = (kPageTokens + c.block + kPageTokens - 1) / kPageTokens;
  pages_per_task_ = cap.context / kPageTokens + tail_pages_ + 1;
  pages_.resize(static_cast<size_t>(slots_ * pages_per_task_));
  v_stride_ = (c.head_dim + 7) / 8 * 8;
  key_bytes_ = static_cast<i64>(kPageTokens) * c.head_dim * element_;
  value_bytes_ = static_cast<i64>(kPageTokens) * v_stride_ * element_;
  const i64 page_count = cap.pages + slots_ * tail_pages_;
  const i64 heads = page_count * c.layers * c.kv_heads;
  keys_ = AlignedBytes(static_cast<u64>(heads * key_bytes_));
  values_ = AlignedBytes(static_cast<u64>(heads * value_bytes_));
  const auto rows = static_cast<u64>(rows_max_);
  const auto floats = [&](i32 width) { return AlignedArray<f32>(rows * static_cast<u64>(width)); };
  x_ = floats(c.hidden);
  q_ = floats(c.heads * c.head_dim);
  k_ = floats(c.kv_heads * c.head_dim);
  v_ = floats(c.kv_heads * c.head_dim);
  gate_ = floats(c.ffn);
  up_ = floats(c.ffn);
  partial_ = floats(c.hidden);
  const i32 vocab = target_.info().vocab;
  head_stride_ = (vocab + 15) / 16 * 16;
  logits_ = AlignedArray<f32>(static_cast<u64>(slots_ * c.block * head_stride_));
  known_stride_ = head_stride_;
  if (!ids_.empty()) {
    known_stride_ = (static_cast<i64>(ids_.size()) + 15) / 16 * 16;
    known_ = AlignedArray<f32>(static_cast<u64>(slots_ * c.block * known_stride_));
    std::fill(logits_.data(), logits_.data() + logits_.size(),
              -std::numeric_limits<f32>::infinity());
  }
  confidences_.resize(static_cast<size_t>(slots_ * c.block));
  bias_ = AlignedArray<f32>(static_cast<u64>(head_stride_));
  pending_.resize(static_cast<size_t>(rows_max_));
  pending_count_ = 0;
  features_ = ActRows(rows_max_, fc_.cols());
  context_ = ActRows(rows_max_, c.hidden);
  normed_ = ActRows(rows_max_, c.hidden);
  attended_ = ActRows(rows_max_, c.heads * c.head_dim);
  hidden_ = ActRows(rows_max_, c.ffn);
  markov_rows_ = ActRows(1, std::max(c.markov_rank, 1));
  angles_ = RopeAngles(rows_max_, rope_frequencies(c.head_dim, c.rope_base));
  scores_stride_ = (cap.context + c.block + 31) / 16 * 16;
  for (i32 rank = 0; rank < crew_.size(); ++rank) {
    scores_.emplace_back(static_cast<u64>(4 * scores_stride_));
    halves_.emplace_back(static_cast<u64>(v_stride_));
  }
}

u8* DSparkDrafter::page(AlignedBytes& bytes, i64 head_bytes, i32 index, i32 page, i32 head) {
  const i64 page_count = capacity_.pages + slots_ * tail_pages_;
  return bytes.data() +
         ((static_cast<i64>(index) * page_count + page) * config_.kv_heads + head) * head_bytes;
}

void DSparkDrafter::multiply(const PackedMatrix& m, const ActRows& x, i32 rows, f32* out,
                             i32 rank) {
  multiply_share(kernels_, m, x.view(), rows, out, m.rows(), rank, crew_.size());
}

void DSparkDrafter::finish_key(const Layer& layer, i32 row, i32 angle_row) {
  const i32 size = config_.head_dim;
  for (i32 head = 0; head < config_.kv_heads; ++head) {
    f32* k = k_.data() + (static_cast<i64>(row) * config_.kv_heads + head) * size;
    kernels_.rms_norm(k, layer.k_norm.data(), config_.eps, size, k);
    angles_.apply(angle_row, k, false);
  }
}

// K and V of one row into a page.
void DSparkDrafter::store(i32 index, i32 page_number, i32 lane, i32 row, i32 rank) {
  const i32 size = config_.head_dim;
  for (i32 head = 0; head < config_.kv_heads; ++head) {
    const i64 at = (static_cast<i64>(row) * config_.kv_heads + head) * size;
    const f32* k = k_.data() + at;
    const f32* v = v_.data() + at;
    u8* keys = page(keys_, key_bytes_, index, page_number, head);
    u8* values = page(values_, value_bytes_, index, page_number, head);
    if (element_ == 4) {
      for (i32 i = 0; i < size; ++i) base::store_le<f32>(keys + (i * kPageTokens + lane) * 4, k[i]);
      std::memcpy(values + lane * v_stride_ * 4, v, sizeof(f32) * static_cast<size_t>(size));
      continue;
    }
    u16* halves = halves_[static_cast<size_t>(rank)].data();
    kernels_.to_half(k, size, halves);
    u16* to = reinterpret_cast<u16*>(keys) + lane;
    for (i32 i = 0; i < size; ++i) to[i * kPageTokens] = halves[i];
    kernels_.to_half(v, size, reinterpret_cast<u16*>(values) + lane * v_stride_);
  }
}

void DSparkDrafter::observe(const Step& step) {
  if (pending_count_ + step.count > rows_max_) project_pending();
  for (i32 row = 0; row < step.count; ++row) {
    const BatchRow& r = step.rows[row];
    const i32 page = step.page_table[r.slot * step.pages_per_slot + r.position / kPageTokens];
    const i32 lane = r.position % kPageTokens;
    // A place that is computed anew, after a wrong guess or by the page's next owner, counts once.
    i32 at = 0;
    while (at < pending_count_ &&
           (pending_[static_cast<size_t>(at)].page != page ||
            pending_[static_cast<size_t>(at)].position % kPageTokens != lane))
      ++at;
    if (at == pending_count_) ++pending_count_;
    pending_[static_cast<size_t>(at)] = {page, r.position};
    std::memcpy(features_.row(at), target_.captured(row),
                sizeof(f32) * static_cast<size_t>(fc_.cols()));
  }
}

void DSparkDrafter::project_pending() {
  if (pending_count_ == 0) return;
  auto body = [this](i32 rank) { project_rank(rank); };
  crew_.run(body);
  pending_count_ = 0;
}

void DSparkDrafter::project_rank(i32 rank) {
  const Share rows = share_of(pending_count_, rank, crew_.size());
  for (i32 row = rows.begin; row < rows.end; ++row) {
    angles_.set(row, pending_[static_cast<size_t>(row)].position);
  }
  features_.quantize(kernels_, rows.begin, rows.end);
  crew_.barrier();
  multiply(fc_, features_, pending_count_, partial_.data(), rank);
  crew_.barrier();
  for (i32 row = rows.begin; row < rows.end; ++row) {
    kernels_.rms_norm(partial_.data() + static_cast<i64>(row) * config_.hidden,
                      context_norm_.data(), config_.eps, config_.hidden, context_.row(row));
  }
  context_.quantize(kernels_, rows.begin, rows.end);
  for (i32 i = 0; i < config_.layers; ++i) {
    const Layer& layer = layers_[static_cast<size_t>(i)];
    crew_.barrier();
    multiply(layer.k, context_, pending_count_, k_.data(), rank);
    multiply(layer.v, context_, pending_count_, v_.data(), rank);
    crew_.barrier();
    for (i32 row = rows.begin; row < rows.end; ++row) {
      const Place& place = pending_[static_cast<size_t>(row)];
      finish_key(layer, row, row);
      store(i, place.page, place.position % kPageTokens, row, rank);
    }
  }
}

void DSparkDrafter::propose(std::span<DraftTask> tasks, const i32* table, i32 pages_per_slot) {
  project_pending();
  table_ = table;
  pages_per_slot_ = pages_per_slot;
  for (size_t from = 0; from < tasks.size(); from += static_cast<size_t>(slots_)) {
    tasks_ = tasks.subspan(from, std::min(tasks.size() - from, static_cast<size_t>(slots_)));
    for (i32 t = 0; t < static_cast<i32>(tasks_.size()); ++t) copy_tail_page(t);
    auto body = [this](i32 rank) { block_rank(rank); };
    crew_.run(body);
  }
}

// The block must not touch pages that others may share: its last context page is copied to scratch.
void DSparkDrafter::copy_tail_page(i32 t) {
  const DraftTask& task = tasks_[static_cast<size_t>(t)];
  const i32 start = static_cast<i32>(task.history.size()) - 1;
  const i32 whole = start / kPageTokens;
  const i32* from = table_ + static_cast<i64>(task.slot) * pages_per_slot_;
  i32* to = pages_.data() + static_cast<i64>(t) * pages_per_task_;
  std::copy(from, from + whole, to);
  const i32 scratch = capacity_.pages + t * tail_pages_;
  for (i32 i = 0; i < tail_pages_; ++i) to[whole + i] = scratch + i;
  if (start % kPageTokens == 0) return;
  for (i32 i = 0; i < config_.layers; ++i) {
    for (i32 head = 0; head < config_.kv_heads; ++head) {
      std::memcpy(page(keys_, key_bytes_, i, scratch, head),
                  page(keys_, key_bytes_, i, from[whole], head), static_cast<size_t>(key_bytes_));
      std::memcpy(page(values_, value_bytes_, i, scratch, head),
                  page(values_, value_bytes_, i, from[whole], head),
                  static_cast<size_t>(value_bytes_));
    }
  }
}

void DSparkDrafter::start_rows(i32 rank) {
  const i32 count = static_cast<i32>(tasks_.size()) * config_.block;
  const Share rows = share_of(count, rank, crew_.size());
  for (i32 row = rows.begin; row < rows.end; ++row) {
    const DraftTask& task = tasks_[static_cast<size_t>(row / config_.block)];
    const i32 place = row % config_.block;
    target_.embed(place == 0 ? task.history.back() : config_.mask_token,
                  x_.data() + static_cast<i64>(row) * config_.hidden);
    angles_.set(row, static_cast<i32>(task.history.size()) - 1 + place);
  }
}

void DSparkDrafter::block_rank(i32 rank) {
  const i32 count = static_cast<i32>(tasks_.size()) * config_.block;
  const Share rows = share_of(count, rank, crew_.size());
  start_rows(rank);
  for (i32 i = 0; i < config_.layers; ++i) block_layer(layers_[static_cast<size_t>(i)], i, rank);
  for (i32 row = rows.begin; row < rows.end; ++row) {
    kernels_.rms_norm(x_.data() + static_cast<i64>(row) * config_.hidden, final_norm_.data(),
                      config_.eps, config_.hidden, normed_.row(row));
  }
  normed_.quantize(kernels_, rows.begin, rows.end);
  crew_.barrier();
  const PackedMatrix& head = own_head_.empty() ? target_.head() : own_head_;
  multiply_share(kernels_, head, normed_.view(), count, known_logits(0), known_stride_, rank,
                 crew_.size());
  crew_.barrier();
  chain(rank);
}

void DSparkDrafter::block_layer(const Layer& layer, i32 index, i32 rank) {
  const DSparkConfig& c = config_;
  const i32 count = static_cast<i32>(tasks_.size()) * c.block;
  const Share rows = share_of(count, rank, crew_.size());
  const auto norm = [&](const std::vector<f32>& weight) {
    for (i32 row = rows.begin; row < rows.end; ++row) {
      kernels_.rms_norm(x_.data() + static_cast<i64>(row) * c.hidden, weight.data(), c.eps,
                        c.hidden, normed_.row(row));
    }
    normed_.quantize(kernels_, rows.begin, rows.end);
    crew_.barrier();
  };
  const auto add_residual = [&](const PackedMatrix& m, const ActRows& in) {
    multiply(m, in, count, partial_.data(), rank);
    crew_.barrier();
    for (i32 row = rows.begin; row < rows.end; ++row) {
      kernels_.add(partial_.data() + static_cast<i64>(row) * c.hidden, c.hidden,
                   x_.data() + static_cast<i64>(row) * c.hidden);
    }
  };
  norm(layer.attention_norm);
  multiply(layer.q, normed_, count, q_.data(), rank);
  multiply(layer.k, normed_, count, k_.data(), rank);
  multiply(layer.v, normed_, count, v_.data(), rank);
  crew_.barrier();
  for (i32 row = rows.begin; row < rows.end; ++row) {
    for (i32 head = 0; head < c.heads; ++head) {
      f32* q = q_.data() + (static_cast<i64>(row) * c.heads + head) * c.head_dim;
      kernels_.rms_norm(q, layer.q_norm.data(), c.eps, c.head_dim, q);
      angles_.apply(row, q, false);
    }
    finish_key(layer, row, row);
    const i32 t = row / c.block;
    const i32 position =
        static_cast<i32>(tasks_[static_cast<size_t>(t)].history.size()) - 1 + row % c.block;
    store(index, pages_[static_cast<size_t>(t * pages_per_task_ + position / kPageTokens)],
          position % kPageTokens, row, rank);
  }
  crew_.barrier();
  attend(index, rank);
  attended_.quantize(kernels_, rows.begin, rows.end);
  crew_.barrier();
  add_residual(layer.output, attended_);
  norm(layer.ffn_norm);
  multiply(layer.gate, normed_, count, gate_.data(), rank);
  multiply(layer.up, normed_, count, up_.data(), rank);
  crew_.barrier();
  for (i32 row = rows.begin; row < rows.end; ++row) {
    kernels_.silu_mul(gate_.data() + static_cast<i64>(row) * c.ffn,
                      up_.data() + static_cast<i64>(row) * c.ffn, c.ffn, hidden_.row(row));
  }
  hidden_.quantize(kernels_, rows.begin, rows.end);
  crew_.barrier();
  add_residual(layer.down, hidden_);
}

// Every block row sees the context and the whole block: no mask, and up to four share a pass.
void DSparkDrafter::attend(i32 index, i32 rank) {
  const DSparkConfig& c = config_;
  const i32 count = static_cast<i32>(tasks_.size()) * c.block;
  const Share rows = share_of(count, rank, crew_.size());
  AttendArgs args{};
  args.growth = 0;
  args.head_dim = args.v_dim = c.head_dim;
  args.v_stride = static_cast<i32>(v_stride_);
  args.half = element_ == 2;
  args.key_page_bytes = key_bytes_ * c.kv_heads;
  args.value_page_bytes = value_bytes_ * c.kv_heads;
  args.scale = 1.0f / std::sqrt(static_cast<f32>(c.head_dim));
  args.scores = scores_[static_cast<size_t>(rank)].data();
  args.scores_stride = scores_stride_;
  args.q_stride = static_cast<i64>(c.heads) * c.head_dim;
  args.out_stride = attended_.stride();
  for (i32 row = rows.begin; row < rows.end; row += args.rows) {
    const i32 t = row / c.block;
    args.rows = std::min({4, rows.end - row, (t + 1) * c.block - row});
    args.length = static_cast<i32>(tasks_[static_cast<size_t>(t)].history.size()) - 1 + c.block;
    args.pages = pages_.data() + static_cast<i64>(t) * pages_per_task_;
    for (i32 head = 0; head < c.heads; ++head) {
      const i32 kv = head / (c.heads / c.kv_heads);
      args.q = q_.data() + (static_cast<i64>(row) * c.heads + head) * c.head_dim;
      args.keys = page(keys_, key_bytes_, index, 0, kv);
      args.values = page(values_, value_bytes_, index, 0, kv);
      args.out = attended_.row(row) + head * c.head_dim;
      kernels_.attend(args);
    }
  }
}

f32 DSparkDrafter::confidence(const f32* state, const f32* embedding) const {
  if (confidence_weight_.empty()) return 1;
  f32 sum = kernels_.dot(state, confidence_weight_.data(), config_.hidden) + confidence_bias_;
  if (config_.markov_rank > 0) {
    sum += kernels_.dot(embedding, confidence_weight_.data() + config_.hidden, config_.markov_rank);
  }
  return 1.0f / (1.0f + std::exp(-sum));
}

// Slot after slot. Rank 0 decides; the others help with the bias.
void DSparkDrafter::chain(i32 rank) {
  const DSparkConfig& c = config_;
  for (i32 t = 0; t < static_cast<i32>(tasks_.size()); ++t) {
    DraftTask& task = tasks_[static_cast<size_t>(t)];
    const i64 start = static_cast<i64>(task.history.size()) - 1;
    if (rank == 0) task.count = 0;
    for (i32 n = 0; n < std::min(task.limit, longest()); ++n) {
      const i64 row = row_of(t, n);
      f32* known = known_logits(row);
      if (c.markov_rank > 0) {
        if (rank == 0) {
          const i32 previous = n == 0 ? task.history.back() : task.tokens[n - 1];
          dequantize(
              markov_in_->type,
              markov_in_->bytes.data() + static_cast<u64>(previous) * markov_in_->row_bytes(),
              {markov_rows_.row(0), static_cast<size_t>(c.markov_rank)});
          markov_rows_.quantize(kernels_, 0, 1);
        }
        crew_.barrier();
        const Share cols = multiply_share(kernels_, markov_out_, markov_rows_.view(), 1,
                                          bias_.data(), head_stride_, rank, crew_.size());
        if (cols.begin < cols.end)
          kernels_.add(bias_.data() + cols.begin, cols.end - cols.begin, known + cols.begin);
        crew_.barrier();
      }
      if (rank == 0) {
        f32* logits = logits_.data() + row * head_stride_;
        for (size_t i = 0; i < ids_.size(); ++i) logits[ids_[i]] = known[i];
        const f32 sure = confidence(normed_.row(static_cast<i32>(row)), markov_rows_.row(0));
        confidences_[static_cast<size_t>(row)] = sure;
        const bool keep = task.count == n && sure >= options_.confidence_min;
        task.tokens[n] = sampler_.sample(logits, *task.sampling, start + n + 1, {}, {});
        if (keep) ++task.count;
      }
    }
  }
}

}  // namespace llm
