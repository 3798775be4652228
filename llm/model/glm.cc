#include "llm/model/glm.h"

#include "llm/formats/quant.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace llm {

using base::Result;

namespace {

// Every `step`-th row of a view, from row `first`: one head of rows stored [row][head].
ActView every(const ActRows& rows, i32 first, i32 step) {
  ActView v = rows.view_from(first);
  v.x_stride *= step;
  v.q_stride *= step;
  v.block_stride *= step;
  return v;
}

u64 size(i64 a, i64 b) {
  return static_cast<u64>(a) * static_cast<u64>(b);
}

}  // namespace

GlmModel::GlmModel(const GlmConfig& config, Precision precision, Crew* crew)
    : config_(config),
      element_(precision == Precision::kExact ? 4 : 2),
      crew_(*crew),
      kernels_(best_kernels()) {}

Result<GlmModel::Ffn> GlmModel::read_ffn(WeightReader* reader, const std::string& at,
                                         const std::string& suffix, i32 index, i32 count,
                                         i32 ffn) const {
  Ffn out;
  out.gate = TRY(reader->slice(at + "ffn_gate" + suffix, index, count, ffn, config_.hidden));
  out.up = TRY(reader->slice(at + "ffn_up" + suffix, index, count, ffn, config_.hidden));
  out.down = TRY(reader->slice(at + "ffn_down" + suffix, index, count, config_.hidden, ffn));
  return out;
}

Result<GlmModel::Layer> GlmModel::read_layer(WeightReader* reader, i32 index) const {
  const GlmConfig& c = config_;
  const std::string at = "blk." + std::to_string(index) + ".";
  Layer l;
  l.attention_norm = TRY(reader->vector(at + "attn_norm.weight", c.hidden));
  l.ffn_norm = TRY(reader->vector(at + "ffn_norm.weight", c.hidden));
  l.q_a = TRY(reader->matrix(at + "attn_q_a.weight", c.q_rank, c.hidden));
  l.q_norm = TRY(reader->vector(at + "attn_q_a_norm.weight", c.q_rank));
  l.q_b = TRY(reader->matrix(at + "attn_q_b.weight", c.heads * c.key(), c.q_rank));
  l.kv_a = TRY(reader->matrix(at + "attn_kv_a_mqa.weight", c.cached(), c.hidden));
  l.latent_norm = TRY(reader->vector(at + "attn_kv_a_norm.weight", c.latent));
  for (i32 head = 0; head < c.heads; ++head) {
    l.to_latent.push_back(
        TRY(reader->slice(at + "attn_k_b.weight", head, c.heads, c.latent, c.nope)));
    l.from_latent.push_back(
        TRY(reader->slice(at + "attn_v_b.weight", head, c.heads, c.value, c.latent)));
  }
  l.output = TRY(reader->matrix(at + "attn_output.weight", c.hidden, c.heads * c.value));
  l.indexed = c.full_indexer[static_cast<size_t>(index)];
  if (l.indexed) {
    l.index_q =
        TRY(reader->matrix(at + "indexer.attn_q_b.weight", c.index_heads * c.index_dim, c.q_rank));
    l.index_k = TRY(reader->matrix(at + "indexer.attn_k.weight", c.index_dim, c.hidden));
    l.index_weights = TRY(reader->matrix(at + "indexer.proj.weight", c.index_heads, c.hidden));
    l.index_norm = TRY(reader->vector(at + "indexer.k_norm.weight", c.index_dim));
    l.index_norm_bias = TRY(reader->vector(at + "indexer.k_norm.bias", c.index_dim));
  }
  if (index < c.dense_layers) {
    l.dense = TRY(read_ffn(reader, at, ".weight", 0, 1, c.ffn));
    return l;
  }
  l.router = TRY(reader->matrix(at + "ffn_gate_inp.weight", c.experts, c.hidden));
  l.router_bias = TRY(reader->vector(at + "exp_probs_b.bias", c.experts));
  for (i32 e = 0; e < c.experts; ++e) {
    l.experts.push_back(TRY(read_ffn(reader, at, "_exps.weight", e, c.experts, c.expert_ffn)));
  }
  if (c.shared_experts > 0) {
    l.shared = TRY(read_ffn(reader, at, "_shexp.weight", 0, 1, c.expert_ffn * c.shared_experts));
  }
  return l;
}

Result<std::unique_ptr<GlmModel>> GlmModel::load(const TensorSource& source,
                                                 const GlmConfig& config, Precision precision,
                                                 Crew* crew) {
  std::unique_ptr<GlmModel> model(new GlmModel(config, precision, crew));
  WeightReader reader(source, precision);
  const GlmConfig& c = config;
  model->embedding_ = TRY(
      reader.tensor("token_embd.weight", static_cast<u64>(c.vocab), static_cast<u64>(c.hidden)));
  i32 indexers = 0;
  for (i32 i = 0; i < c.layers; ++i) {
    model->layers_.push_back(TRY(model->read_layer(&reader, i)));
    model->index_place_.push_back(model->layers_.back().indexed ? indexers++ : -1);
  }
  model->final_norm_ = TRY(reader.vector("output_norm.weight", c.hidden));
  const bool tied = !reader.has("output.weight");
  model->head_ =
      TRY(reader.matrix(tied ? "token_embd.weight" : "output.weight", c.vocab, c.hidden));
  ModelInfo& info = model->info_;
  info.architecture = "glm-dsa";
  info.vocab = c.vocab;
  info.hidden = c.hidden;
  info.layers = c.layers;
  info.context = c.context;
  info.parameters = reader.parameters() + (tied ? 0 : model->embedding_->values());
  info.weight_bytes = reader.bytes();
  u64 idle = 0;  // experts that a row does not touch
  for (const Layer& layer : model->layers_) {
    for (i32 e = c.experts_used; e < static_cast<i32>(layer.experts.size()); ++e) {
      const Ffn& ffn = layer.experts[static_cast<size_t>(e)];
      idle += ffn.gate.bytes() + ffn.up.bytes() + ffn.down.bytes();
    }
  }
  info.step_weight_bytes = reader.bytes() - idle;
  info.cache_bytes_per_token = static_cast<u64>(model->element_) *
                               (size(c.layers, c.cached()) + size(indexers, c.index_dim));
  return model;
}

void GlmModel::reserve(const Capacity& capacity) {
  const GlmConfig& c = config_;
  capacity_ = capacity;
  const i64 rows = capacity.rows;
  const i64 page_rows = static_cast<i64>(capacity.pages) * kPageTokens;
  const auto indexers = std::count(c.full_indexer.begin(), c.full_indexer.end(), true);
  cache_ = AlignedBytes(size(page_rows * c.layers, c.cached() * element_));
  index_cache_ = AlignedBytes(size(page_rows * indexers, c.index_dim * element_));
  x_ = AlignedArray<f32>(size(rows, c.hidden));
  low_ = AlignedArray<f32>(size(rows, c.q_rank + c.cached()));
  query_ = AlignedArray<f32>(size(rows, c.heads * c.key()));
  index_query_ = AlignedArray<f32>(size(rows, c.index_heads * c.index_dim));
  index_key_ = AlignedArray<f32>(size(rows, c.index_dim));
  index_weight_ = AlignedArray<f32>(size(rows, c.index_heads));
  partial_ = AlignedArray<f32>(size(rows, c.hidden));
  const i32 shared_ffn = c.expert_ffn * std::max(c.shared_experts, 1);
  const i64 pairs = rows * c.experts_used;  // a row and one of its experts
  const i64 widest =
      std::max<i64>({rows * c.ffn, rows * c.hidden, pairs * c.expert_ffn, rows * shared_ffn});
  gate_ = AlignedArray<f32>(static_cast<u64>(widest));
  up_ = AlignedArray<f32>(static_cast<u64>(widest));
  router_logits_ = AlignedArray<f32>(size(rows, c.experts));
  chosen_ = AlignedArray<i32>(static_cast<u64>(pairs));
  chosen_weight_ = AlignedArray<f32>(static_cast<u64>(pairs));
  expert_row_ = AlignedArray<i32>(static_cast<u64>(pairs));
  expert_begin_ = AlignedArray<i32>(static_cast<u64>(c.experts + 1));
  expert_fill_ = AlignedArray<i32>(static_cast<u64>(c.experts));
  expert_out_ = AlignedArray<f32>(size(pairs, c.hidden));
  selected_ = AlignedArray<i32>(size(rows, c.index_top_k));
  selected_count_ = AlignedArray<i32>(static_cast<u64>(rows));
  logit_stride_ = (c.vocab + 15) / 16 * 16;
  logits_ = AlignedArray<f32>(size(capacity.logit_rows, logit_stride_));
  normed_ = ActRows(capacity.rows, c.hidden);
  q_low_ = ActRows(capacity.rows, c.q_rank);
  head_in_ = ActRows(capacity.rows * c.heads, c.nope);
  head_mid_ = ActRows(capacity.rows * c.heads, c.latent);
  attended_ = ActRows(capacity.rows, c.heads * c.value);
  hidden_ = ActRows(capacity.rows, c.ffn);
  shared_hidden_ = ActRows(capacity.rows, shared_ffn);
  expert_in_ = ActRows(static_cast<i32>(pairs), c.hidden);
  expert_hidden_ = ActRows(static_cast<i32>(pairs), c.expert_ffn);
  angles_ = RopeAngles(capacity.rows, c.rope, c.rope_base);
  const i32 kept = std::min(c.index_top_k, capacity.context);
  const i32 kept_pages = (kept + 15) / 16;
  scores_stride_ = (std::max(capacity.context, kept) + 31) / 16 * 16;
  for (i32 rank = 0; rank < crew_.size(); ++rank) {
    Scratch s;
    s.keys = AlignedArray<f32>(size(kept_pages * 16, c.cached()));
    s.values = AlignedArray<f32>(size(kept_pages * 16, (c.latent + 7) / 8 * 8));
    s.scores = AlignedArray<f32>(static_cast<u64>(4 * scores_stride_));
    s.row = AlignedArray<f32>(static_cast<u64>(std::max(c.cached(), c.index_dim)));
    s.query = AlignedArray<f32>(size(capacity.rows, c.cached()));
    s.latent = AlignedArray<f32>(static_cast<u64>((c.latent + 15) / 16 * 16));
    s.order = AlignedArray<i32>(static_cast<u64>(capacity.context));
    s.pages = AlignedArray<i32>(static_cast<u64>(kept_pages));
    for (i32 p = 0; p < kept_pages; ++p) s.pages[static_cast<u64>(p)] = p;
    scratch_.push_back(std::move(s));
  }
  best_.resize(size(capacity.logit_rows, crew_.size()));
  logit_rows_.resize(static_cast<size_t>(capacity.logit_rows));
  if (!capture_layers_.empty()) capture_inputs(capture_layers_);
}

void GlmModel::capture_inputs(const std::vector<i32>& layers) {
  capture_layers_ = layers;
  captured_ = AlignedArray<f32>(static_cast<u64>(capacity_.rows) * layers.size() *
                                static_cast<u64>(config_.hidden));
}

const f32* GlmModel::captured(i32 row) const {
  return captured_.data() + row * static_cast<i64>(capture_layers_.size()) * config_.hidden;
}

void GlmModel::embed(i32 token, f32* out) const {
  dequantize(embedding_->type,
             embedding_->bytes.data() + static_cast<u64>(token) * embedding_->row_bytes(),
             {out, static_cast<size_t>(config_.hidden)});
}

u8* GlmModel::cached_row(i32 index, i32 page, i32 lane) const {
  const i64 at = (static_cast<i64>(index) * capacity_.pages + page) * kPageTokens + lane;
  return cache_.data() + at * config_.cached() * element_;
}

u8* GlmModel::index_row(i32 index, i32 page, i32 lane) const {
  const i64 place = index_place_[static_cast<size_t>(index)];
  return index_cache_.data() +
         ((place * capacity_.pages + page) * kPageTokens + lane) * config_.index_dim * element_;
}

void GlmModel::load_cached(const u8* from, i32 count, f32* to) const {
  if (element_ == 4) {
    std::memcpy(to, from, static_cast<size_t>(count) * 4);
  } else {
    kernels_.from_half(reinterpret_cast<const u16*>(from), count, to);
  }
}

void GlmModel::store_cached(const f32* from, i32 count, u8* to) const {
  if (element_ == 4) {
    std::memcpy(to, from, static_cast<size_t>(count) * 4);
  } else {
    kernels_.to_half(from, count, reinterpret_cast<u16*>(to));
  }
}

void GlmModel::forward(const Step& step) {
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

i32 GlmModel::argmax(i32 j) const {
  const auto ranks = static_cast<size_t>(crew_.size());
  Best top = best_[static_cast<size_t>(j) * ranks];
  for (size_t rank = 1; rank < ranks; ++rank) {
    const Best& other = best_[static_cast<size_t>(j) * ranks + rank];
    if (other.value > top.value) top = other;
  }
  return top.index;
}

std::vector<i32> GlmModel::selected(i32 row) const {
  const i32* from = selected_.data() + static_cast<i64>(row) * config_.index_top_k;
  return {from, from + selected_count_[static_cast<u64>(row)]};
}

void GlmModel::run_rank(i32 rank) {
  const Share rows = share_of(count(), rank, crew_.size());
  for (i32 row = rows.begin; row < rows.end; ++row) {
    embed(step_->rows[row].token, x_.data() + static_cast<i64>(row) * config_.hidden);
    angles_.set(row, step_->rows[row].position);
  }
  for (i32 i = 0; i < config_.layers; ++i) {
    const Layer& layer = layers_[static_cast<size_t>(i)];
    const auto capture =
        std::find(capture_layers_.begin(), capture_layers_.end(), i) - capture_layers_.begin();
    for (i32 row = rows.begin; capture < static_cast<i64>(capture_layers_.size()) && row < rows.end;
         ++row) {
      std::memcpy(const_cast<f32*>(captured(row)) + capture * config_.hidden,
                  x_.data() + static_cast<i64>(row) * config_.hidden,
                  sizeof(f32) * static_cast<size_t>(config_.hidden));
    }
    norm_rows(layer.attention_norm, normed_, rank);
    crew_.barrier();
    project(layer, rank);
    crew_.barrier();
    finish_low_rank(layer, i, rank);
    crew_.barrier();
    project_queries(layer, rank);
    crew_.barrier();
    if (layer.indexed) {
      for (i32 row = rows.begin; row < rows.end; ++row) choose(i, row, rank);
      crew_.barrier();
    }
    attend_heads(layer, i, rank);
    crew_.barrier();
    if (layer.output.quantised()) {
      attended_.quantize(kernels_, rows.begin, rows.end);
      crew_.barrier();
    }
    add_output(layer.output, attended_, rank);
    crew_.barrier();
    norm_rows(layer.ffn_norm, normed_, rank);
    crew_.barrier();
    if (layer.experts.empty()) {
      dense_ffn(layer, rank);
    } else {
      sparse_ffn(layer, rank);
    }
    crew_.barrier();
  }
  if (logit_count_ > 0) head_rows(rank);
}

void GlmModel::norm_rows(const std::vector<f32>& weight, const ActRows& out, i32 rank) {
  const Share rows = share_of(count(), rank, crew_.size());
  for (i32 row = rows.begin; row < rows.end; ++row) {
    kernels_.rms_norm(x_.data() + static_cast<i64>(row) * config_.hidden, weight.data(),
                      config_.eps, config_.hidden, out.row(row));
  }
  out.quantize(kernels_, rows.begin, rows.end);
}

// All that reads the normed input: low-rank query, latent, indexer key and weights.
void GlmModel::project(const Layer& layer, i32 rank) {
  const GlmConfig& c = config_;
  const i64 stride = c.q_rank + c.cached();
  const ActView x = normed_.view();
  const i32 ranks = crew_.size();
  multiply_share(kernels_, layer.q_a, x, count(), low_.data(), stride, rank, ranks);
  multiply_share(kernels_, layer.kv_a, x, count(), low_.data() + c.q_rank, stride, rank, ranks);
  if (!layer.indexed) return;
  multiply_share(kernels_, layer.index_k, x, count(), index_key_.data(), c.index_dim, rank, ranks);
  multiply_share(kernels_, layer.index_weights, x, count(), index_weight_.data(), c.index_heads,
                 rank, ranks);
}

void GlmModel::finish_low_rank(const Layer& layer, i32 index, i32 rank) {
  const GlmConfig& c = config_;
  const Share rows = share_of(count(), rank, crew_.size());
  for (i32 row = rows.begin; row < rows.end; ++row) {
    f32* low = low_.data() + static_cast<i64>(row) * (c.q_rank + c.cached());
    kernels_.rms_norm(low, layer.q_norm.data(), c.low_rank_eps, c.q_rank, q_low_.row(row));
    f32* latent = low + c.q_rank;
    kernels_.rms_norm(latent, layer.latent_norm.data(), c.low_rank_eps, c.latent, latent);
    angles_.apply(row, latent + c.latent, true);
    const i32 position = step_->rows[row].position;
    store_cached(latent, c.cached(),
                 cached_row(index, pages_of(row)[position / kPageTokens], position % kPageTokens));
    if (layer.indexed) store_index_key(layer, index, row);
  }
  q_low_.quantize(kernels_, rows.begin, rows.end);
}

// LayerNorm, then rotation of the first values.
void GlmModel::store_index_key(const Layer& layer, i32 index, i32 row) {
  const GlmConfig& c = config_;
  f32* key = index_key_.data() + static_cast<i64>(row) * c.index_dim;
  f64 mean = 0;
  for (i32 i = 0; i < c.index_dim; ++i) mean += key[i];
  mean /= c.index_dim;
  f64 variance = 0;
  for (i32 i = 0; i < c.index_dim; ++i) variance += (key[i] - mean) * (key[i] - mean);
  const f64 scale = 1.0 / std::sqrt(variance / c.index_dim + c.index_norm_eps);
  for (i32 i = 0; i < c.index_dim; ++i) {
    const auto at = static_cast<size_t>(i);
    key[i] = static_cast<f32>((key[i] - mean) * scale) * layer.index_norm[at] +
             layer.index_norm_bias[at];
  }
  angles_.apply(row, key, true);
  const i32 position = step_->rows[row].position;
  store_cached(key, c.index_dim,
               index_row(index, pages_of(row)[position / kPageTokens], position % kPageTokens));
}

void GlmModel::project_queries(const Layer& layer, i32 rank) {
  const GlmConfig& c = config_;
  const i32 ranks = crew_.size();
  multiply_share(kernels_, layer.q_b, q_low_.view(), count(), query_.data(), c.heads * c.key(),
                 rank, ranks);
  if (layer.indexed) {
    multiply_share(kernels_, layer.index_q, q_low_.view(), count(), index_query_.data(),
                   c.index_heads * c.index_dim, rank, ranks);
  }
}

// The top_k positions by sum_j w_j relu(q_j . k_u), in ascending order.
void GlmModel::choose(i32 index, i32 row, i32 rank) {
  const GlmConfig& c = config_;
  const Scratch& s = scratch_[static_cast<size_t>(rank)];
  const i32 length = step_->rows[row].position + 1;
  i32* out = selected_.data() + static_cast<i64>(row) * c.index_top_k;
  const i32 keep = std::min(length, c.index_top_k);
  selected_count_[static_cast<u64>(row)] = keep;
  if (keep == length) {
    for (i32 u = 0; u < length; ++u) out[u] = u;
    return;
  }
  f32* queries = index_query_.data() + static_cast<i64>(row) * c.index_heads * c.index_dim;
  for (i32 j = 0; j < c.index_heads; ++j)
    angles_.apply(row, queries + static_cast<i64>(j) * c.index_dim, true);
  const f32* weights = index_weight_.data() + static_cast<i64>(row) * c.index_heads;
  const f32 scale =
      1.0f / std::sqrt(static_cast<f32>(c.index_heads) * static_cast<f32>(c.index_dim));
  const i32* pages = pages_of(row);
  f32* scores = s.scores.data();
  for (i32 u = 0; u < length; ++u) {
    load_cached(index_row(index, pages[u / kPageTokens], u % kPageTokens), c.index_dim,
                s.row.data());
    f32 score = 0;
    for (i32 j = 0; j < c.index_heads; ++j) {
      const f32 match =
          kernels_.dot(queries + static_cast<i64>(j) * c.index_dim, s.row.data(), c.index_dim);
      score += weights[j] * scale * std::max(match, 0.0f);
    }
    scores[u] = score;
    s.order[static_cast<u64>(u)] = u;
  }
  i32* order = s.order.data();
  std::nth_element(order, order + keep - 1, order + length, [scores](i32 a, i32 b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  std::sort(order, order + keep);
  std::copy(order, order + keep, out);
}

// The chosen cache rows of `row` as pages in the attention kernel's layout.
void GlmModel::gather(i32 index, i32 row, i32 rank) {
  const GlmConfig& c = config_;
  const Scratch& s = scratch_[static_cast<size_t>(rank)];
  const i32* chosen = selected_.data() + static_cast<i64>(row) * c.index_top_k;
  const i32* pages = pages_of(row);
  const i64 v_stride = (c.latent + 7) / 8 * 8;
  for (i32 n = 0; n < selected_count_[static_cast<u64>(row)]; ++n) {
    const i32 u = chosen[n];
    load_cached(cached_row(index, pages[u / kPageTokens], u % kPageTokens), c.cached(),
                s.row.data());
    f32* keys = s.keys.data() + static_cast<i64>(n / 16) * 16 * c.cached() + n % 16;
    for (i32 i = 0; i < c.cached(); ++i) keys[i * 16] = s.row[static_cast<u64>(i)];
    std::memcpy(s.values.data() + n * v_stride, s.row.data(),
                sizeof(f32) * static_cast<size_t>(c.latent));
  }
}

void GlmModel::attend_heads(const Layer& layer, i32 index, i32 rank) {
  const GlmConfig& c = config_;
  const Scratch& s = scratch_[static_cast<size_t>(rank)];
  const Share heads = share_of(c.heads, rank, crew_.size());
  const bool quantised = layer.to_latent[0].quantised();
  for (i32 row = 0; row < count(); ++row) {
    for (i32 h = heads.begin; h < heads.end; ++h) {
      f32* q = query_.data() + (static_cast<i64>(row) * c.heads + h) * c.key();
      angles_.apply(row, q + c.nope, true);
      std::memcpy(head_in_.row(row * c.heads + h), q, sizeof(f32) * static_cast<size_t>(c.nope));
      if (quantised) head_in_.quantize(kernels_, row * c.heads + h, row * c.heads + h + 1);
    }
  }
  // Queries of all rows into latent space, head by head: each head's weights are read once.
  for (i32 h = heads.begin; h < heads.end; ++h) {
    const PackedMatrix& m = layer.to_latent[static_cast<size_t>(h)];
    kernels_.gemm(m.view(), 0, m.groups(), every(head_in_, h, c.heads), count(), head_mid_.row(h),
                  head_mid_.stride() * c.heads);
  }
  AttendArgs args{};
  args.rows = 1;
  args.head_dim = c.cached();
  args.v_dim = c.latent;
  args.v_stride = (c.latent + 7) / 8 * 8;
  args.keys = reinterpret_cast<const u8*>(s.keys.data());
  args.values = reinterpret_cast<const u8*>(s.values.data());
  args.key_page_bytes = static_cast<i64>(c.cached()) * 16 * 4;
  args.value_page_bytes = static_cast<i64>(args.v_stride) * 16 * 4;
  args.pages = s.pages.data();
  args.scale = 1.0f / std::sqrt(static_cast<f32>(c.key()));
  args.scores = s.scores.data();
  args.scores_stride = scores_stride_;
  for (i32 row = 0; row < count() && heads.begin < heads.end; ++row) {
    gather(index, row, rank);
    args.length = selected_count_[static_cast<u64>(row)];
    for (i32 h = heads.begin; h < heads.end; ++h) {
      f32* mid = head_mid_.row(row * c.heads + h);
      std::memcpy(s.query.data(), mid, sizeof(f32) * static_cast<size_t>(c.latent));
      std::memcpy(s.query.data() + c.latent,
                  query_.data() + (static_cast<i64>(row) * c.heads + h) * c.key() + c.nope,
                  sizeof(f32) * static_cast<size_t>(c.rope));
      args.q = s.query.data();
      args.out = mid;
      kernels_.attend(args);
      if (layer.from_latent[0].quantised()) {
        head_mid_.quantize(kernels_, row * c.heads + h, row * c.heads + h + 1);
      }
    }
  }
  for (i32 h = heads.begin; h < heads.end; ++h) {
    const PackedMatrix& m = layer.from_latent[static_cast<size_t>(h)];
    kernels_.gemm(m.view(), 0, m.groups(), every(head_mid_, h, c.heads), count(),
                  attended_.x() + h * c.value, attended_.stride());
  }
}

// x += m in, this rank's columns.
void GlmModel::add_output(const PackedMatrix& m, const ActRows& in, i32 rank) {
  const i64 hidden = config_.hidden;
  const Share cols =
      multiply_share(kernels_, m, in.view(), count(), partial_.data(), hidden, rank, crew_.size());
  for (i32 row = 0; row < count() && cols.begin < cols.end; ++row) {
    kernels_.add(partial_.data() + row * hidden + cols.begin, cols.end - cols.begin,
                 x_.data() + row * hidden + cols.begin);
  }
}

// silu(gate x) * up x into rows [out_row, out_row + rows) of out: this rank's units of 32 columns.
void GlmModel::gated(const Ffn& ffn, const ActView& x, i32 rows, const ActRows& out, i32 out_row,
                     i32 rank) {
  const i32 width = ffn.gate.rows();
  const Share units = share_of((width + 31) / 32, rank, crew_.size());
  if (units.begin == units.end || rows == 0) return;
  const i32 last_group = std::min(units.end * 2, ffn.gate.groups());
  const i32 from = units.begin * 32;
  const i32 to = std::min(units.end * 32, width);
  f32* gate = gate_.data() + static_cast<i64>(out_row) * width;
  f32* up = up_.data() + static_cast<i64>(out_row) * width;
  kernels_.gemm(ffn.gate.view(), units.begin * 2, last_group, x, rows, gate, width);
  kernels_.gemm(ffn.up.view(), units.begin * 2, last_group, x, rows, up, width);
  for (i32 row = 0; row < rows; ++row) {
    const i64 at = static_cast<i64>(row) * width + from;
    kernels_.silu_mul(gate + at, up + at, to - from, out.row(out_row + row) + from);
    if (ffn.down.quantised()) out.quantize_part(kernels_, out_row + row, from, units.end * 32);
  }
}

void GlmModel::dense_ffn(const Layer& layer, i32 rank) {
  gated(layer.dense, normed_.view(), count(), hidden_, 0, rank);
  crew_.barrier();
  add_output(layer.dense.down, hidden_, rank);
}

// The experts of a row: best sigmoid + bias, weighted by the sigmoid alone.
void GlmModel::route(const Layer& layer, i32 row) {
  const GlmConfig& c = config_;
  f32* scores = router_logits_.data() + static_cast<i64>(row) * c.experts;
  i32* chosen = chosen_.data() + static_cast<i64>(row) * c.experts_used;
  f32* weights = chosen_weight_.data() + static_cast<i64>(row) * c.experts_used;
  for (i32 e = 0; e < c.experts; ++e) scores[e] = 1.0f / (1.0f + std::exp(-scores[e]));
  for (i32 n = 0; n < c.experts_used; ++n) {
    i32 best = -1;
    for (i32 e = 0; e < c.experts; ++e) {
      if (std::find(chosen, chosen + n, e) != chosen + n) continue;
      if (best < 0 || scores[e] + layer.router_bias[static_cast<size_t>(e)] >
                          scores[best] + layer.router_bias[static_cast<size_t>(best)]) {
        best = e;
      }
    }
    chosen[n] = best;
  }
  std::sort(chosen, chosen + c.experts_used);
  f32 sum = 0;
  for (i32 n = 0; n < c.experts_used; ++n) sum += scores[chosen[n]];
  for (i32 n = 0; n < c.experts_used; ++n) {
    const f32 share = c.normalise_experts ? scores[chosen[n]] / (sum + 1e-20f) : scores[chosen[n]];
    weights[n] = share * c.expert_scale;
  }
}

// Places every (row, expert) pair so that the pairs of one expert are neighbours.
void GlmModel::order_by_expert() {
  const GlmConfig& c = config_;
  const i32 pairs = count() * c.experts_used;
  i32* begin = expert_begin_.data();
  std::fill(begin, begin + c.experts + 1, 0);
  for (i32 p = 0; p < pairs; ++p) ++begin[chosen_[static_cast<u64>(p)] + 1];
  for (i32 e = 0; e < c.experts; ++e) begin[e + 1] += begin[e];
  std::copy(begin, begin + c.experts, expert_fill_.data());
  for (i32 p = 0; p < pairs; ++p) {
    expert_row_[static_cast<u64>(p)] =
        expert_fill_[static_cast<u64>(chosen_[static_cast<u64>(p)])]++;
  }
}

void GlmModel::sparse_ffn(const Layer& layer, i32 rank) {
  const GlmConfig& c = config_;
  const i32 ranks = crew_.size();
  const Share rows = share_of(count(), rank, ranks);
  multiply_share(kernels_, layer.router, normed_.view(), count(), router_logits_.data(), c.experts,
                 rank, ranks);
  crew_.barrier();
  for (i32 row = rows.begin; row < rows.end; ++row) route(layer, row);
  crew_.barrier();
  if (rank == 0) order_by_expert();
  crew_.barrier();
  for (i32 row = rows.begin; row < rows.end; ++row) {
    for (i32 n = 0; n < c.experts_used; ++n) {
      const i32 place = expert_row_[static_cast<u64>(row * c.experts_used + n)];
      std::memcpy(expert_in_.row(place), normed_.row(row),
                  sizeof(f32) * static_cast<size_t>(c.hidden));
      expert_in_.quantize(kernels_, place, place + 1);
    }
  }
  crew_.barrier();
  for (i32 e = 0; e < c.experts; ++e) {
    const i32 begin = expert_begin_[static_cast<u64>(e)];
    const i32 many = expert_begin_[static_cast<u64>(e + 1)] - begin;
    gated(layer.experts[static_cast<size_t>(e)], expert_in_.view_from(begin), many, expert_hidden_,
          begin, rank);
  }
  crew_.barrier();
  if (!layer.shared.empty()) gated(layer.shared, normed_.view(), count(), shared_hidden_, 0, rank);
  const Share groups = share_of((c.hidden + 15) / 16, rank, ranks);
  for (i32 e = 0; e < c.experts && groups.begin < groups.end; ++e) {
    const i32 begin = expert_begin_[static_cast<u64>(e)];
    const i32 many = expert_begin_[static_cast<u64>(e + 1)] - begin;
    if (many == 0) continue;
    kernels_.gemm(layer.experts[static_cast<size_t>(e)].down.view(), groups.begin, groups.end,
                  expert_hidden_.view_from(begin), many,
                  expert_out_.data() + static_cast<i64>(begin) * c.hidden, c.hidden);
  }
  crew_.barrier();
  if (!layer.shared.empty()) {
    multiply_share(kernels_, layer.shared.down, shared_hidden_.view(), count(), partial_.data(),
                   c.hidden, rank, ranks);
  }
  const i32 from = std::min(groups.begin * 16, c.hidden);
  const i32 width = std::min(groups.end * 16, c.hidden) - from;
  for (i32 row = 0; row < count() && width > 0; ++row) {
    f32* sum = gate_.data() + static_cast<i64>(row) * c.hidden + from;
    std::fill(sum, sum + width, 0.0f);
    for (i32 n = 0; n < c.experts_used; ++n) {
      const auto pair = static_cast<u64>(row * c.experts_used + n);
      kernels_.add_scaled(
          expert_out_.data() + static_cast<i64>(expert_row_[pair]) * c.hidden + from,
          chosen_weight_[pair], width, sum);
    }
    if (!layer.shared.empty())
      kernels_.add(partial_.data() + static_cast<i64>(row) * c.hidden + from, width, sum);
    kernels_.add(sum, width, x_.data() + static_cast<i64>(row) * c.hidden + from);
  }
}

void GlmModel::head_rows(i32 rank) {
  const i32 ranks = crew_.size();
  const Share mine = share_of(logit_count_, rank, ranks);
  for (i32 j = mine.begin; j < mine.end; ++j) {
    const i64 row = logit_rows_[static_cast<size_t>(j)];
    kernels_.rms_norm(x_.data() + row * config_.hidden, final_norm_.data(), config_.eps,
                      config_.hidden, normed_.row(j));
  }
  if (head_.quantised()) normed_.quantize(kernels_, mine.begin, mine.end);
  crew_.barrier();
  const Share cols = multiply_share(kernels_, head_, normed_.view(), logit_count_, logits_.data(),
                                    logit_stride_, rank, ranks);
  for (i32 j = 0; j < logit_count_; ++j) {
    best_[static_cast<size_t>(j * ranks + rank)] =
        best_of(logits_.data() + j * logit_stride_, cols.begin, cols.end);
  }
}

}  // namespace llm
