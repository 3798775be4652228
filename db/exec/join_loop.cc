// Nested loops over the levels of a JoinPlan, with LEFT, RIGHT and FULL joins; one level alone.
#include "db/exec/eval.h"
#include "db/exec/level_run.h"
#include "db/exec/table_cursor.h"

namespace db {
namespace {

// One table, virtual table or subquery, which no outer join concerns.
class SingleLevel : public SlotStream {
 public:
  SingleLevel(const JoinPlan& plan, Cx& cx)
      : plan_(plan), level_(*plan.levels[0]), run_(level_, true, cx) {}

  void open(Cx& cx) override {
    done_ = !eval_all(plan_.constant_filters, cx);
    begun_ = false;
  }

  bool next(Cx& cx) override {
    while (!done_ && !cx.failed()) {
      const bool found = begun_ ? run_.advance(cx) : run_.start(cx);
      begun_ = true;
      done_ = !found || (level_.path->one_row && level_.path->kind != PathKind::kVirtual);
      if (found && !cx.failed() && eval_all(level_.on, cx) && eval_all(level_.filters, cx))
        return !cx.failed();
    }
    return false;
  }

  void close(Cx& cx) override { run_.close(cx); }

 private:
  const JoinPlan& plan_;
  const JoinLevel& level_;
  LevelRun run_;
  bool begun_ = false;
  bool done_ = false;
};

class JoinLoop : public SlotStream {
 public:
  JoinLoop(const JoinPlan& plan, Cx& cx) : plan_(plan) {
    bool first = true;
    for (const JoinLevel* level : plan.levels) {
      runs_.push_back(std::make_unique<LevelRun>(*level, first, cx));
      first = false;
    }
  }

  void open(Cx& cx) override {
    done_ = !eval_all(plan_.constant_filters, cx);
    begun_ = false;
    right_phase_ = -1;
    base_ = 0;
    for (auto& run : runs_) {
      run->active = false;
      Slot& slot = run->slot(cx);
      slot.null_row = false;
    }
  }

  bool next(Cx& cx) override {
    if (done_ || cx.failed()) return false;
    if (runs_.empty()) {
      done_ = true;
      return true;
    }
    int last = static_cast<int>(runs_.size()) - 1;
    if (begun_) {
      if (loop(last, cx)) return true;
    } else {
      begun_ = true;
      if (loop(0, cx)) return true;
    }
    while (!cx.failed() && next_right_phase(cx)) {
      if (right_rows(cx)) return true;
    }
    done_ = true;
    return false;
  }

  void close(Cx& cx) override {
    for (auto& run : runs_) run->close(cx);
    done_ = true;
  }

 private:
  // Works on from `level`; true when all levels are on a row.
  bool loop(int level, Cx& cx) {
    int last = static_cast<int>(runs_.size()) - 1;
    while (level >= base_) {
      LevelRun& run = *runs_[static_cast<size_t>(level)];
      if (right_phase_ >= 0 && level == base_) return right_rows(cx);
      if (!step(run, cx)) {
        if (cx.failed()) return false;
        run.active = false;
        --level;
        continue;
      }
      if (level == last) return true;
      ++level;
      runs_[static_cast<size_t>(level)]->active = false;
    }
    return false;
  }

  // The level's next row that passes, or the NULL row of a LEFT JOIN.
  bool step(LevelRun& run, Cx& cx) {
    const JoinLevel& level = run.level();
    for (;;) {
      bool found = false;
      if (!run.active) {
        run.active = true;
        run.matched = false;
        run.null_given = false;
        run.slot(cx).null_row = false;
        found = run.start(cx);
      } else if (run.null_given) {
        run.slot(cx).null_row = false;
        return false;
      } else {
        found = run.advance(cx);
      }
      if (cx.failed()) return false;
      if (!found) {
        if (!level.left || run.matched) return false;
        run.null_given = true;
        run.slot(cx).null_row = true;
        if (eval_all(level.filters, cx)) return !cx.failed();
        if (cx.failed()) return false;
        continue;
      }
      if (!level.on.empty() && !eval_all(level.on, cx)) {
        if (cx.failed()) return false;
        continue;
      }
      run.matched = true;
      if (level.right) run.note_match();
      if (eval_all(level.filters, cx)) return !cx.failed();
      if (cx.failed()) return false;
    }
  }

  bool next_right_phase(Cx& cx) {
    for (int level = right_phase_ + 1; level < static_cast<int>(runs_.size()); ++level) {
      if (!runs_[static_cast<size_t>(level)]->level().right) continue;
      right_phase_ = level;
      base_ = level;
      runs_[static_cast<size_t>(level)]->begin_unmatched();
      for (int i = 0; i < level; ++i) runs_[static_cast<size_t>(i)]->slot(cx).null_row = true;
      return true;
    }
    return false;
  }

  bool right_rows(Cx& cx) {
    LevelRun& run = *runs_[static_cast<size_t>(base_)];
    int last = static_cast<int>(runs_.size()) - 1;
    while (run.next_unmatched(cx)) {
      if (!eval_all(run.level().filters, cx)) {
        if (cx.failed()) return false;
        continue;
      }
      if (base_ == last) return true;
      runs_[static_cast<size_t>(base_) + 1]->active = false;
      int level = base_ + 1;
      while (level > base_) {
        LevelRun& inner = *runs_[static_cast<size_t>(level)];
        if (!step(inner, cx)) {
          if (cx.failed()) return false;
          inner.active = false;
          --level;
          continue;
        }
        if (level == last) return true;
        ++level;
        runs_[static_cast<size_t>(level)]->active = false;
      }
    }
    return false;
  }

  const JoinPlan& plan_;
  std::vector<std::unique_ptr<LevelRun>> runs_;
  bool done_ = false;
  bool begun_ = false;
  int right_phase_ = -1;
  int base_ = 0;
};

}  // namespace

std::unique_ptr<SlotStream> make_join(const JoinPlan& plan, Cx& cx) {
  if (plan.levels.size() == 1 && !plan.levels[0]->left && !plan.levels[0]->right)
    return std::make_unique<SingleLevel>(plan, cx);
  return std::make_unique<JoinLoop>(plan, cx);
}

}  // namespace db
