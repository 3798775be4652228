#include "llm/model/glm.h"

#include <algorithm>

namespace llm {

using base::Result;
using base::Status;

namespace {

u64 size(i64 a, i64 b) {
  return static_cast<u64>(a) * static_cast<u64>(b);
}

}  // namespace

GlmModel::GlmModel(const GlmConfig& config, Precision precision, Crew* crew)
    : Decoder(precision, crew), config_(config), element_(precision == Precision::kExact ? 4 : 2) {
  set_shape(config.eps, rope_frequencies(config.rope, config.rope_base));
}

Result<std::unique_ptr<GlmModel>> GlmModel::load(const TensorSource& source,
                                                 const GlmConfig& config, Precision precision,
                                                 Crew* crew) {
  std::unique_ptr<GlmModel> model(new GlmModel(config, precision, crew));
  model->divide_work(source);
  TRY(model->load_weights(source));
  return model;
}

// Bounds lie between blocks of 32 columns where the weights have them.
void GlmModel::divide_work(const TensorSource& source) {
  const GlmConfig& c = config_;
  const TensorView* output = source.find("blk.0.attn_output.weight");
  const bool anywhere = output != nullptr && PackedMatrix::splits_anywhere(*output, precision_);
  const Leaves by_head = divide(c.heads, anywhere ? 1 : whole_blocks(c.value));
  value_columns_ = by_head;
  for (i32& bound : value_columns_.bound) bound *= c.value;
  ffn_columns_ = divide(c.ffn, 32);
  shared_columns_ = divide(c.expert_ffn * c.shared_experts, 32);
  expert_leaves_ = divide(c.experts, 1);
  const auto mine = [&](const Leaves& leaves) {
    return leaves.of_rank(crew_.rank(), crew_.ranks());
  };
  heads_ = mine(by_head);
  ffn_ = mine(ffn_columns_);
  shared_ = mine(shared_columns_);
  experts_ = mine(expert_leaves_);
}

Result<GlmModel::Ffn> GlmModel::read_ffn(WeightReader* reader, const std::string& at,
                                         const std::string& suffix, i32 width, Share mine) const {
  const i32 hidden = config_.hidden;
  Ffn out;
  out.gate = TRY(reader->part(at + "ffn_gate" + suffix, width, mine, hidden, {0, hidden}));
  out.up = TRY(reader->part(at + "ffn_up" + suffix, width, mine, hidden, {0, hidden}));
  out.down = TRY(reader->part(at + "ffn_down" + suffix, hidden, {0, hidden}, width, mine));
  return out;
}

Result<GlmModel::Ffn> GlmModel::read_expert(WeightReader* reader, const std::string& at,
                                            i32 expert) const {
  const GlmConfig& c = config_;
  const auto slice = [&](const char* name, i32 rows, i32 cols) {
    return reader->slice(at + name + "_exps.weight", expert, c.experts, rows, cols);
  };
  Ffn out;
  out.gate = TRY(slice("ffn_gate", c.expert_ffn, c.hidden));
  out.up = TRY(slice("ffn_up", c.expert_ffn, c.hidden));
  out.down = TRY(slice("ffn_down", c.hidden, c.expert_ffn));
  return out;
}

Status GlmModel::read_attention(WeightReader* reader, const std::string& at, Layer* layer) const {
  const GlmConfig& c = config_;
  layer->attention_norm = TRY(reader->vector(at + "attn_norm.weight", c.hidden));
  layer->q_a = TRY(reader->matrix(at + "attn_q_a.weight", c.q_rank, c.hidden));
  layer->q_norm = TRY(reader->vector(at + "attn_q_a_norm.weight", c.q_rank));
  layer->kv_a = TRY(reader->matrix(at + "attn_kv_a_mqa.weight", c.cached(), c.hidden));
  layer->latent_norm = TRY(reader->vector(at + "attn_kv_a_norm.weight", c.latent));
  for (i32 head = heads_.begin; head < heads_.end; ++head) {
    layer->query.push_back(
        TRY(reader->slice(at + "attn_q_b.weight", head, c.heads, c.key(), c.q_rank)));
    layer->to_latent.push_back(
        TRY(reader->slice(at + "attn_k_b.weight", head, c.heads, c.latent, c.nope)));
    layer->from_latent.push_back(
        TRY(reader->slice(at + "attn_v_b.weight", head, c.heads, c.value, c.latent)));
  }
  layer->output =
      TRY(reader->part(at + "attn_output.weight", c.hidden, {0, c.hidden}, c.heads * c.value,
                       {heads_.begin * c.value, heads_.end * c.value}));
  if (!layer->indexed) return {};
  layer->index_q =
      TRY(reader->matrix(at + "indexer.attn_q_b.weight", c.index_heads * c.index_dim, c.q_rank));
  layer->index_k = TRY(reader->matrix(at + "indexer.attn_k.weight", c.index_dim, c.hidden));
  layer->index_weights = TRY(reader->matrix(at + "indexer.proj.weight", c.index_heads, c.hidden));
  layer->index_norm = TRY(reader->vector(at + "indexer.k_norm.weight", c.index_dim));
  layer->index_norm_bias = TRY(reader->vector(at + "indexer.k_norm.bias", c.index_dim));
  return {};
}

Result<GlmModel::Layer> GlmModel::read_layer(WeightReader* reader, i32 index) const {
  const GlmConfig& c = config_;
  const std::string at = "blk." + std::to_string(index) + ".";
  Layer l;
  // The layer for multi-token prediction, past the others, has an indexer of its own.
  l.indexed = index >= c.layers || c.full_indexer[static_cast<size_t>(index)];
  TRY(read_attention(reader, at, &l));
  l.ffn_norm = TRY(reader->vector(at + "ffn_norm.weight", c.hidden));
  if (index < c.dense_layers) {
    l.dense = TRY(read_ffn(reader, at, ".weight", c.ffn, ffn_));
    return l;
  }
  l.router = TRY(reader->matrix(at + "ffn_gate_inp.weight", c.experts, c.hidden));
  l.router_bias = TRY(reader->vector(at + "exp_probs_b.bias", c.experts));
  for (i32 e = experts_.begin; e < experts_.end; ++e) {
    l.experts.push_back(TRY(read_expert(reader, at, e)));
  }
  if (c.shared_experts > 0) {
    l.shared = TRY(read_ffn(reader, at, "_shexp.weight", c.expert_ffn * c.shared_experts, shared_));
  }
  return l;
}

Status GlmModel::load_weights(const TensorSource& source) {
  const GlmConfig& c = config_;
  WeightReader reader(source, precision_);
  TRY(load_ends(&reader, c.vocab, c.hidden));
  i32 indexers = 0;
  for (i32 i = 0; i < c.layers; ++i) {
    layers_.push_back(TRY(read_layer(&reader, i)));
    index_place_.push_back(layers_.back().indexed ? indexers++ : -1);
  }
  info_.architecture = "glm-dsa";
  info_.layers = c.layers;
  info_.context = c.context;
  info_.parameters += reader.parameters();
  info_.weight_bytes = reader.bytes();
  u64 idle = 0;  // experts that a row does not touch
  for (const Layer& layer : layers_) {
    for (i32 e = c.experts_used; e < static_cast<i32>(layer.experts.size()); ++e) {
      const Ffn& ffn = layer.experts[static_cast<size_t>(e)];
      idle += ffn.gate.bytes() + ffn.up.bytes() + ffn.down.bytes();
    }
  }
  info_.step_weight_bytes = reader.bytes() - idle;
  info_.cache_bytes_per_token =
      static_cast<u64>(element_) * (size(c.layers, c.cached()) + size(indexers, c.index_dim));
  return {};
}

void GlmModel::reserve_layers() {
  const GlmConfig& c = config_;
  const i64 rows = capacity_.rows;
  const i64 page_rows = static_cast<i64>(capacity_.pages) * kPageTokens;
  const auto indexers = std::count(c.full_indexer.begin(), c.full_indexer.end(), true);
  // The last layer's part of a cache is the last, so that it alone can be longer.
  const i64 extra = mtp_ ? page_rows + kMtpSpare * kPageTokens : 0;
  cache_ = AlignedBytes(size(page_rows * c.layers + extra, cached_stride() * element_));
  index_cache_ = AlignedBytes(size(page_rows * indexers + extra, c.index_dim * element_));
  if (mtp_) {
    mtp_->joined = ActRows(capacity_.rows, 2 * c.hidden);
    mtp_->residual = AlignedArray<f32>(size(rows, c.hidden));
  }
  low_ = AlignedArray<f32>(size(rows, c.q_rank + c.cached()));
  query_ = AlignedArray<f32>(size(rows, heads() * c.key()));
  index_query_ = AlignedArray<f32>(size(rows, c.index_heads * c.index_dim));
  index_key_ = AlignedArray<f32>(size(rows, c.index_dim));
  index_weight_ = AlignedArray<f32>(size(rows, c.index_heads));
  scores_stride_ = (std::max(capacity_.context, c.index_top_k) + 31) / 16 * 16;
  index_scores_ = AlignedArray<f32>(size(kNarrow, scores_stride_));
  const i32 pairs = static_cast<i32>(rows) * c.experts_used;
  expert_out_ = AlignedArray<f32>(size(pairs, c.hidden));
  shared_out_ = AlignedArray<f32>(size(rows, c.hidden));
  q_low_ = ActRows(capacity_.rows, c.q_rank);
  head_in_ = ActRows(capacity_.rows * heads(), c.nope);
  head_mid_ = ActRows(capacity_.rows * heads(), c.latent);
  attended_ = ActRows(capacity_.rows, heads() * c.value);
  hidden_ = ActRows(capacity_.rows, ffn_.end - ffn_.begin);
  shared_hidden_ = ActRows(capacity_.rows, shared_.end - shared_.begin);
  expert_hidden_ = ActRows(pairs, c.expert_ffn);
  const auto selection = [&](i64 count) {
    return Selection{AlignedArray<i32>(size(count, c.index_top_k)),
                     AlignedArray<i32>(static_cast<u64>(count))};
  };
  const auto routing = [&](i64 count) {
    return Routing{AlignedArray<f32>(size(count, c.experts)),
                   AlignedArray<f32>(size(count, c.experts_used)),
                   AlignedArray<i32>(size(count, c.experts_used))};
  };
  selection_ = selection(rows);
  routing_ = routing(rows);
  for (i32 thread = 0; thread < crew_.size(); ++thread) {
    scratch_.emplace_back();
    scratch_.back().selection = selection(kNarrow);
    scratch_.back().routing = routing(kNarrow);
  }
  reserve_scratch();
}

void GlmModel::reserve_scratch() {
  const GlmConfig& c = config_;
  const i32 pairs = capacity_.rows * c.experts_used;
  const i32 widest = std::max({c.ffn, c.expert_ffn, c.expert_ffn * c.shared_experts});
  for (Scratch& s : scratch_) {
    s.rows = AlignedArray<const u8*>(static_cast<u64>(std::min(c.index_top_k, capacity_.context)));
    s.scores = AlignedArray<f32>(size(std::max(heads(), 1), scores_stride_));
    s.matches = AlignedArray<f32>(size(c.index_heads, 16));
    s.query = AlignedArray<f32>(size(std::max(heads(), 1), cached_stride()));
    s.index_query = AlignedArray<f32>(size(c.index_heads, c.index_dim));
    s.gate = AlignedArray<f32>(size(capacity_.rows, (widest + 31) / 32 * 32));
    s.up = AlignedArray<f32>(size(capacity_.rows, (widest + 31) / 32 * 32));
    s.order = AlignedArray<i32>(static_cast<u64>(capacity_.context));
    s.q_low = ActRows(kNarrow, c.q_rank);
    s.pair_place = AlignedArray<i32>(static_cast<u64>(pairs));
    s.place_row = AlignedArray<i32>(static_cast<u64>(pairs));
    s.expert_begin = AlignedArray<i32>(static_cast<u64>(c.experts + 1));
    s.expert_fill = AlignedArray<i32>(static_cast<u64>(c.experts));
  }
}

void GlmModel::run_layer(i32 index, i32 thread) {
  const Layer& layer = layers_[static_cast<size_t>(index)];
  attention(layer, index, thread);
  crew_.barrier();
  if (layer.output.quantised() && (!tuning_.fusion || config_.value % 32 != 0)) {
    const Share rows = rows_of(thread);
    attended_.quantize(kernels_, rows.begin, rows.end);
    crew_.barrier();
  }
  add_product(layer.output, value_columns_, attended_, thread);
  const ActRows& x = normed(layer.ffn_norm, true, thread);
  if (layer.router.empty()) {
    gated(layer.dense, x.view(), count(), hidden_, 0, thread);
    crew_.barrier();
    add_product(layer.dense.down, ffn_columns_, hidden_, thread);
  } else {
    sparse_ffn(layer, x, thread);
  }
}

}  // namespace llm
