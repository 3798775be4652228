#include "llm/model/decoder.h"

#include "llm/formats/quant.h"

#include <algorithm>
#include <cstring>

namespace llm {

using base::Status;

Decoder::Decoder(Precision precision, Crew* crew)
    : precision_(precision), crew_(*crew), kernels_(best_kernels()) {}

void Decoder::set_shape(f32 eps, std::vector<f64> rope_frequencies, f64 rope_magnitude) {
  eps_ = eps;
  rope_frequencies_ = std::move(rope_frequencies);
  rope_magnitude_ = rope_magnitude;
}

Status Decoder::load_ends(WeightReader* reader, i32 vocab, i32 hidden) {
  embedding_ =
      TRY(reader->table("token_embd.weight", static_cast<u64>(vocab), static_cast<u64>(hidden)));
  final_norm_ = TRY(reader->vector("output_norm.weight", hidden));
  const bool tied = !reader->has("output.weight");
  head_groups_ = share_of((vocab + 15) / 16, crew_.rank(), crew_.ranks());
  const Share rows = crew_.rank() == 0 ? Share{0, vocab}
                                       : Share{std::min(head_groups_.begin * 16, vocab),
                                               std::min(head_groups_.end * 16, vocab)};
  head_ = TRY(
      reader->part(tied ? "token_embd.weight" : "output.weight", vocab, rows, hidden, {0, hidden}));
  info_.vocab = vocab;
  info_.hidden = hidden;
  info_.parameters = tied ? 0 : embedding_->values();
  return {};
}

// Zeroed floats that every rank sees.
f32* Decoder::visible_floats(u64 count) {
  if (crew_.group() != nullptr) {
    return reinterpret_cast<f32*>(crew_.group()->share(count * sizeof(f32)));
  }
  visible_.emplace_back(count);
  return visible_.back().data();
}

void Decoder::reserve(const Capacity& capacity) {
  capacity_ = capacity;
  const auto rows = static_cast<u64>(capacity.rows);
  const auto hidden = static_cast<u64>(info_.hidden);
  slot_floats_ = static_cast<i64>(rows * hidden);
  slots_ = visible_floats(2 * static_cast<u64>(crew_.ranks()) * rows * hidden);
  logit_stride_ = (info_.vocab + 15) / 16 * 16;
  logits_ = visible_floats(static_cast<u64>(capacity.logit_rows * logit_stride_));
  const auto threads = static_cast<u64>(crew_.ranks()) * static_cast<u64>(crew_.size());
  static_assert(sizeof(Best) == 2 * sizeof(f32));
  best_ =
      reinterpret_cast<Best*>(visible_floats(2 * static_cast<u64>(capacity.logit_rows) * threads));
  x_ = AlignedArray<f32>(rows * hidden);
  for (AlignedArray<f32>& branch : branch_) branch = AlignedArray<f32>(rows * hidden);
  unsent_ = AlignedArray<f32>(rows * hidden);
  received_ = AlignedArray<f32>(rows * hidden);
  normed_ = ActRows(capacity.rows, info_.hidden);
  angles_ = RopeAngles(capacity.rows, rope_frequencies_, rope_magnitude_);
  for (i32 thread = 0; thread < crew_.size(); ++thread) {
    Lane lane;
    lane.x = AlignedArray<f32>(kNarrow * hidden);
    lane.sum = AlignedArray<f32>(2 * hidden);
    lane.normed = ActRows(kNarrow, info_.hidden);
    lanes_.push_back(std::move(lane));
  }
  logit_rows_.resize(static_cast<size_t>(capacity.logit_rows));
  if (!capture_layers_.empty()) capture_inputs(capture_layers_);
  if (keeps_states_) states_ = AlignedArray<f32>(rows * hidden);
  reserve_layers();
}

u8* Decoder::step_memory(u64 bytes) {
  step_memory_ = AlignedBytes(bytes);
  return step_memory_.data();
}

void Decoder::capture_inputs(const std::vector<i32>& layers) {
  capture_layers_ = layers;
  captured_ = AlignedArray<f32>(static_cast<u64>(capacity_.rows) * layers.size() *
                                static_cast<u64>(info_.hidden));
}

const f32* Decoder::captured(i32 row) const {
  return captured_.data() + row * static_cast<i64>(capture_layers_.size()) * info_.hidden;
}

void Decoder::embed(i32 token, f32* out) const {
  dequantize(embedding_->type,
             embedding_->bytes.data() + static_cast<u64>(token) * embedding_->row_bytes(),
             {out, static_cast<size_t>(info_.hidden)});
}

void Decoder::forward(const Step& step) {
  run_pass(step, {0, info_.layers, &final_norm_, &head_});
}

void Decoder::run_pass(const Step& step, const Pass& pass) {
  CHECK(step.count > 0 && step.count <= capacity_.rows);
  step_ = &step;
  pass_ = pass;
  logit_count_ = 0;
  for (i32 i = 0; i < step.count; ++i) {
    if (!step.rows[i].logits) continue;
    CHECK(logit_count_ < capacity_.logit_rows);
    logit_rows_[static_cast<size_t>(logit_count_++)] = i;
  }
  auto body = [this](i32 thread) { run_thread(thread); };
  crew_.run(body);
}

i32 Decoder::argmax(i32 j) const {
  const i64 threads = static_cast<i64>(crew_.ranks()) * crew_.size();
  const Best* from = best_ + j * threads;
  Best top = from[0];
  for (i64 i = 1; i < threads; ++i) {
    if (from[i].value > top.value) top = from[i];
  }
  return top.index;
}

void Decoder::run_thread(i32 thread) {
  start_rows(thread);
  crew_.barrier();
  for (i32 i = pass_.first; i < pass_.end; ++i) {
    capture(i, thread);
    run_layer(i, thread);
  }
  if (keeps_states_ && pass_.first == 0) save_states(thread);
  if (logit_count_ > 0) head_rows(thread);
  crew_.meet();
}

f32* Decoder::residual(i32 row, i32 thread) const {
  const AlignedArray<f32>& x = own_residual() ? lanes_[static_cast<size_t>(thread)].x : x_;
  return x.data() + static_cast<i64>(row) * info_.hidden;
}

void Decoder::start_rows(i32 thread) {
  Lane& lane = lanes_[static_cast<size_t>(thread)];
  lane.sums = 0;
  lane.pending = false;
  const Share mine = rows_of(thread);
  for (i32 row = mine.begin; row < mine.end; ++row) {
    angles_.set(row, step_->rows[row].position);
  }
  start_residual(thread);
}

void Decoder::start_residual(i32 thread) {
  const Share rows = residual_rows(thread);
  for (i32 row = rows.begin; row < rows.end; ++row) {
    embed(step_->rows[row].token, residual(row, thread));
  }
}

void Decoder::save_states(i32 thread) {
  receive(thread);
  const Share rows = rows_of(thread);
  for (i32 row = rows.begin; row < rows.end; ++row) {
    kernels_.rms_norm(residual(row, thread), final_norm_.data(), eps_, info_.hidden,
                      states_.data() + static_cast<i64>(row) * info_.hidden);
  }
}

void Decoder::capture(i32 index, i32 thread) {
  const auto found = std::find(capture_layers_.begin(), capture_layers_.end(), index);
  if (found == capture_layers_.end()) return;
  receive(thread);
  const i64 place = found - capture_layers_.begin();
  const Share rows = rows_of(thread);
  for (i32 row = rows.begin; row < rows.end; ++row) {
    std::memcpy(const_cast<f32*>(captured(row)) + place * info_.hidden, residual(row, thread),
                sizeof(f32) * static_cast<size_t>(info_.hidden));
  }
}

f32* Decoder::slot(i32 rank, u32 which) const {
  return slots_ + (static_cast<i64>(which % 2) * crew_.ranks() + rank) * slot_floats_;
}

Share Decoder::columns_of(i32 thread) const {
  const Share groups = share_of((info_.hidden + 15) / 16, thread, crew_.size());
  return {std::min(groups.begin * 16, info_.hidden), std::min(groups.end * 16, info_.hidden)};
}

void Decoder::add_product(const PackedMatrix& m, const Leaves& cols, const ActRows& x, i32 thread) {
  const Share mine = columns_of(thread);
  const i32 first = cols.of_rank(crew_.rank(), crew_.ranks()).begin;
  add_sum(mine, thread, [&](i32 i, f32* out) {
    const Share leaf = cols.leaf(i);
    const Share groups{mine.begin / 16, (mine.end + 15) / 16};
    if (groups.begin == groups.end) return;
    if (leaf.begin == leaf.end) {
      for (i32 row = 0; row < count(); ++row) {
        std::fill(out + static_cast<i64>(row) * info_.hidden + mine.begin,
                  out + static_cast<i64>(row) * info_.hidden + mine.end, 0.0f);
      }
      return;
    }
    kernels_.gemm(m.columns(leaf.begin - first, leaf.end - first), groups.begin, groups.end,
                  x.view_columns(leaf.begin - first), count(), out, info_.hidden);
  });
}

// This rank's partial sum is complete.
void Decoder::hand_over(Lane* lane, i32 thread) {
  if (!tuning_.comm && crew_.ranks() > 1) {
    crew_.barrier();
    const Share part = share_of(count() * info_.hidden, thread, crew_.size());
    std::memcpy(slot(crew_.rank(), lane->sums) + part.begin, unsent_.data() + part.begin,
                sizeof(f32) * static_cast<size_t>(part.end - part.begin));
  }
  crew_.meet();
  ++lane->sums;
  lane->pending = true;
}

void Decoder::find_partials(u32 which, const f32** slots) const {
  for (i32 rank = 0; rank < crew_.ranks(); ++rank) slots[rank] = slot(rank, which);
}

// into += (s0 + s1) + (s2 + s3), with three ranks (s0 + s1) + s2.
void Decoder::add_partials(const f32* const* slots, i64 from, i32 n, Lane* lane, f32* into) const {
  const i32 ranks = crew_.ranks();
  if (ranks == 1) {
    kernels_.add(slots[0] + from, n, into);
    return;
  }
  const auto bytes = sizeof(f32) * static_cast<size_t>(n);
  f32* sum = lane->sum.data();
  std::memcpy(sum, slots[0] + from, bytes);
  kernels_.add(slots[1] + from, n, sum);
  if (ranks == 3) kernels_.add(slots[2] + from, n, sum);
  if (ranks == 4) {
    f32* other = sum + info_.hidden;
    std::memcpy(other, slots[2] + from, bytes);
    kernels_.add(slots[3] + from, n, other);
    kernels_.add(other, n, sum);
  }
  kernels_.add(sum, n, into);
}

// The last sum arrives in the rows of the residual that this thread reads.
void Decoder::receive(i32 thread) {
  Lane& lane = lanes_[static_cast<size_t>(thread)];
  if (!lane.pending) return;
  lane.pending = false;
  if (!tuning_.comm) return receive_apart(thread);
  const f32* slots[RankGroup::kRanksMax];
  find_partials(lane.sums - 1, slots);
  const Share rows = residual_rows(thread);
  for (i32 row = rows.begin; row < rows.end; ++row) {
    add_partials(slots, static_cast<i64>(row) * info_.hidden, info_.hidden, &lane,
                 residual(row, thread));
  }
  barrier_unless_fused();
}

// The same by an all-reduce of its own and an addition of its own.
void Decoder::receive_apart(i32 thread) {
  Lane& lane = lanes_[static_cast<size_t>(thread)];
  const f32* from = unsent_.data();
  if (crew_.ranks() > 1) {
    const f32* slots[RankGroup::kRanksMax];
    find_partials(lane.sums - 1, slots);
    const Share cols = columns_of(thread);
    for (i32 row = 0; row < count() && cols.begin < cols.end; ++row) {
      const i64 at = static_cast<i64>(row) * info_.hidden + cols.begin;
      f32* into = received_.data() + at;
      std::fill(into, into + (cols.end - cols.begin), -0.0f);
      add_partials(slots, at, cols.end - cols.begin, &lane, into);
    }
    crew_.barrier();
    from = received_.data();
  }
  const Share rows = rows_of(thread);
  for (i32 row = rows.begin; row < rows.end; ++row) {
    kernels_.add(from + static_cast<i64>(row) * info_.hidden, info_.hidden, residual(row, thread));
  }
  crew_.barrier();
}

const ActRows& Decoder::normed(const std::vector<f32>& weight, bool quantise, i32 thread) {
  receive(thread);
  const bool alone = own_residual();
  const ActRows& out = alone ? lanes_[static_cast<size_t>(thread)].normed : normed_;
  const Share rows = alone ? Share{0, count()} : rows_of(thread);
  for (i32 row = rows.begin; row < rows.end; ++row) {
    kernels_.rms_norm(residual(row, thread), weight.data(), eps_, info_.hidden, out.row(row));
  }
  barrier_unless_fused();
  if (quantise) out.quantize(kernels_, rows.begin, rows.end);
  if (!alone) crew_.barrier();
  return out;
}

void Decoder::head_rows(i32 thread) {
  const i32 threads = crew_.size();
  receive(thread);
  const bool alone = own_residual() && logit_count_ <= kNarrow;
  // A row of a wide step has just been brought up to date by another thread.
  if (!own_residual()) crew_.barrier();
  const ActRows& x = alone ? lanes_[static_cast<size_t>(thread)].normed : normed_;
  if (thread == 0) head_alone_ = alone;
  const PackedMatrix& head = *pass_.head;
  const Share mine = alone ? Share{0, logit_count_} : share_of(logit_count_, thread, threads);
  for (i32 j = mine.begin; j < mine.end; ++j) {
    kernels_.rms_norm(residual(logit_rows_[static_cast<size_t>(j)], thread), pass_.norm->data(),
                      eps_, info_.hidden, x.row(j));
  }
  barrier_unless_fused();
  if (head.quantised()) x.quantize(kernels_, mine.begin, mine.end);
  if (!alone) crew_.barrier();
  const i32 first = crew_.rank() == 0 ? 0 : head_groups_.begin;  // of the groups held here
  const Share part = share_of(head_groups_.end - head_groups_.begin, thread, threads);
  const Share groups{head_groups_.begin + part.begin, head_groups_.begin + part.end};
  if (groups.begin < groups.end) {
    kernels_.gemm(head.view(), groups.begin - first, groups.end - first, x.view(), logit_count_,
                  logits_ + first * 16, logit_stride_);
  }
  barrier_unless_fused();
  const i64 all = static_cast<i64>(crew_.ranks()) * threads;
  for (i32 j = 0; j < logit_count_; ++j) {
    best_[j * all + crew_.rank() * threads + thread] =
        best_of(kernels_, logits_ + j * logit_stride_, std::min(groups.begin * 16, info_.vocab),
                std::min(groups.end * 16, info_.vocab));
  }
}

}  // namespace llm
