#include "llm/speculation/mtp.h"

#include <algorithm>
#include <cstring>

namespace llm {

base::Result<std::unique_ptr<MtpDrafter>> MtpDrafter::load(const TensorSource& source,
                                                           GlmModel* target) {
  TRY(target->enable_mtp(source));
  return std::unique_ptr<MtpDrafter>(new MtpDrafter(target));
}

void MtpDrafter::reserve(const Capacity& capacity, i32 slots) {
  CHECK(slots <= GlmModel::kMtpSpare);
  rows_max_ = capacity.rows;
  recent_.assign(static_cast<size_t>(slots), {});
  const auto hidden = static_cast<u64>(target_.info().hidden);
  states_ = AlignedArray<f32>(static_cast<u64>(slots) * kKept * hidden);
  previous_ = AlignedArray<f32>(static_cast<u64>(slots) * hidden);
  const i32 pages = (capacity.context + kPageTokens - 1) / kPageTokens + 1;
  table_.resize(static_cast<size_t>(slots * pages));
  rows_.reserve(static_cast<size_t>(rows_max_));
  row_states_.reserve(static_cast<size_t>(rows_max_));
}

void MtpDrafter::add_row(i32 token, i32 position, i32 slot, bool logits, const f32* state) {
  rows_.push_back({token, position, slot, logits});
  row_states_.push_back(state);
}

void MtpDrafter::run(const i32* table, i32 pages_per_slot) {
  if (rows_.empty()) return;
  target_.forward_mtp({rows_.data(), static_cast<i32>(rows_.size()), table, pages_per_slot},
                      row_states_.data());
}

// Row i is paired with the token of row i + 1. The first row of a slot completes the last pair of
// its step before.
void MtpDrafter::observe(const Step& step) {
  rows_.clear();
  row_states_.clear();
  for (i32 i = 0; i < step.count; ++i) {
    const BatchRow& row = step.rows[i];
    if (i > 0 && step.rows[i - 1].slot == row.slot) {
      add_row(row.token, row.position - 1, row.slot, false, target_.state(i - 1));
      continue;
    }
    const Recent& recent = recent_[static_cast<size_t>(row.slot)];
    if (!recent.paired && recent.count > 0 && row.position == recent.first + recent.count) {
      add_row(row.token, row.position - 1, row.slot, false, kept(row.slot, recent.count - 1));
    }
  }
  run(step.page_table, step.pages_per_slot);
  for (i32 begin = 0; begin < step.count;) {
    i32 end = begin + 1;
    while (end < step.count && step.rows[end].slot == step.rows[begin].slot) ++end;
    keep(step, begin, end);
    begin = end;
  }
}

void MtpDrafter::keep(const Step& step, i32 begin, i32 end) {
  begin = std::max(begin, end - kKept);
  const i32 slot = step.rows[begin].slot;
  recent_[static_cast<size_t>(slot)] = {step.rows[begin].position, end - begin, false};
  for (i32 i = begin; i < end; ++i) {
    std::memcpy(kept(slot, i - begin), target_.state(i),
                sizeof(f32) * static_cast<size_t>(target_.info().hidden));
  }
}

const f32* MtpDrafter::state_of(const DraftTask& task) {
  const Recent& recent = recent_[static_cast<size_t>(task.slot)];
  const i32 at = static_cast<i32>(task.history.size()) - 2 - recent.first;
  return at >= 0 && at < recent.count ? kept(task.slot, at) : nullptr;
}

void MtpDrafter::propose(std::span<DraftTask> tasks, const i32* table, i32 pages_per_slot) {
  const i32 stride = pages_per_slot + 1;
  CHECK(static_cast<size_t>(stride) * recent_.size() <= table_.size());
  const auto state_bytes = sizeof(f32) * static_cast<size_t>(target_.info().hidden);
  for (DraftTask& task : tasks) {
    task.count = 0;
    const f32* state = state_of(task);
    if (state == nullptr) continue;
    recent_[static_cast<size_t>(task.slot)].paired = true;
    // The page of the last token is this slot's alone, it is not full; what lies beyond is spare.
    const auto pages = (task.history.size() - 1) / kPageTokens + 1;
    i32* own = table_.data() + static_cast<i64>(task.slot) * stride;
    std::copy_n(table + static_cast<i64>(task.slot) * pages_per_slot, pages, own);
    own[pages] = target_.spare_page(task.slot);
    std::memcpy(previous_.data() + static_cast<i64>(task.slot) * target_.info().hidden, state,
                state_bytes);
  }
  for (i32 n = 0; n < kLongest; ++n) {
    rows_.clear();
    row_states_.clear();
    for (const DraftTask& task : tasks) {
      if (n >= task.limit || state_of(task) == nullptr) continue;
      const i32 position = static_cast<i32>(task.history.size()) - 2 + n;
      add_row(n == 0 ? task.history.back() : task.tokens[n - 1], position, task.slot, true,
              previous_.data() + static_cast<i64>(task.slot) * target_.info().hidden);
    }
    run(table_.data(), stride);
    guess(tasks, n);
  }
}

// Row j of the last pass belongs to the task of its slot.
void MtpDrafter::guess(std::span<DraftTask> tasks, i32 n) {
  for (size_t j = 0; j < rows_.size(); ++j) {
    const auto of_slot = [&](const DraftTask& task) { return task.slot == rows_[j].slot; };
    DraftTask& task = *std::find_if(tasks.begin(), tasks.end(), of_slot);
    const i64 position = static_cast<i64>(task.history.size()) + n;
    task.tokens[n] =
        sampler_.sample(target_.logits(static_cast<i32>(j)), *task.sampling, position, {}, {});
    task.count = n + 1;
    std::memcpy(previous_.data() + static_cast<i64>(task.slot) * target_.info().hidden,
                target_.mtp_state(static_cast<i32>(j)),
                sizeof(f32) * static_cast<size_t>(target_.info().hidden));
  }
}

}  // namespace llm
