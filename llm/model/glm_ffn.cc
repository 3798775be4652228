// The feed-forwards of glm.h: dense, or a mixture of experts.
#include "llm/model/glm.h"

#include <algorithm>
#include <cmath>

namespace llm {

namespace {

// A router of up to this many weights is worth computing on every thread to save a barrier.
constexpr i64 kSmallRouter = 1 << 14;

}  // namespace

// silu(gate x) * up x into rows [out_row, out_row + rows) of out: this thread's units of 32
// columns.
void GlmModel::gated(const Ffn& ffn, const ActView& x, i32 rows, const ActRows& out, i32 out_row,
                     i32 thread) {
  const i32 width = ffn.gate.rows();
  const Share units = share_of((width + 31) / 32, thread, crew_.size());
  const bool idle = units.begin == units.end || rows == 0;
  const i32 last_group = std::min(units.end * 2, ffn.gate.groups());
  const i32 from = units.begin * 32;
  const i32 to = std::min(units.end * 32, width);
  const i64 stride = (units.end - units.begin) * 32;
  f32* gate = scratch(thread).gate.data();
  f32* up = scratch(thread).up.data();
  if (!idle) {
    kernels_.gemm(ffn.gate.view(), units.begin * 2, last_group, x, rows, gate - from, stride);
  }
  barrier_unless_fused();
  if (!idle) {
    kernels_.gemm(ffn.up.view(), units.begin * 2, last_group, x, rows, up - from, stride);
  }
  barrier_unless_fused();
  for (i32 row = 0; !idle && row < rows; ++row) {
    kernels_.silu_mul(gate + row * stride, up + row * stride, to - from,
                      out.row(out_row + row) + from);
  }
  barrier_unless_fused();
  for (i32 row = 0; !idle && ffn.down.quantised() && row < rows; ++row) {
    out.quantize_part(kernels_, out_row + row, from, units.end * 32);
  }
}

// The experts of a row: best sigmoid + bias, weighted by the sigmoid alone.
void GlmModel::choose_experts(const Layer& layer, const Routing& routing, i32 row) const {
  const GlmConfig& c = config_;
  f32* scores = routing.logits.data() + static_cast<i64>(row) * c.experts;
  i32* chosen = routing.expert.data() + static_cast<i64>(row) * c.experts_used;
  f32* weights = routing.weight.data() + static_cast<i64>(row) * c.experts_used;
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

// The choice for all rows, where this thread may read it.
const GlmModel::Routing& GlmModel::route(const Layer& layer, const ActRows& x, i32 thread) {
  const GlmConfig& c = config_;
  const bool alone = narrow() && static_cast<i64>(c.experts) * c.hidden <= kSmallRouter;
  const Routing& routing = alone ? scratch(thread).routing : routing_;
  if (alone) {
    kernels_.gemm(layer.router.view(), 0, layer.router.groups(), x.view(), count(),
                  routing.logits.data(), c.experts);
  } else {
    multiply_share(kernels_, layer.router, x.view(), count(), routing.logits.data(), c.experts,
                   thread, crew_.size());
    crew_.barrier();
  }
  const Share rows = alone ? Share{0, count()} : rows_of(thread);
  for (i32 row = rows.begin; row < rows.end; ++row) choose_experts(layer, routing, row);
  if (!alone) crew_.barrier();
  return routing;
}

// Gives every pair of a row and an expert a place, so that the pairs of one expert are neighbours.
void GlmModel::order_by_expert(const Routing& routing, i32 thread) {
  const GlmConfig& c = config_;
  const Scratch& s = scratch(thread);
  const i32 pairs = count() * c.experts_used;
  const i32* expert = routing.expert.data();
  i32* begin = s.expert_begin.data();
  std::fill(begin, begin + c.experts + 1, 0);
  for (i32 p = 0; p < pairs; ++p) ++begin[expert[p] + 1];
  for (i32 e = 0; e < c.experts; ++e) begin[e + 1] += begin[e];
  std::copy(begin, begin + c.experts, s.expert_fill.data());
  for (i32 p = 0; p < pairs; ++p) {
    const i32 place = s.expert_fill[static_cast<u64>(expert[p])]++;
    s.pair_place[static_cast<u64>(p)] = place;
    s.place_row[static_cast<u64>(place)] = p / c.experts_used;
  }
}

void GlmModel::sparse_ffn(const Layer& layer, const ActRows& x, i32 thread) {
  const Routing& routing = route(layer, x, thread);
  order_by_expert(routing, thread);
  const Scratch& s = scratch(thread);
  for (i32 e = experts_.begin; e < experts_.end; ++e) {
    const i32 begin = s.expert_begin[static_cast<u64>(e)];
    const i32 many = s.expert_begin[static_cast<u64>(e + 1)] - begin;
    if (many == 0) continue;
    ActView rows = x.view();
    rows.order = s.place_row.data() + begin;
    gated(layer.experts[static_cast<size_t>(e - experts_.begin)], rows, many, expert_hidden_, begin,
          thread);
  }
  if (!layer.shared.empty()) gated(layer.shared, x.view(), count(), shared_hidden_, 0, thread);
  crew_.barrier();
  add_experts(layer, routing, thread);
}

void GlmModel::add_experts(const Layer& layer, const Routing& routing, i32 thread) {
  const GlmConfig& c = config_;
  const Scratch& s = scratch(thread);
  const Share cols = columns_of(thread);
  const Share groups{cols.begin / 16, (cols.end + 15) / 16};
  for (i32 e = experts_.begin; e < experts_.end; ++e) {
    const i32 begin = s.expert_begin[static_cast<u64>(e)];
    const i32 many = s.expert_begin[static_cast<u64>(e + 1)] - begin;
    if (many == 0) continue;
    if (groups.begin < groups.end) {
      kernels_.gemm(layer.experts[static_cast<size_t>(e - experts_.begin)].down.view(),
                    groups.begin, groups.end, expert_hidden_.view_from(begin), many,
                    expert_out_.data() + static_cast<i64>(begin) * c.hidden, c.hidden);
    }
    barrier_unless_fused();
  }
  add_sum(cols, thread,
          [&](i32 leaf, f32* out) { expert_leaf(layer, routing, leaf, thread, out); });
}

// Of the experts and the shared columns that belong to a leaf.
void GlmModel::expert_leaf(const Layer& layer, const Routing& routing, i32 leaf, i32 thread,
                           f32* out) {
  const GlmConfig& c = config_;
  const Share cols = columns_of(thread);
  const i32 width = cols.end - cols.begin;
  if (width == 0) return;
  const Share experts = expert_leaves_.leaf(leaf);
  for (i32 row = 0; row < count(); ++row) {
    f32* sum = out + static_cast<i64>(row) * c.hidden + cols.begin;
    std::fill(sum, sum + width, 0.0f);
    for (i32 n = 0; n < c.experts_used; ++n) {
      const auto pair = static_cast<u64>(row * c.experts_used + n);
      const i32 e = routing.expert[pair];
      if (e < experts.begin || e >= experts.end) continue;
      const i64 place = scratch(thread).pair_place[pair];
      kernels_.add_scaled(expert_out_.data() + place * c.hidden + cols.begin, routing.weight[pair],
                          width, sum);
    }
  }
  const Share columns = shared_columns_.leaf(leaf);
  if (layer.shared.empty() || columns.begin == columns.end) return;
  const i32 first = columns.begin - shared_.begin;
  kernels_.gemm(layer.shared.down.columns(first, columns.end - shared_.begin), cols.begin / 16,
                (cols.end + 15) / 16, shared_hidden_.view_columns(first), count(),
                shared_out_.data(), c.hidden);
  for (i32 row = 0; row < count(); ++row) {
    const i64 at = static_cast<i64>(row) * c.hidden + cols.begin;
    kernels_.add(shared_out_.data() + at, width, out + at);
  }
}

}  // namespace llm
