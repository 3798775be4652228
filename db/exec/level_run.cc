// Table access: scans, rowid and index seeks, unions for OR.
#include "db/exec/level_run.h"

#include "db/exec/eval.h"
#include "db/exec/join_hash.h"
#include "db/exec/subquery.h"

#include <algorithm>
#include <cmath>

namespace db {

LevelRun::LevelRun(const JoinLevel& level, bool first, Cx&) : level_(level), first_(first) {
  seeker_.path = level.path;
  for (const AccessPath* branch : level.path->branches) {
    branches_.emplace_back();
    branches_.back().path = branch;
  }
}

LevelRun::~LevelRun() = default;

void LevelRun::close(Cx& cx) {
  cursor_.close();
  for (Value& value : seeker_.key) value.set_null();
  if (stream_ != nullptr) stream_->close(cx);
  rows_ = nullptr;
  if (!level_.path->kept) drop_hash();
  virtual_.reset();
  active = false;
}

void LevelRun::show(Value* row, Cx& cx) {
  Slot& at = slot(cx);
  at.row = row;
  at.map = nullptr;
  at.null_row = false;
}

bool LevelRun::start(Cx& cx) {
  switch (level_.path->kind) {
    case PathKind::kRows:
      return start_rows(cx);
    case PathKind::kHash:
      return start_hash(cx);
    case PathKind::kVirtual:
      return start_virtual(cx);
    default:
      return start_table(cx);
  }
}

bool LevelRun::advance(Cx& cx) {
  switch (level_.path->kind) {
    case PathKind::kRows:
      return advance_rows(cx);
    case PathKind::kHash:
      return advance_hash(cx);
    case PathKind::kVirtual: {
      Status moved = virtual_->next();
      if (!moved.ok()) {
        cx.fail(moved.error());
        return false;
      }
      return load_virtual_row(cx);
    }
    case PathKind::kMultiOr:
      return advance_or(cx);
    default:
      return seek_next(seeker_, cx);
  }
}

bool LevelRun::start_table(Cx& cx) {
  const SourcePlan& source = *level_.source;
  const AccessPath& path = *level_.path;
  if (path.kind == PathKind::kMultiOr) {
    seen_rowids_.clear();
    branch_ = 0;
    for (Seeker& one : branches_) one.started = false;
  } else if (!cursor_.open(cx, *source.table, source.database, path.index)) {
    return false;
  }
  Slot& at = slot(cx);
  at.cursor = &cursor_;
  at.row = nullptr;
  at.null_row = false;
  return path.kind == PathKind::kMultiOr ? advance_or(cx) : seek_start(seeker_, cx);
}

bool LevelRun::advance_or(Cx& cx) {
  const SourcePlan& source = *level_.source;
  for (; branch_ < branches_.size(); ++branch_) {
    Seeker& seeker = branches_[branch_];
    bool found = false;
    if (!seeker.started) {
      if (!cursor_.open(cx, *source.table, source.database, seeker.path->index)) return false;
      found = seek_start(seeker, cx);
      seeker.started = true;
    } else {
      found = seek_next(seeker, cx);
    }
    while (found && !seen_rowids_.insert(cursor_.rowid()).second) found = seek_next(seeker, cx);
    if (cx.failed()) return false;
    if (found) return true;
  }
  return false;
}

bool LevelRun::hit(Hit hit, Cx& cx) {
  if (hit == Hit::kRow) {
    cursor_.moved();
    return true;
  }
  if (hit == Hit::kError) cx.fail(cursor_.drive().error());
  return false;
}

bool LevelRun::seek_start(Seeker& seeker, Cx& cx) {
  const AccessPath& path = *seeker.path;
  if (path.kind == PathKind::kScan) {
    ++cx.full_scan_steps;
    return hit(path.reverse ? cursor_.drive().last() : cursor_.drive().first(), cx);
  }
  if (path.kind == PathKind::kRowidRange) return position_rowid_range(seeker, cx);
  if (path.kind == PathKind::kRowidEqual && !path.lookups[0].is_in) return seek_rowid(seeker, cx);
  if (!prepare_choices(seeker, cx)) return false;
  return position(seeker, cx);
}

bool LevelRun::seek_next(Seeker& seeker, Cx& cx) {
  const AccessPath& path = *seeker.path;
  if (path.one_row) return false;
  if (!cx.tick()) return false;
  if (path.kind == PathKind::kScan) {
    if (!path.reverse) {
      ++cx.full_scan_steps;
      return hit(cursor_.drive().next(), cx);
    }
    return hit(cursor_.drive().previous(), cx);
  }
  if (path.kind == PathKind::kRowidEqual)
    return !seeker.choices.empty() && next_choice(seeker) && position(seeker, cx);
  if (move(seeker, cx, !path.reverse)) return true;
  if (cx.failed() || path.kind == PathKind::kRowidRange) return false;
  return next_choice(seeker) && position(seeker, cx);
}

// Moves on and checks that the row still belongs to the range.
bool LevelRun::move(Seeker& seeker, Cx& cx, bool forward) {
  return hit(forward ? cursor_.drive().next() : cursor_.drive().previous(), cx) &&
         within(seeker, cx);
}

bool LevelRun::prepare_choices(Seeker& seeker, Cx& cx) {
  const AccessPath& path = *seeker.path;
  size_t count = path.lookups.size();
  seeker.key.resize(count);
  bool any_in = false;
  for (const Lookup& lookup : path.lookups) any_in |= lookup.is_in;
  seeker.choices.resize(any_in ? count : 0);
  seeker.chosen.assign(any_in ? count : 0, 0);
  for (size_t i = 0; i < count; ++i) {
    const Lookup& lookup = path.lookups[i];
    if (!any_in) {
      // One key and no more: no lists to walk.
      Value& value = seeker.key[i];
      eval(lookup.value, cx, value);
      if (cx.failed()) return false;
      if (value.is_null() && !lookup.is_null_safe) return false;
      apply_comparison_affinity_one(lookup.affinity, value);
      value.keep();
      continue;
    }
    std::vector<Value>& choices = seeker.choices[i];
    choices.clear();
    if (!lookup.is_in) {
      Value value;
      eval(lookup.value, cx, value);
      if (cx.failed()) return false;
      if (value.is_null() && !lookup.is_null_safe) return false;
      apply_comparison_affinity_one(lookup.affinity, value);
      value.keep();
      choices.push_back(std::move(value));
      continue;
    }
    if (lookup.value->op == Op::kInSelect) {
      ValueSet* set = in_select_values(lookup.value, cx);
      if (set == nullptr) return false;
      for (size_t r = 0; r < set->size(); ++r) choices.push_back(*set->row(r));
    } else {
      for (const Expr* item : lookup.value->args) {
        Value value;
        eval(item, cx, value);
        if (value.is_null()) continue;
        apply_comparison_affinity_one(lookup.affinity, value);
        value.keep();
        choices.push_back(std::move(value));
      }
    }
    if (cx.failed()) return false;
    auto less = [&](const Value& a, const Value& b) { return compare(a, b, lookup.collation) < 0; };
    auto equal = [&](const Value& a, const Value& b) {
      return compare(a, b, lookup.collation) == 0;
    };
    std::sort(choices.begin(), choices.end(), less);
    choices.erase(std::unique(choices.begin(), choices.end(), equal), choices.end());
    if (path.reverse) std::reverse(choices.begin(), choices.end());
    if (choices.empty()) return false;
  }
  if (any_in)
    for (size_t i = 0; i < count; ++i) seeker.key[i] = seeker.choices[i][0];
  seeker.first = {};
  if (count == 1 && path.kind == PathKind::kIndexSeek)
    seeker.first = FirstColumn(seeker.key, cursor_.key_info(), 0);
  return prepare_range(seeker, cx);
}

bool LevelRun::prepare_range(Seeker& seeker, Cx& cx) {
  const AccessPath& path = *seeker.path;
  seeker.has_low = seeker.has_high = false;
  if (path.low.value != nullptr) {
    eval(path.low.value, cx, seeker.low);
    if (seeker.low.is_null()) return false;
    apply_comparison_affinity_one(path.range_affinity, seeker.low);
    seeker.low.keep();
    seeker.has_low = true;
  }
  if (path.high.value != nullptr) {
    eval(path.high.value, cx, seeker.high);
    if (seeker.high.is_null()) return false;
    apply_comparison_affinity_one(path.range_affinity, seeker.high);
    seeker.high.keep();
    seeker.has_high = true;
  }
  return !cx.failed();
}

bool LevelRun::next_choice(Seeker& seeker) {
  for (size_t i = seeker.choices.size(); i-- > 0;) {
    if (++seeker.chosen[i] < seeker.choices[i].size()) {
      seeker.key[i] = seeker.choices[i][seeker.chosen[i]];
      seeker.first = {};
      return true;
    }
    seeker.chosen[i] = 0;
    seeker.key[i] = seeker.choices[i][0];
  }
  return false;
}

bool LevelRun::position(Seeker& seeker, Cx& cx) {
  do {
    bool found = seeker.path->kind == PathKind::kRowidEqual ? position_rowid(seeker, cx)
                                                            : position_index(seeker, cx);
    if (found) return true;
    if (cx.failed()) return false;
  } while (next_choice(seeker));
  return false;
}

// A path to one row at most.
bool LevelRun::seek_rowid(Seeker& seeker, Cx& cx) {
  const Lookup& lookup = seeker.path->lookups[0];
  seeker.key.resize(1);
  Value& key = seeker.key[0];
  eval(lookup.value, cx, key);
  if (cx.failed() || key.is_null()) return false;
  if (!key.is_integer()) {
    apply_comparison_affinity_one(lookup.affinity, key);
    key.keep();
  }
  return position_rowid(seeker, cx);
}

bool LevelRun::position_rowid(Seeker& seeker, Cx& cx) {
  Value& key = seeker.key[0];
  if (!key.is_integer()) {
    apply_affinity(key, Affinity::kInteger);
    if (!key.is_integer()) return false;
  }
  return hit(cursor_.drive().seek_equal(key.raw_integer()), cx);
}

// Bounds that are no integers: 2.5 bounds like 2 or 3, text is above all numbers. False: no rowid
// fits.
static bool rowid_bound(const Bound& from, bool is_low, Cx& cx, i64* to) {
  Value value;
  eval(from.value, cx, value);
  if (cx.failed() || value.is_null()) return false;
  apply_numeric_affinity(value);
  if (value.is_integer()) {
    i64 v = value.raw_integer();
    if (!from.inclusive) {
      if (is_low ? v == INT64_MAX : v == INT64_MIN) return false;
      v += is_low ? 1 : -1;
    }
    *to = v;
    return true;
  }
  if (!value.is_real()) return !is_low;  // text and blobs sort above every rowid
  f64 real = value.raw_real();
  if (is_low) {
    if (real >= 9223372036854775808.0) return false;
    if (real < -9223372036854775808.0) return true;
    i64 floor = static_cast<i64>(std::floor(real));
    bool exact = static_cast<f64>(floor) == real;
    if (exact && from.inclusive) {
      *to = floor;
    } else if (floor == INT64_MAX) {
      return false;
    } else {
      *to = floor + 1;
    }
  } else {
    if (real < -9223372036854775808.0) return false;
    if (real >= 9223372036854775808.0) return true;
    i64 ceiling = static_cast<i64>(std::ceil(real));
    bool exact = static_cast<f64>(ceiling) == real;
    if (exact && from.inclusive) {
      *to = ceiling;
    } else if (ceiling == INT64_MIN) {
      return false;
    } else {
      *to = ceiling - 1;
    }
  }
  return true;
}

bool rowid_range(const AccessPath& path, Cx& cx, i64* low, i64* high) {
  *low = INT64_MIN;
  *high = INT64_MAX;
  if (path.low.value != nullptr && !rowid_bound(path.low, true, cx, low)) return false;
  if (path.high.value != nullptr && !rowid_bound(path.high, false, cx, high)) return false;
  return *low <= *high;
}

bool LevelRun::position_rowid_range(Seeker& seeker, Cx& cx) {
  i64 low;
  i64 high;
  if (!rowid_range(*seeker.path, cx, &low, &high)) return false;
  seeker.low.set_integer(low);
  seeker.high.set_integer(high);
  Cursor& drive = cursor_.drive();
  return hit(seeker.path->reverse ? drive.seek_at_most(high) : drive.seek_at_least(low), cx) &&
         within(seeker, cx);
}

bool LevelRun::position_index(Seeker& seeker, Cx& cx) {
  const AccessPath& path = *seeker.path;
  const KeyInfo& info = cursor_.key_info();
  size_t prefix = seeker.key.size();
  bool descending = prefix < info.columns.size() && info.columns[prefix].descending;
  std::vector<Value>& key = seeker.key;  // one longer while we seek
  // Where the range begins in the direction of travel, and on which side of ties.
  bool use_low = !path.reverse;
  const Bound& bound = use_low ? path.low : path.high;
  bool has = use_low ? seeker.has_low : seeker.has_high;
  int tie = use_low ? 1 : -1;  // first of the group, or last
  if (has) {
    key.push_back(use_low ? seeker.low : seeker.high);
    if (!bound.inclusive) tie = -tie;
  } else if (path.skip_null && descending != use_low) {
    key.emplace_back();  // beyond the NULLs
    tie = -tie;
  }
  PrefixProbe probe(key, info, tie);
  Cursor& drive = cursor_.drive();
  const Hit found = use_low ? drive.seek_at_least(probe) : drive.seek_at_most(probe);
  key.resize(prefix);
  return hit(found, cx) && within(seeker, cx);
}

bool LevelRun::within(Seeker& seeker, Cx& cx) {
  const AccessPath& path = *seeker.path;
  Cursor& drive = cursor_.drive();
  if (path.kind == PathKind::kRowidRange) {
    i64 rowid = drive.rowid();
    return path.reverse ? rowid >= seeker.low.raw_integer() : rowid <= seeker.high.raw_integer();
  }
  ByteView payload;
  if (!hit(drive.payload(&payload), cx)) return false;
  std::string_view record = base::as_text(payload);
  const KeyInfo& info = cursor_.key_info();
  if (!seeker.key.empty()) {
    int order = 0;
    if (seeker.key.size() > 1 || !seeker.first.compare(payload, &order))
      order = compare_record(record, seeker.key, info);
    if (order != 0) return false;
  }
  bool use_high = !path.reverse;
  bool has = use_high ? seeker.has_high : seeker.has_low;
  size_t prefix = seeker.key.size();
  bool descending = prefix < info.columns.size() && info.columns[prefix].descending;
  if (!has && !(path.skip_null && descending == use_high)) return true;
  seeker.key.emplace_back();
  if (has) seeker.key.back() = use_high ? seeker.high : seeker.low;
  int order = compare_record(record, seeker.key, info);
  seeker.key.pop_back();
  if (!has) return order != 0;  // the NULLs begin
  bool inclusive = use_high ? path.high.inclusive : path.low.inclusive;
  if (order == 0) return inclusive;
  return use_high ? order < 0 : order > 0;
}

}  // namespace db
