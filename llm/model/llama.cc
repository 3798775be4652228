#include "llm/model/llama.h"

#include "llm/formats/quant.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace llm {

using base::Result;
using base::Status;

LlamaModel::LlamaModel(const LlamaConfig& config, Precision precision, Crew* crew)
    : config_(config), precision_(precision), crew_(*crew), kernels_(best_kernels()) {}

Result<std::unique_ptr<LlamaModel>> LlamaModel::load(const TensorSource& source,
                                                     const LlamaConfig& config, Precision precision,
                                                     Crew* crew) {
  std::unique_ptr<LlamaModel> model(new LlamaModel(config, precision, crew));
  TRY(model->load_weights(source));
  return model;
}

Status LlamaModel::load_weights(const TensorSource& source) {
  const LlamaConfig& c = config_;
  WeightReader reader(source, precision_);
  embedding_ = TRY(
      reader.tensor("token_embd.weight", static_cast<u64>(c.vocab), static_cast<u64>(c.hidden)));
  const i32 q_rows = c.heads * c.head_dim;
  const i32 kv_rows = c.kv_heads * c.head_dim;
  for (i32 i = 0; i < c.layers; ++i) {
    const std::string at = "blk." + std::to_string(i) + ".";
    Layer layer;
    layer.attention_norm = TRY(reader.vector(at + "attn_norm.weight", c.hidden));
    layer.q = TRY(reader.matrix(at + "attn_q.weight", q_rows, c.hidden));
    layer.k = TRY(reader.matrix(at + "attn_k.weight", kv_rows, c.hidden));
    layer.v = TRY(reader.matrix(at + "attn_v.weight", kv_rows, c.hidden));
    layer.q_bias = TRY(reader.optional_vector(at + "attn_q.bias", q_rows));
    layer.k_bias = TRY(reader.optional_vector(at + "attn_k.bias", kv_rows));
    layer.v_bias = TRY(reader.optional_vector(at + "attn_v.bias", kv_rows));
    layer.q_norm = TRY(reader.optional_vector(at + "attn_q_norm.weight", c.head_dim));
    layer.k_norm = TRY(reader.optional_vector(at + "attn_k_norm.weight", c.head_dim));
    layer.output = TRY(reader.matrix(at + "attn_output.weight", c.hidden, q_rows));
    layer.ffn_norm = TRY(reader.vector(at + "ffn_norm.weight", c.hidden));
    layer.gate = TRY(reader.matrix(at + "ffn_gate.weight", c.ffn, c.hidden));
    layer.up = TRY(reader.matrix(at + "ffn_up.weight", c.ffn, c.hidden));
    layer.down = TRY(reader.matrix(at + "ffn_down.weight", c.hidden, c.ffn));
    layers_.push_back(std::move(layer));
  }
  final_norm_ = TRY(reader.vector("output_norm.weight", c.hidden));
  const bool tied = !reader.has("output.weight");
  head_ = TRY(reader.matrix(tied ? "token_embd.weight" : "output.weight", c.vocab, c.hidden));
  info_.architecture = "llama";
  info_.vocab = c.vocab;
  info_.hidden = c.hidden;
  info_.layers = c.layers;
  info_.context = c.context;
  info_.parameters = reader.parameters() + (tied ? 0 : embedding_->values());
  info_.weight_bytes = info_.step_weight_bytes = reader.bytes();
  const u64 element = precision_ == Precision::kExact ? 4 : 2;
  info_.cache_bytes_per_token =
      2 * static_cast<u64>(c.layers) * static_cast<u64>(kv_rows) * element;
  return {};
}

void LlamaModel::reserve(const Capacity& capacity) {
  const LlamaConfig& c = config_;
  capacity_ = capacity;
  const i64 element = precision_ == Precision::kExact ? 4 : 2;
  v_stride_ = (c.head_dim + 7) / 8 * 8;
  key_head_bytes_ = kPageTokens * c.head_dim * element;
  value_head_bytes_ = kPageTokens * v_stride_ * element;
  const i64 heads_cached = static_cast<i64>(c.layers) * capacity.pages * c.kv_heads;
  keys_ = AlignedBytes(static_cast<u64>(heads_cached * key_head_bytes_));
  values_ = AlignedBytes(static_cast<u64>(heads_cached * value_head_bytes_));

  const auto rows = static_cast<u64>(capacity.rows);
  const auto q_rows = static_cast<u64>(c.heads * c.head_dim);
  const auto kv_rows = static_cast<u64>(c.kv_heads * c.head_dim);
  x_ = AlignedArray<f32>(rows * static_cast<u64>(c.hidden));
  q_ = AlignedArray<f32>(rows * q_rows);
  k_ = AlignedArray<f32>(rows * kv_rows);
  v_ = AlignedArray<f32>(rows * kv_rows);
  gate_ = AlignedArray<f32>(rows * static_cast<u64>(c.ffn));
  up_ = AlignedArray<f32>(rows * static_cast<u64>(c.ffn));
  partial_ = AlignedArray<f32>(rows * static_cast<u64>(c.hidden));
  logit_stride_ = (c.vocab + 15) / 16 * 16;
  logits_ = AlignedArray<f32>(static_cast<u64>(capacity.logit_rows * logit_stride_));
  normed_ = ActRows(capacity.rows, c.hidden);
  attended_ = ActRows(capacity.rows, c.heads * c.head_dim);
  hidden_ = ActRows(capacity.rows, c.ffn);
  angles_ = RopeAngles(capacity.rows, c.rope_dim, c.rope_base);
  const auto ranks = static_cast<size_t>(crew_.size());
  scores_stride_ = (capacity.context + 31) / 16 * 16;
  for (size_t rank = 0; rank < ranks; ++rank) {
    own_normed_.emplace_back(kNarrow, c.hidden);
    scores_.emplace_back(static_cast<u64>(4 * scores_stride_));
    halves_.emplace_back(static_cast<u64>(v_stride_));
  }
  best_.resize(static_cast<size_t>(capacity.logit_rows) * ranks);
  logit_rows_.resize(static_cast<size_t>(capacity.logit_rows));
  if (!capture_layers_.empty()) capture_inputs(capture_layers_);
}

void LlamaModel::capture_inputs(const std::vector<i32>& layers) {
  capture_layers_ = layers;
  captured_ = AlignedArray<f32>(static_cast<u64>(capacity_.rows) * layers.size() *
                                static_cast<u64>(config_.hidden));
}

const f32* LlamaModel::captured(i32 row) const {
  return captured_.data() + row * static_cast<i64>(capture_layers_.size()) * config_.hidden;
}

void LlamaModel::embed(i32 token, f32* out) const {
  dequantize(embedding_->type,
             embedding_->bytes.data() + static_cast<u64>(token) * embedding_->row_bytes(),
             {out, static_cast<size_t>(config_.hidden)});
}

i32 LlamaModel::page_of(i32 row) const {
  const BatchRow& r = step_->rows[row];
  return step_->page_table[r.slot * step_->pages_per_slot + r.position / kPageTokens];
}

u8* LlamaModel::key_page(i32 layer, i32 page, i32 head) const {
  const i64 at = (static_cast<i64>(layer) * capacity_.pages + page) * config_.kv_heads + head;
  return keys_.data() + at * key_head_bytes_;
}

u8* LlamaModel::value_page(i32 layer, i32 page, i32 head) const {
  const i64 at = (static_cast<i64>(layer) * capacity_.pages + page) * config_.kv_heads + head;
  return values_.data() + at * value_head_bytes_;
}

void LlamaModel::forward(const Step& step) {
  CHECK(step.count > 0 && step.count <= capacity_.rows);
  step_ = &step;
  logit_count_ = 0;
  for (i32 i = 0; i < step.count; ++i) {
    if (!step.rows[i].logits) continue;
    CHECK(logit_count_ < capacity_.logit_rows);
    logit_rows_[static_cast<size_t>(logit_count_++)] = i;
  }
  auto body = [this](i32 rank) { run_rank(rank); };
  crew_.run(body);
}

i32 LlamaModel::argmax(i32 j) const {
  const auto ranks = static_cast<size_t>(crew_.size());
  const Best* from = best_.data() + static_cast<size_t>(j) * ranks;
  Best top = from[0];
  for (size_t rank = 1; rank < ranks; ++rank) {
    if (from[rank].value > top.value) top = from[rank];
  }
  return top.index;
}

void LlamaModel::run_rank(i32 rank) {
  embed_rows(rank);
  crew_.barrier();
  for (i32 i = 0; i < config_.layers; ++i) {
    const auto captured = std::find(capture_layers_.begin(), capture_layers_.end(), i);
    if (captured != capture_layers_.end()) {
      const Share rows = share_of(step_->count, rank, crew_.size());
      const i64 place = captured - capture_layers_.begin();
      for (i32 row = rows.begin; row < rows.end; ++row) {
        std::memcpy(const_cast<f32*>(this->captured(row)) + place * config_.hidden,
                    x_.data() + row * config_.hidden,
                    sizeof(f32) * static_cast<size_t>(config_.hidden));
      }
    }
    const Layer& layer = layers_[static_cast<size_t>(i)];
    attention(layer, i, rank);
    feed_forward(layer, rank);
  }
  if (logit_count_ > 0) head_rows(rank);
}

void LlamaModel::embed_rows(i32 rank) {
  const Share rows = share_of(step_->count, rank, crew_.size());
  for (i32 row = rows.begin; row < rows.end; ++row) {
    embed(step_->rows[row].token, x_.data() + static_cast<i64>(row) * config_.hidden);
    angles_.set(row, step_->rows[row].position);
  }
}

const ActRows& LlamaModel::normed(const std::vector<f32>& weight, const PackedMatrix& matrix,
                                  i32 rank) {
  const bool alone = narrow();
  const ActRows& out = alone ? own_normed_[static_cast<size_t>(rank)] : normed_;
  const Share rows = alone ? Share{0, step_->count} : share_of(step_->count, rank, crew_.size());
  for (i32 row = rows.begin; row < rows.end; ++row) {
    kernels_.rms_norm(x_.data() + static_cast<i64>(row) * config_.hidden, weight.data(),
                      config_.eps, config_.hidden, out.row(row));
  }
  barrier_unless_fused();
  if (matrix.quantised()) out.quantize(kernels_, rows.begin, rows.end);
  if (!alone) crew_.barrier();
  return out;
}

void LlamaModel::attention(const Layer& layer, i32 index, i32 rank) {
  const ActRows& x = normed(layer.attention_norm, layer.q, rank);
  if (tuning_.fusion && config_.head_dim % 16 == 0) {
    project_heads(layer, index, x, rank);
  } else {
    project_apart(layer, index, x, rank);
  }
  crew_.barrier();
  attend_tiles(index, rank);
  crew_.barrier();
  if (layer.output.quantised() && (!tuning_.fusion || config_.head_dim % 32 != 0)) {
    const Share rows = share_of(step_->count, rank, crew_.size());
    attended_.quantize(kernels_, rows.begin, rows.end);
    crew_.barrier();
  }
  project_residual(layer.output, attended_, rank);
}

// Whole heads to a rank: it can rotate and store what it has just computed.
void LlamaModel::project_heads(const Layer& layer, i32 index, const ActRows& x, i32 rank) {
  const LlamaConfig& c = config_;
  const i32 groups = c.head_dim / 16;
  const i32 count = step_->count;
  const Share units = share_of(c.heads + 2 * c.kv_heads, rank, crew_.size());
  for (i32 unit = units.begin; unit < units.end; ++unit) {
    const bool is_q = unit < c.heads;
    const bool is_k = !is_q && unit < c.heads + c.kv_heads;
    const PackedMatrix& m = is_q ? layer.q : is_k ? layer.k : layer.v;
    f32* out = is_q ? q_.data() : is_k ? k_.data() : v_.data();
    const i32 head = is_q ? unit : is_k ? unit - c.heads : unit - c.heads - c.kv_heads;
    kernels_.gemm(m.view(), head * groups, (head + 1) * groups, x.view(), count, out, m.rows());
    for (i32 row = 0; row < count; ++row) {
      if (is_q) {
        finish_q(layer, head, row);
      } else if (is_k) {
        finish_k(layer, index, head, row, rank);
      } else {
        finish_v(layer, index, head, row, rank);
      }
    }
  }
}

void LlamaModel::project_apart(const Layer& layer, i32 index, const ActRows& x, i32 rank) {
  const LlamaConfig& c = config_;
  const i32 count = step_->count;
  const i32 ranks = crew_.size();
  multiply_share(kernels_, layer.q, x.view(), count, q_.data(), layer.q.rows(), rank, ranks);
  barrier_unless_fused();
  multiply_share(kernels_, layer.k, x.view(), count, k_.data(), layer.k.rows(), rank, ranks);
  barrier_unless_fused();
  multiply_share(kernels_, layer.v, x.view(), count, v_.data(), layer.v.rows(), rank, ranks);
  crew_.barrier();
  const Share rows = share_of(count, rank, ranks);
  for (i32 row = rows.begin; row < rows.end; ++row) {
    for (i32 head = 0; head < c.heads; ++head) finish_q(layer, head, row);
    for (i32 head = 0; head < c.kv_heads; ++head) {
      finish_k(layer, index, head, row, rank);
      finish_v(layer, index, head, row, rank);
    }
  }
}

namespace {
void add_bias(const std::vector<f32>& bias, i32 head, i32 size, f32* x) {
  if (bias.empty()) return;
  for (i32 i = 0; i < size; ++i) x[i] += bias[static_cast<size_t>(head * size + i)];
}
}  // namespace

void LlamaModel::finish_q(const Layer& layer, i32 head, i32 row) {
  const i32 size = config_.head_dim;
  f32* q = q_.data() + (static_cast<i64>(row) * config_.heads + head) * size;
  add_bias(layer.q_bias, head, size, q);
  if (!layer.q_norm.empty()) kernels_.rms_norm(q, layer.q_norm.data(), config_.eps, size, q);
  angles_.apply(row, q, config_.rope_interleaved);
}

void LlamaModel::finish_k(const Layer& layer, i32 index, i32 head, i32 row, i32 rank) {
  const i32 size = config_.head_dim;
  f32* k = k_.data() + (static_cast<i64>(row) * config_.kv_heads + head) * size;
  add_bias(layer.k_bias, head, size, k);
  if (!layer.k_norm.empty()) kernels_.rms_norm(k, layer.k_norm.data(), config_.eps, size, k);
  angles_.apply(row, k, config_.rope_interleaved);
  u8* page = key_page(index, page_of(row), head);
  const i32 lane = step_->rows[row].position % kPageTokens;
  if (precision_ == Precision::kExact) {
    for (i32 i = 0; i < size; ++i) base::store_le<f32>(page + (i * kPageTokens + lane) * 4, k[i]);
    return;
  }
  u16* halves = halves_[static_cast<size_t>(rank)].data();
  kernels_.to_half(k, size, halves);
  for (i32 i = 0; i < size; ++i)
    base::store_le<u16>(page + (i * kPageTokens + lane) * 2, halves[i]);
}

void LlamaModel::finish_v(const Layer& layer, i32 index, i32 head, i32 row, i32 rank) {
  const i32 size = config_.head_dim;
  f32* v = v_.data() + (static_cast<i64>(row) * config_.kv_heads + head) * size;
  add_bias(layer.v_bias, head, size, v);
  u8* page = value_page(index, page_of(row), head);
  const i64 at = step_->rows[row].position % kPageTokens * v_stride_;
  if (precision_ == Precision::kExact) {
    std::memcpy(page + at * 4, v, static_cast<size_t>(size) * 4);
    return;
  }
  u16* halves = halves_[static_cast<size_t>(rank)].data();
  kernels_.to_half(v, size, halves);
  std::memcpy(page + at * 2, halves, static_cast<size_t>(size) * 2);
}

// Up to four neighbouring positions of one slot share each key and value they read.
void LlamaModel::attend_tiles(i32 index, i32 rank) {
  const LlamaConfig& c = config_;
  const i32 ranks = crew_.size();
  const i32 group = c.heads / c.kv_heads;
  const bool quantise = layers_[static_cast<size_t>(index)].output.quantised() && tuning_.fusion &&
                        c.head_dim % 32 == 0;
  AttendArgs args{};
  args.head_dim = args.v_dim = c.head_dim;
  args.v_stride = static_cast<i32>(v_stride_);
  args.half = precision_ != Precision::kExact;
  args.q_stride = static_cast<i64>(c.heads) * c.head_dim;
  args.key_page_bytes = key_head_bytes_ * c.kv_heads;
  args.value_page_bytes = value_head_bytes_ * c.kv_heads;
  args.scale = 1.0f / std::sqrt(static_cast<f32>(c.head_dim));
  args.scores = scores_[static_cast<size_t>(rank)].data();
  args.scores_stride = scores_stride_;
  args.out_stride = attended_.stride();
  i32 item = 0;
  for (i32 row = 0; row < step_->count;) {
    const BatchRow& first = step_->rows[row];
    i32 rows = 1;
    while (rows < 4 && row + rows < step_->count && step_->rows[row + rows].slot == first.slot &&
           step_->rows[row + rows].position == first.position + rows) {
      ++rows;
    }
    args.rows = rows;
    args.length = first.position + 1;
    args.pages = step_->page_table + static_cast<i64>(first.slot) * step_->pages_per_slot;
    for (i32 head = 0; head < c.heads; ++head, ++item) {
      if (item % ranks != rank) continue;
      args.q = q_.data() + (static_cast<i64>(row) * c.heads + head) * c.head_dim;
      args.keys = key_page(index, 0, head / group);
      args.values = value_page(index, 0, head / group);
      args.out = attended_.row(row) + head * c.head_dim;
      kernels_.attend(args);
      for (i32 r = 0; quantise && r < rows; ++r) {
        attended_.quantize_part(kernels_, row + r, head * c.head_dim, (head + 1) * c.head_dim);
      }
    }
    row += rows;
  }
}

void LlamaModel::project_residual(const PackedMatrix& m, const ActRows& x, i32 rank) {
  const i64 hidden = config_.hidden;
  const Share cols = multiply_share(kernels_, m, x.view(), step_->count, partial_.data(), hidden,
                                    rank, crew_.size());
  barrier_unless_fused();
  for (i32 row = 0; row < step_->count && cols.begin < cols.end; ++row) {
    kernels_.add(partial_.data() + row * hidden + cols.begin, cols.end - cols.begin,
                 x_.data() + row * hidden + cols.begin);
  }
  crew_.barrier();
}

void LlamaModel::feed_forward(const Layer& layer, i32 rank) {
  const ActRows& x = normed(layer.ffn_norm, layer.gate, rank);
  gate_and_up(layer, x, rank);
  crew_.barrier();
  project_residual(layer.down, hidden_, rank);
}

// Units of 32 outputs, so that a rank can quantise what it has just computed.
void LlamaModel::gate_and_up(const Layer& layer, const ActRows& x, i32 rank) {
  const i32 ffn = config_.ffn;
  const Share units = share_of((ffn + 31) / 32, rank, crew_.size());
  if (units.begin == units.end) {
    for (int i = 0; i < 3; ++i) barrier_unless_fused();
    return;
  }
  const i32 first_group = units.begin * 2;
  const i32 last_group = std::min(units.end * 2, layer.gate.groups());
  const i32 from = units.begin * 32;
  const i32 to = std::min(units.end * 32, ffn);
  kernels_.gemm(layer.gate.view(), first_group, last_group, x.view(), step_->count, gate_.data(),
                ffn);
  barrier_unless_fused();
  kernels_.gemm(layer.up.view(), first_group, last_group, x.view(), step_->count, up_.data(), ffn);
  barrier_unless_fused();
  for (i32 row = 0; row < step_->count; ++row) {
    const i64 at = static_cast<i64>(row) * ffn + from;
    kernels_.silu_mul(gate_.data() + at, up_.data() + at, to - from, hidden_.row(row) + from);
  }
  barrier_unless_fused();
  for (i32 row = 0; layer.down.quantised() && row < step_->count; ++row) {
    hidden_.quantize_part(kernels_, row, from, units.end * 32);
  }
}

void LlamaModel::head_rows(i32 rank) {
  const i32 ranks = crew_.size();
  const bool alone = tuning_.fusion && logit_count_ <= kNarrow;
  const ActRows& x = alone ? own_normed_[static_cast<size_t>(rank)] : normed_;
  const Share mine = alone ? Share{0, logit_count_} : share_of(logit_count_, rank, ranks);
  for (i32 j = mine.begin; j < mine.end; ++j) {
    const i64 row = logit_rows_[static_cast<size_t>(j)];
    kernels_.rms_norm(x_.data() + row * config_.hidden, final_norm_.data(), config_.eps,
                      config_.hidden, x.row(j));
  }
  if (head_.quantised()) x.quantize(kernels_, mine.begin, mine.end);
  if (!alone) crew_.barrier();
  const Share cols = multiply_share(kernels_, head_, x.view(), logit_count_, logits_.data(),
                                    logit_stride_, rank, ranks);
  for (i32 j = 0; j < logit_count_; ++j) {
    best_[static_cast<size_t>(j * ranks + rank)] =
        best_of(logits_.data() + j * logit_stride_, cols.begin, cols.end);
  }
}

}  // namespace llm
