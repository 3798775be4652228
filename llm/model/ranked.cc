#include "llm/model/ranked.h"

#include <algorithm>
#include <cstring>

namespace llm {

namespace {

enum class Call : i32 { kReserve, kTuning, kForward };

// The group's memory lies at the same address in every rank, so pointers into it can be sent.
struct Message {
  Call call;
  Capacity capacity;
  StepTuning tuning;
  Step step;
};
static_assert(sizeof(Message) <= RankGroup::kMessageBytes);

void tell(RankGroup* group, const Message& message) {
  group->send(&message, sizeof(message));
}

}  // namespace

RankedModel::RankedModel(std::unique_ptr<Model> own, RankGroup* group)
    : own_(std::move(own)), group_(*group) {}

void RankedModel::reserve(const Capacity& capacity) {
  tell(&group_, {Call::kReserve, capacity, {}, {}});
  own_->reserve(capacity);
  group_.meet();
}

void RankedModel::set_tuning(const StepTuning& tuning) {
  tell(&group_, {Call::kTuning, {}, tuning, {}});
  own_->set_tuning(tuning);
  group_.meet();
}

const void* RankedModel::visible(const void* from, u64 bytes, u8** copy, u64* room) {
  if (group_.owns(from)) return from;
  if (bytes > *room) {
    *room = bytes * 2;
    *copy = group_.share_alone(*room);
  }
  std::memcpy(*copy, from, bytes);
  return *copy;
}

void RankedModel::forward(const Step& step) {
  i32 slots = 0;
  for (i32 i = 0; i < step.count; ++i) slots = std::max(slots, step.rows[i].slot + 1);
  Step seen = step;
  seen.rows = static_cast<const BatchRow*>(visible(
      step.rows, static_cast<u64>(step.count) * sizeof(BatchRow), &rows_copy_, &rows_room_));
  seen.page_table = static_cast<const i32*>(
      visible(step.page_table, static_cast<u64>(slots * step.pages_per_slot) * sizeof(i32),
              &table_copy_, &table_room_));
  tell(&group_, {Call::kForward, {}, {}, seen});
  own_->forward(seen);  // ends with a meeting
}

void follow_rank_zero(Model* part, RankGroup* group) {
  Message message;
  while (group->receive(&message, sizeof(message))) {
    switch (message.call) {
      case Call::kReserve:
        part->reserve(message.capacity);
        group->meet();
        break;
      case Call::kTuning:
        part->set_tuning(message.tuning);
        group->meet();
        break;
      case Call::kForward:
        part->forward(message.step);
        break;
    }
  }
}

}  // namespace llm
