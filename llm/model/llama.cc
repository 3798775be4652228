#include "llm/model/llama.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace llm {

using base::Result;
using base::Status;

LlamaModel::LlamaModel(const LlamaConfig& config, Precision precision, Crew* crew)
    : Decoder(precision, crew), config_(config) {}

Result<std::unique_ptr<LlamaModel>> LlamaModel::load(const TensorSource& source,
                                                     const LlamaConfig& config, Precision precision,
                                                     Crew* crew) {
  std::unique_ptr<LlamaModel> model(new LlamaModel(config, precision, crew));
  model->divide_work(source);
  TRY(model->load_weights(source));
  return model;
}

// Bounds lie between blocks of 32 columns where the weights have them.
void LlamaModel::divide_work(const TensorSource& source) {
  const LlamaConfig& c = config_;
  const auto anywhere = [&](const char* name) {
    const TensorView* found = source.find(name);
    return found != nullptr && PackedMatrix::splits_anywhere(*found, precision_);
  };
  const i32 unit = anywhere("blk.0.attn_output.weight") ? 1 : whole_blocks(c.head_dim);
  const Leaves by_head = divide(c.heads, unit);
  head_columns_ = by_head;
  for (i32& bound : head_columns_.bound) bound *= c.head_dim;
  ffn_columns_ = divide(c.ffn, 32);
  heads_ = by_head.of_rank(crew_.rank(), crew_.ranks());
  ffn_ = ffn_columns_.of_rank(crew_.rank(), crew_.ranks());
  const i32 group = c.heads / c.kv_heads;
  kv_heads_ = {heads_.begin / group, (heads_.end + group - 1) / group};
  if (heads() == 0) kv_heads_ = {};
}

Status LlamaModel::load_weights(const TensorSource& source) {
  const LlamaConfig& c = config_;
  WeightReader reader(source, precision_);
  TRY(load_ends(&reader, c.vocab, c.hidden));
  RopeScaling scaling = c.rope_scaling;
  scaling.divisors = TRY(reader.optional_vector("rope_freqs.weight", c.rope_dim / 2));
  for (f32 divisor : scaling.divisors) {
    if (divisor > 0) continue;
    return base::Error(base::ErrorCode::kCorruption,
                       "rope_freqs.weight has a value that is not above 0");
  }
  set_shape(c.eps, rope_frequencies(c.rope_dim, c.rope_base, scaling), scaling.magnitude);
  const i32 size = c.head_dim;
  const Share q_rows{heads_.begin * size, heads_.end * size};
  const Share kv_rows{kv_heads_.begin * size, kv_heads_.end * size};
  for (i32 i = 0; i < c.layers; ++i) {
    const std::string at = "blk." + std::to_string(i) + ".";
    const auto part = [&](const char* name, i32 rows, Share mine, i32 cols, Share my_cols) {
      return reader.part(at + name + ".weight", rows, mine, cols, my_cols);
    };
    Layer layer;
    layer.attention_norm = TRY(reader.vector(at + "attn_norm.weight", c.hidden));
    layer.q = TRY(part("attn_q", c.heads * size, q_rows, c.hidden, {0, c.hidden}));
    layer.k = TRY(part("attn_k", c.kv_heads * size, kv_rows, c.hidden, {0, c.hidden}));
    layer.v = TRY(part("attn_v", c.kv_heads * size, kv_rows, c.hidden, {0, c.hidden}));
    layer.q_bias = TRY(reader.optional_vector(at + "attn_q.bias", c.heads * size));
    layer.k_bias = TRY(reader.optional_vector(at + "attn_k.bias", c.kv_heads * size));
    layer.v_bias = TRY(reader.optional_vector(at + "attn_v.bias", c.kv_heads * size));
    layer.q_norm = TRY(reader.optional_vector(at + "attn_q_norm.weight", size));
    layer.k_norm = TRY(reader.optional_vector(at + "attn_k_norm.weight", size));
    layer.output = TRY(part("attn_output", c.hidden, {0, c.hidden}, c.heads * size, q_rows));
    layer.ffn_norm = TRY(reader.vector(at + "ffn_norm.weight", c.hidden));
    layer.gate = TRY(part("ffn_gate", c.ffn, ffn_, c.hidden, {0, c.hidden}));
    layer.up = TRY(part("ffn_up", c.ffn, ffn_, c.hidden, {0, c.hidden}));
    layer.down = TRY(part("ffn_down", c.hidden, {0, c.hidden}, c.ffn, ffn_));
    layers_.push_back(std::move(layer));
  }
  info_.architecture = "llama";
  info_.layers = c.layers;
  info_.context = c.context;
  info_.parameters += reader.parameters();
  info_.weight_bytes = info_.step_weight_bytes = reader.bytes();
  const u64 element = precision_ == Precision::kExact ? 4 : 2;
  info_.cache_bytes_per_token =
      2 * static_cast<u64>(c.layers) * static_cast<u64>(c.kv_heads * size) * element;
  return {};
}

void LlamaModel::reserve_layers() {
  const LlamaConfig& c = config_;
  const i64 element = precision_ == Precision::kExact ? 4 : 2;
  v_stride_ = (c.head_dim + 7) / 8 * 8;
  key_head_bytes_ = kPageTokens * c.head_dim * element;
  value_head_bytes_ = kPageTokens * v_stride_ * element;
  const i64 heads_cached = static_cast<i64>(c.layers) * capacity_.pages * kv_heads();
  keys_ = AlignedBytes(static_cast<u64>(heads_cached * key_head_bytes_));
  values_ = AlignedBytes(static_cast<u64>(heads_cached * value_head_bytes_));

  const auto rows = static_cast<u64>(capacity_.rows);
  q_ = AlignedArray<f32>(rows * static_cast<u64>(heads() * c.head_dim));
  k_ = AlignedArray<f32>(rows * static_cast<u64>(kv_heads() * c.head_dim));
  v_ = AlignedArray<f32>(rows * static_cast<u64>(kv_heads() * c.head_dim));
  gate_ = AlignedArray<f32>(rows * static_cast<u64>(ffn()));
  up_ = AlignedArray<f32>(rows * static_cast<u64>(ffn()));
  attended_ = ActRows(capacity_.rows, heads() * c.head_dim);
  hidden_ = ActRows(capacity_.rows, ffn());
  scores_stride_ = (capacity_.context + 31) / 16 * 16;
  for (i32 thread = 0; thread < crew_.size(); ++thread) {
    scores_.emplace_back(static_cast<u64>(4 * scores_stride_));
    halves_.emplace_back(static_cast<u64>(v_stride_));
  }
}

u8* LlamaModel::key_page(i32 layer, i32 page, i32 head) const {
  const i64 at = (static_cast<i64>(layer) * capacity_.pages + page) * kv_heads() + head;
  return keys_.data() + at * key_head_bytes_;
}

u8* LlamaModel::value_page(i32 layer, i32 page, i32 head) const {
  const i64 at = (static_cast<i64>(layer) * capacity_.pages + page) * kv_heads() + head;
  return values_.data() + at * value_head_bytes_;
}

void LlamaModel::run_layer(i32 index, i32 thread) {
  const Layer& layer = layers_[static_cast<size_t>(index)];
  attention(layer, index, thread);
  add_product(layer.output, head_columns_, attended_, thread);
  const ActRows& x = normed(layer.ffn_norm, layer.gate.quantised(), thread);
  gate_and_up(layer, x, thread);
  crew_.barrier();
  add_product(layer.down, ffn_columns_, hidden_, thread);
}

void LlamaModel::attention(const Layer& layer, i32 index, i32 thread) {
  const ActRows& x = normed(layer.attention_norm, layer.q.quantised(), thread);
  if (tuning_.fusion && config_.head_dim % 16 == 0) {
    project_heads(layer, index, x, thread);
  } else {
    project_apart(layer, index, x, thread);
  }
  crew_.barrier();
  attend_tiles(index, thread);
  crew_.barrier();
  if (layer.output.quantised() && (!tuning_.fusion || config_.head_dim % 32 != 0)) {
    const Share rows = rows_of(thread);
    attended_.quantize(kernels_, rows.begin, rows.end);
    crew_.barrier();
  }
}

// Whole heads to a thread: it can rotate and store what it has just computed.
void LlamaModel::project_heads(const Layer& layer, i32 index, const ActRows& x, i32 thread) {
  const LlamaConfig& c = config_;
  const i32 groups = c.head_dim / 16;
  const i32 count = step_->count;
  const Share units = share_of(heads() + 2 * kv_heads(), thread, crew_.size());
  for (i32 unit = units.begin; unit < units.end; ++unit) {
    const bool is_q = unit < heads();
    const bool is_k = !is_q && unit < heads() + kv_heads();
    const PackedMatrix& m = is_q ? layer.q : is_k ? layer.k : layer.v;
    f32* out = is_q ? q_.data() : is_k ? k_.data() : v_.data();
    const i32 head = is_q ? unit : is_k ? unit - heads() : unit - heads() - kv_heads();
    kernels_.gemm(m.view(), head * groups, (head + 1) * groups, x.view(), count, out, m.rows());
    for (i32 row = 0; row < count; ++row) {
      if (is_q) {
        finish_q(layer, head, row);
      } else if (is_k) {
        finish_k(layer, index, head, row, thread);
      } else {
        finish_v(layer, index, head, row, thread);
      }
    }
  }
}

void LlamaModel::project_apart(const Layer& layer, i32 index, const ActRows& x, i32 thread) {
  const i32 count = step_->count;
  const i32 threads = crew_.size();
  multiply_share(kernels_, layer.q, x.view(), count, q_.data(), layer.q.rows(), thread, threads);
  barrier_unless_fused();
  multiply_share(kernels_, layer.k, x.view(), count, k_.data(), layer.k.rows(), thread, threads);
  barrier_unless_fused();
  multiply_share(kernels_, layer.v, x.view(), count, v_.data(), layer.v.rows(), thread, threads);
  crew_.barrier();
  const Share rows = share_of(count, thread, threads);
  for (i32 row = rows.begin; row < rows.end; ++row) {
    for (i32 head = 0; head < heads(); ++head) finish_q(layer, head, row);
    for (i32 head = 0; head < kv_heads(); ++head) {
      finish_k(layer, index, head, row, thread);
      finish_v(layer, index, head, row, thread);
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
  f32* q = q_.data() + (static_cast<i64>(row) * heads() + head) * size;
  add_bias(layer.q_bias, heads_.begin + head, size, q);
  if (!layer.q_norm.empty()) kernels_.rms_norm(q, layer.q_norm.data(), config_.eps, size, q);
  angles_.apply(row, q, config_.rope_interleaved);
}

void LlamaModel::finish_k(const Layer& layer, i32 index, i32 head, i32 row, i32 thread) {
  const i32 size = config_.head_dim;
  f32* k = k_.data() + (static_cast<i64>(row) * kv_heads() + head) * size;
  add_bias(layer.k_bias, kv_heads_.begin + head, size, k);
  if (!layer.k_norm.empty()) kernels_.rms_norm(k, layer.k_norm.data(), config_.eps, size, k);
  angles_.apply(row, k, config_.rope_interleaved);
  u8* page = key_page(index, page_of(row), head);
  const i32 lane = lane_of(row);
  if (precision_ == Precision::kExact) {
    for (i32 i = 0; i < size; ++i) base::store_le<f32>(page + (i * kPageTokens + lane) * 4, k[i]);
    return;
  }
  u16* halves = halves_[static_cast<size_t>(thread)].data();
  kernels_.to_half(k, size, halves);
  for (i32 i = 0; i < size; ++i)
    base::store_le<u16>(page + (i * kPageTokens + lane) * 2, halves[i]);
}

void LlamaModel::finish_v(const Layer& layer, i32 index, i32 head, i32 row, i32 thread) {
  const i32 size = config_.head_dim;
  f32* v = v_.data() + (static_cast<i64>(row) * kv_heads() + head) * size;
  add_bias(layer.v_bias, kv_heads_.begin + head, size, v);
  u8* page = value_page(index, page_of(row), head);
  const i64 at = lane_of(row) * v_stride_;
  if (precision_ == Precision::kExact) {
    std::memcpy(page + at * 4, v, static_cast<size_t>(size) * 4);
    return;
  }
  u16* halves = halves_[static_cast<size_t>(thread)].data();
  kernels_.to_half(v, size, halves);
  std::memcpy(page + at * 2, halves, static_cast<size_t>(size) * 2);
}

// Up to four neighbouring positions of one slot share each key and value they read.
void LlamaModel::attend_tiles(i32 index, i32 thread) {
  const LlamaConfig& c = config_;
  const i32 threads = crew_.size();
  const i32 group = c.heads / c.kv_heads;
  const bool quantise = layers_[static_cast<size_t>(index)].output.quantised() && tuning_.fusion &&
                        c.head_dim % 32 == 0;
  AttendArgs args{};
  args.head_dim = args.v_dim = c.head_dim;
  args.v_stride = static_cast<i32>(v_stride_);
  args.half = precision_ != Precision::kExact;
  args.q_stride = static_cast<i64>(heads()) * c.head_dim;
  args.key_page_bytes = key_head_bytes_ * kv_heads();
  args.value_page_bytes = value_head_bytes_ * kv_heads();
  args.scale = 1.0f / std::sqrt(static_cast<f32>(c.head_dim));
  args.scores = scores_[static_cast<size_t>(thread)].data();
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
    args.pages = pages_of(row);
    for (i32 head = 0; head < heads(); ++head, ++item) {
      if (item % threads != thread) continue;
      args.q = q_.data() + (static_cast<i64>(row) * heads() + head) * c.head_dim;
      args.keys = key_page(index, 0, (heads_.begin + head) / group - kv_heads_.begin);
      args.values = value_page(index, 0, (heads_.begin + head) / group - kv_heads_.begin);
      args.out = attended_.row(row) + head * c.head_dim;
      kernels_.attend(args);
      for (i32 r = 0; quantise && r < rows; ++r) {
        attended_.quantize_part(kernels_, row + r, head * c.head_dim, (head + 1) * c.head_dim);
      }
    }
    row += rows;
  }
}

// Units of 32 outputs, so that a thread can quantise what it has just computed.
void LlamaModel::gate_and_up(const Layer& layer, const ActRows& x, i32 thread) {
  const i32 ffn = this->ffn();
  const Share units = share_of((ffn + 31) / 32, thread, crew_.size());
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

}  // namespace llm
