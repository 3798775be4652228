// Latent attention and the lightning indexer of glm.h.
#include "llm/model/glm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace llm {

namespace {

// Every `step`-th row of a view, from row `first`: one head of rows stored [row][head].
ActView every(const ActRows& rows, i32 first, i32 step) {
  ActView v = rows.view_from(first);
  v.x_stride *= step;
  v.q_stride *= step;
  v.block_stride *= step;
  return v;
}

}  // namespace

u8* GlmModel::cached_row(i32 index, i32 page, i32 lane) const {
  const i64 at = (static_cast<i64>(index) * capacity_.pages + page) * kPageTokens + lane;
  return cache_.data() + at * cached_stride() * element_;
}

u8* GlmModel::index_row(i32 index, i32 page, i32 lane) const {
  const i64 place = index_place_[static_cast<size_t>(index)];
  return index_cache_.data() +
         ((place * capacity_.pages + page) * kPageTokens + lane) * config_.index_dim * element_;
}

void GlmModel::store_cached(const f32* from, i32 count, u8* to) const {
  if (element_ == 4) {
    std::memcpy(to, from, static_cast<size_t>(count) * 4);
  } else {
    kernels_.to_half(from, count, reinterpret_cast<u16*>(to));
  }
}

std::vector<i32> GlmModel::selected(i32 row) const {
  const Selection& s = was_narrow_ ? scratch_[0].selection : selection_;
  const i32* from = s.positions.data() + static_cast<i64>(row) * config_.index_top_k;
  return {from, from + s.count[static_cast<u64>(row)]};
}

void GlmModel::attention(const Layer& layer, i32 index, i32 thread) {
  if (thread == 0) was_narrow_ = narrow();
  project(layer, normed(layer.attention_norm, true, thread), thread);
  crew_.barrier();
  store_latents(layer, index, thread);
  project_queries(layer, low_rank_queries(layer, thread), thread);
  crew_.barrier();
  if (layer.indexed) choose(index, thread);
  attend(index, thread);
  leave_latent_space(layer, thread);
}

// All that reads the normed input: low-rank query, latent, indexer key and weights.
void GlmModel::project(const Layer& layer, const ActRows& x, i32 thread) {
  const GlmConfig& c = config_;
  const i64 stride = c.q_rank + c.cached();
  const auto multiply = [&](const PackedMatrix& m, f32* out, i64 out_stride) {
    multiply_share(kernels_, m, x.view(), count(), out, out_stride, thread, crew_.size());
    barrier_unless_fused();
  };
  multiply(layer.q_a, low_.data(), stride);
  multiply(layer.kv_a, low_.data() + c.q_rank, stride);
  if (!layer.indexed) return;
  multiply(layer.index_k, index_key_.data(), c.index_dim);
  multiply(layer.index_weights, index_weight_.data(), c.index_heads);
}

// The normed low-rank queries, in rows that this thread may read.
const ActRows& GlmModel::low_rank_queries(const Layer& layer, i32 thread) {
  const GlmConfig& c = config_;
  const bool alone = narrow();
  const ActRows& out = alone ? scratch(thread).q_low : q_low_;
  const Share rows = alone ? Share{0, count()} : rows_of(thread);
  for (i32 row = rows.begin; row < rows.end; ++row) {
    const f32* low = low_.data() + static_cast<i64>(row) * (c.q_rank + c.cached());
    kernels_.rms_norm(low, layer.q_norm.data(), c.low_rank_eps, c.q_rank, out.row(row));
  }
  barrier_unless_fused();
  out.quantize(kernels_, rows.begin, rows.end);
  if (!alone) crew_.barrier();
  return out;
}

void GlmModel::store_latents(const Layer& layer, i32 index, i32 thread) {
  const GlmConfig& c = config_;
  const Share rows = rows_of(thread);
  for (i32 row = rows.begin; row < rows.end; ++row) {
    f32* latent = low_.data() + static_cast<i64>(row) * (c.q_rank + c.cached()) + c.q_rank;
    kernels_.rms_norm(latent, layer.latent_norm.data(), c.low_rank_eps, c.latent, latent);
    angles_.apply(row, latent + c.latent, true);
    store_cached(latent, c.cached(), cached_row(index, page_of(row), lane_of(row)));
  }
  barrier_unless_fused();
  for (i32 row = rows.begin; layer.indexed && row < rows.end; ++row) {
    store_index_key(layer, index, row);
  }
  barrier_unless_fused();
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
  store_cached(key, c.index_dim, index_row(index, page_of(row), lane_of(row)));
}

// Queries by head, rotated and moved into latent space; and the indexer's. A head's weights are
// read once for all rows.
void GlmModel::project_queries(const Layer& layer, const ActRows& low, i32 thread) {
  const GlmConfig& c = config_;
  const Share heads = share_of(this->heads(), thread, crew_.size());
  const i64 stride = static_cast<i64>(this->heads()) * c.key();
  for (i32 h = heads.begin; h < heads.end; ++h) {
    const PackedMatrix& query = layer.query[static_cast<size_t>(h)];
    kernels_.gemm(query.view(), 0, query.groups(), low.view(), count(),
                  query_.data() + static_cast<i64>(h) * c.key(), stride);
  }
  barrier_unless_fused();
  if (layer.indexed) {
    multiply_share(kernels_, layer.index_q, low.view(), count(), index_query_.data(),
                   c.index_heads * c.index_dim, thread, crew_.size());
  }
  barrier_unless_fused();
  for (i32 row = 0; row < count(); ++row) {
    for (i32 h = heads.begin; h < heads.end; ++h) {
      f32* q = query_.data() + row * stride + static_cast<i64>(h) * c.key();
      angles_.apply(row, q + c.nope, true);
      const i32 at = row * this->heads() + h;
      std::memcpy(head_in_.row(at), q, sizeof(f32) * static_cast<size_t>(c.nope));
      if (layer.to_latent[0].quantised()) head_in_.quantize(kernels_, at, at + 1);
    }
  }
  barrier_unless_fused();
  for (i32 h = heads.begin; h < heads.end; ++h) {
    const PackedMatrix& m = layer.to_latent[static_cast<size_t>(h)];
    kernels_.gemm(m.view(), 0, m.groups(), every(head_in_, h, this->heads()), count(),
                  head_mid_.row(h), head_mid_.stride() * this->heads());
  }
}

// The top_k positions by sum_j w_j relu(q_j . k_u), in ascending order. A narrow step divides the
// positions among the threads, which then pick each for itself; a wide one divides the rows.
void GlmModel::choose(i32 index, i32 thread) {
  const i32 threads = crew_.size();
  const auto length = [&](i32 row) { return step_->rows[row].position + 1; };
  if (!narrow()) {
    const Share rows = rows_of(thread);
    f32* scores = scratch(thread).scores.data();
    for (i32 row = rows.begin; row < rows.end; ++row) {
      if (length(row) > config_.index_top_k) score(index, row, {0, length(row)}, thread, scores);
      pick(row, scores, thread);
    }
    crew_.barrier();
    return;
  }
  bool any = false;
  for (i32 row = 0; row < count(); ++row) {
    if (length(row) <= config_.index_top_k) continue;
    any = true;
    score(index, row, share_of(length(row), thread, threads), thread,
          index_scores_.data() + row * scores_stride_);
  }
  if (any) crew_.barrier();
  for (i32 row = 0; row < count(); ++row) {
    pick(row, index_scores_.data() + row * scores_stride_, thread);
  }
}

void GlmModel::score(i32 index, i32 row, Share positions, i32 thread, f32* scores) {
  const GlmConfig& c = config_;
  Scratch& s = scratch(thread);
  f32* queries = s.index_query.data();
  std::memcpy(queries, index_query_.data() + static_cast<i64>(row) * c.index_heads * c.index_dim,
              sizeof(f32) * static_cast<size_t>(c.index_heads * c.index_dim));
  for (i32 j = 0; j < c.index_heads; ++j) {
    angles_.apply(row, queries + static_cast<i64>(j) * c.index_dim, true);
  }
  const f32* weights = index_weight_.data() + static_cast<i64>(row) * c.index_heads;
  const f32 scale =
      1.0f / std::sqrt(static_cast<f32>(c.index_heads) * static_cast<f32>(c.index_dim));
  const i32* pages = pages_of(row);
  // Sixteen positions at a time: their matches with all heads fit the first-level cache.
  constexpr i32 kChunk = 16;
  const u8* rows[kChunk];
  for (i32 from = positions.begin; from < positions.end; from += kChunk) {
    const i32 many = std::min(kChunk, positions.end - from);
    for (i32 i = 0; i < many; ++i) {
      rows[i] = index_row(index, pages[(from + i) / kPageTokens], (from + i) % kPageTokens);
    }
    kernels_.match(queries, c.index_dim, c.index_heads, {rows, many, c.index_dim, element_ == 2}, 1,
                   s.matches.data(), kChunk);
    for (i32 i = 0; i < many; ++i) {
      f32 sum = 0;
      for (i32 j = 0; j < c.index_heads; ++j) {
        const f32 match = s.matches[static_cast<u64>(j * kChunk + i)];
        sum += weights[j] * scale * std::max(match, 0.0f);
      }
      scores[from + i] = sum;
    }
  }
}

void GlmModel::pick(i32 row, const f32* scores, i32 thread) {
  const Selection& selection = this->selection(thread);
  const i32 length = step_->rows[row].position + 1;
  const i32 keep = std::min(length, config_.index_top_k);
  i32* out = selection.positions.data() + static_cast<i64>(row) * config_.index_top_k;
  selection.count[static_cast<u64>(row)] = keep;
  if (keep == length) {
    for (i32 u = 0; u < length; ++u) out[u] = u;
    return;
  }
  i32* order = scratch(thread).order.data();
  for (i32 u = 0; u < length; ++u) order[u] = u;
  std::nth_element(order, order + keep - 1, order + length, [scores](i32 a, i32 b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  std::sort(order, order + keep);
  std::copy(order, order + keep, out);
}

// Of this thread's heads, in latent space, straight from the chosen cache rows; results take the
// queries' place.
void GlmModel::attend(i32 index, i32 thread) {
  const GlmConfig& c = config_;
  Scratch& s = scratch(thread);
  const Share heads = share_of(this->heads(), thread, crew_.size());
  const i32 many = heads.end - heads.begin;
  const Selection& selection = this->selection(thread);
  const f32 scale = 1.0f / std::sqrt(static_cast<f32>(c.key()));
  const i64 width = cached_stride();
  for (i32 row = 0; row < count() && many > 0; ++row) {
    const i32* pages = pages_of(row);
    const i32* chosen = selection.positions.data() + static_cast<i64>(row) * c.index_top_k;
    const i32 kept = selection.count[static_cast<u64>(row)];
    for (i32 n = 0; n < kept; ++n) {
      s.rows[static_cast<u64>(n)] =
          cached_row(index, pages[chosen[n] / kPageTokens], chosen[n] % kPageTokens);
    }
    const i64 first = static_cast<i64>(row) * this->heads() + heads.begin;
    for (i32 h = 0; h < many; ++h) {
      f32* q = s.query.data() + h * width;
      std::memcpy(q, head_mid_.row(static_cast<i32>(first + h)),
                  sizeof(f32) * static_cast<size_t>(c.latent));
      std::memcpy(q + c.latent, query_.data() + (first + h) * c.key() + c.nope,
                  sizeof(f32) * static_cast<size_t>(c.rope));
    }
    const bool half = element_ == 2;
    kernels_.match(s.query.data(), width, many,
                   {s.rows.data(), kept, static_cast<i32>(width), half}, scale, s.scores.data(),
                   scores_stride_);
    for (i32 h = 0; h < many; ++h) kernels_.softmax(s.scores.data() + h * scores_stride_, kept);
    // The last vector may hold rope values too; nobody reads those columns.
    const i32 out_width = (c.latent + 7) / 8 * 8;
    kernels_.mix(s.scores.data(), scores_stride_, many, {s.rows.data(), kept, out_width, half},
                 head_mid_.row(static_cast<i32>(first)), head_mid_.stride());
  }
  barrier_unless_fused();
}

void GlmModel::leave_latent_space(const Layer& layer, i32 thread) {
  const GlmConfig& c = config_;
  const Share heads = share_of(this->heads(), thread, crew_.size());
  for (i32 h = heads.begin; h < heads.end; ++h) {
    const PackedMatrix& m = layer.from_latent[static_cast<size_t>(h)];
    for (i32 row = 0; m.quantised() && row < count(); ++row) {
      const i32 at = row * this->heads() + h;
      head_mid_.quantize(kernels_, at, at + 1);
    }
    kernels_.gemm(m.view(), 0, m.groups(), every(head_mid_, h, this->heads()), count(),
                  attended_.x() + h * c.value, attended_.stride());
  }
  const bool quantise = layer.output.quantised() && tuning_.fusion && c.value % 32 == 0;
  for (i32 row = 0; quantise && heads.begin < heads.end && row < count(); ++row) {
    attended_.quantize_part(kernels_, row, heads.begin * c.value, heads.end * c.value);
  }
}

}  // namespace llm
