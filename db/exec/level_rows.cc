// Rows of subqueries, hash lookups, virtual tables.
#include "db/exec/eval.h"
#include "db/exec/join_hash.h"
#include "db/exec/level_run.h"
#include "db/exec/subquery.h"

namespace db {

bool LevelRun::start_rows(Cx& cx) {
  const SourcePlan& source = *level_.source;
  at_ = 0;
  if (source.recursive_id >= 0) {
    show(cx.recursive_rows[static_cast<size_t>(source.recursive_id)], cx);
    at_ = 1;
    return slot(cx).row != nullptr;
  }
  if (first_ && !source.materialized && source.rows->kind != RowKind::kRecursive) {
    if (stream_ == nullptr) stream_ = make_stream(*source.rows, cx);
    stream_->open(cx);
  } else if (first_ && source.shared != nullptr && source.rows->kind == RowKind::kRecursive &&
             !source.materialized) {
    if (stream_ == nullptr) stream_ = make_stream(*source.rows, cx);
    stream_->open(cx);
  } else {
    rows_ = subquery_rows(source.shared, cx);
    if (rows_ == nullptr) return false;
  }
  return advance_rows(cx);
}

bool LevelRun::advance_rows(Cx& cx) {
  if (level_.source->recursive_id >= 0) return false;
  if (!cx.tick()) return false;
  if (rows_ != nullptr) {
    if (at_ >= rows_->count()) return false;
    show(rows_->row(at_++), cx);
    return true;
  }
  if (!stream_->next(cx)) return false;
  show(stream_->row(), cx);
  return true;
}

void LevelRun::drop_hash() {
  built_ = false;
  hash_.reset();
  built_rows_.clear();
  keys_.reset();
}

// A correlated subquery may run only once: the first start of a kept table scans it, later ones
// build. Rows written meanwhile begin that anew.
bool LevelRun::start_hash(Cx& cx) {
  if (level_.path->kept && (built_ || scanned_) &&
      (built_epoch_ != cx.session.write_epoch || built_run_ != cx.run)) {
    drop_hash();
    scanned_ = false;
  }
  built_epoch_ = cx.session.write_epoch;
  built_run_ = cx.run;
  scanning_ = level_.path->kept && first_ && !scanned_ && !level_.path->lookups.empty() &&
              level_.source->kind == SourceKind::kTable;
  if (scanning_) {
    scanned_ = true;
    if (!cursor_.open(cx, *level_.source->table, level_.source->database, nullptr)) return false;
    Slot& at = slot(cx);
    at.cursor = &cursor_;
    at.row = nullptr;
    at.null_row = false;
    return advance_first_scan(hit(cursor_.drive().first(), cx), cx);
  }
  if (!build_hash(cx)) return false;
  probed_ = false;
  return advance_hash(cx);
}

bool LevelRun::advance_first_scan(bool found, Cx& cx) {
  for (; found; found = hit(cursor_.drive().next(), cx)) {
    if (!cx.tick()) return false;
    if (eval_all(level_.path->consumed, cx) && eval_all(level_.path->build_filters, cx)) {
      return !cx.failed();
    }
    if (cx.failed()) return false;
  }
  return false;
}

// A table's row while the hash is built is under cursor_; it is copied with the columns in use.
bool LevelRun::build_hash(Cx& cx) {
  if (built_) return true;
  const SourcePlan& source = *level_.source;
  const AccessPath& path = *level_.path;
  ++cx.automatic_indexes;
  cx.keeps_rows |= path.kept;
  built_rows_.clear();
  built_count_ = 0;
  heads_.clear();
  tails_.clear();
  chain_.clear();
  std::vector<const Collation*> collations;
  for (const Lookup& lookup : path.lookups) collations.push_back(lookup.collation);
  keys_ = path.lookups.empty()
              ? nullptr
              : std::make_unique<ValueSet>(static_cast<int>(collations.size()), collations.data());
  bool is_table = source.kind == SourceKind::kTable;
  map_.assign(static_cast<size_t>(source.width) + 1, 0);
  if (is_table) {
    i16 at = 0;
    for (int column : source.used) map_[static_cast<size_t>(column)] = at++;
    map_[static_cast<size_t>(source.width)] = at;
    stride_ = static_cast<size_t>(at) + 1;
  } else {
    for (int i = 0; i < source.width; ++i) map_[static_cast<size_t>(i)] = static_cast<i16>(i);
    stride_ = static_cast<size_t>(source.width);
  }
  Slot& at = slot(cx);
  at.null_row = false;
  at.map = nullptr;
  if (is_table && !level_.right && keys_ != nullptr &&
      cx.session.executor != Session::Executor::kRow) {
    ColumnRefs columns;
    for (int column : source.used) columns.push_back({source.slot, column});
    if (!source.table->without_rowid) columns.push_back({source.slot, source.width});
    hash_ = std::make_unique<JoinHash>(level_, columns);
    hash_->build(cx);
    hash_row_.assign(stride_, Value());
    built_ = !cx.failed();
    return built_;
  }
  if (is_table) {
    if (!cursor_.open(cx, *source.table, source.database, nullptr)) return false;
    at.cursor = &cursor_;
    at.row = nullptr;
    for (bool found = hit(cursor_.drive().first(), cx); found;
         found = hit(cursor_.drive().next(), cx)) {
      if (!cx.tick() || !add_hash_row(cx)) break;
    }
  } else {
    RowBuffer* rows = subquery_rows(source.shared, cx);
    for (size_t i = 0; rows != nullptr && i < rows->count(); ++i) {
      show(rows->row(i), cx);
      if (!add_hash_row(cx)) break;
    }
  }
  if (cx.failed()) return false;
  matched_.assign(built_count_, false);
  built_ = true;
  return true;
}

bool LevelRun::add_hash_row(Cx& cx) {
  const SourcePlan& source = *level_.source;
  const AccessPath& path = *level_.path;
  if (!eval_all(path.build_filters, cx)) return !cx.failed();
  std::vector<Value> key;
  for (const Lookup& lookup : path.lookups) {
    key.emplace_back();
    eval(lookup.key, cx, key.back());
    if (key.back().is_null() && !lookup.is_null_safe) return !cx.failed();
    apply_comparison_affinity_one(lookup.affinity, key.back());
  }
  u32 place = static_cast<u32>(built_count_++);
  built_rows_.resize(built_count_ * stride_);
  Value* row = &built_rows_[place * stride_];
  if (source.kind == SourceKind::kTable) {
    for (int column : source.used) {
      Value& to = row[map_[static_cast<size_t>(column)]];
      cursor_.column(column, to, cx);
      to.keep();
    }
    if (!source.table->without_rowid) row[stride_ - 1].set_integer(cursor_.rowid());
  } else {
    for (size_t i = 0; i < stride_; ++i) row[i] = slot(cx).row[i];
  }
  if (keys_ == nullptr) return !cx.failed();
  bool is_new = false;
  size_t group = keys_->insert(key.data(), &is_new);
  chain_.resize(built_count_);
  if (is_new) {
    heads_.push_back(place + 1);
    tails_.push_back(place + 1);
  } else {
    chain_[tails_[group] - 1] = place + 1;
    tails_[group] = place + 1;
  }
  return !cx.failed();
}

// The values that the item's rows must have, in `key`; false when none can.
bool LevelRun::probe_key(Value* key, Cx& cx) {
  const auto& lookups = level_.path->lookups;
  for (u32 i = 0; i < lookups.size(); ++i) {
    eval(lookups[i].value, cx, key[i]);
    if (key[i].is_null() && !lookups[i].is_null_safe) return false;
    apply_comparison_affinity_one(lookups[i].affinity, key[i]);
  }
  return !cx.failed();
}

bool LevelRun::probe(Cx& cx) {
  if (keys_ == nullptr) {
    current_ = 0;
    return built_count_ > 0;
  }
  constexpr size_t kInline = 4;
  Value inline_key[kInline];
  std::vector<Value> more;
  const auto& lookups = level_.path->lookups;
  Value* key = inline_key;
  if (lookups.size() > kInline) {
    more.resize(lookups.size());
    key = more.data();
  }
  if (!probe_key(key, cx)) return false;
  if (hash_ != nullptr) {
    current_ = hash_->find_one(key);
    return current_ != JoinHash::kNoRow;
  }
  size_t group = keys_->find(key);
  if (group == ValueSet::kNone) return false;
  current_ = heads_[group] - 1;
  return true;
}

bool LevelRun::advance_hash(Cx& cx) {
  if (scanning_) return advance_first_scan(hit(cursor_.drive().next(), cx), cx);
  if (!cx.tick()) return false;
  if (!probed_) {
    probed_ = true;
    if (!probe(cx)) return false;
  } else if (keys_ == nullptr) {
    if (++current_ >= built_count_) return false;
  } else if (hash_ != nullptr) {
    current_ = hash_->after(static_cast<u32>(current_));
    if (current_ == JoinHash::kNoRow) return false;
  } else {
    if (chain_[current_] == 0) return false;
    current_ = chain_[current_] - 1;
  }
  Slot& at = slot(cx);
  if (hash_ != nullptr) {
    hash_->load_row(static_cast<u32>(current_), hash_row_.data());
    at.row = hash_row_.data();
  } else {
    at.row = &built_rows_[current_ * stride_];
  }
  at.map = map_.data();
  at.cursor = &cursor_;
  at.null_row = false;
  return true;
}

bool LevelRun::next_unmatched(Cx& cx) {
  if (!built_ && !build_hash(cx)) return false;
  while (unmatched_at_ < built_count_ && matched_[unmatched_at_]) ++unmatched_at_;
  if (unmatched_at_ >= built_count_) return false;
  Slot& at = slot(cx);
  at.row = &built_rows_[unmatched_at_++ * stride_];
  at.map = map_.data();
  at.cursor = &cursor_;
  at.null_row = false;
  return true;
}

bool LevelRun::start_virtual(Cx& cx) {
  const SourcePlan& source = *level_.source;
  const AccessPath& path = *level_.path;
  if (virtual_ == nullptr) {
    auto opened = source.table->virtual_table->open();
    if (!opened.ok()) {
      cx.fail(opened.error());
      return false;
    }
    virtual_ = std::move(opened).value();
    virtual_text_ = path.virtual_text;
    virtual_args_.resize(path.virtual_args.size());
    virtual_row_.resize(static_cast<size_t>(source.width) + 1);
    map_.resize(static_cast<size_t>(source.width) + 1);
    for (size_t i = 0; i < map_.size(); ++i) map_[i] = static_cast<i16>(i);
  }
  for (u32 i = 0; i < path.virtual_args.size(); ++i)
    eval(path.virtual_args[i], cx, virtual_args_[i]);
  if (cx.failed()) return false;
  Status filtered = virtual_->filter(path.virtual_number, virtual_text_, virtual_args_);
  if (!filtered.ok()) {
    cx.fail(filtered.error());
    return false;
  }
  return load_virtual_row(cx);
}

bool LevelRun::load_virtual_row(Cx& cx) {
  if (!cx.tick() || virtual_->at_end()) return false;
  const SourcePlan& source = *level_.source;
  for (int column : source.used) {
    Status read = virtual_->column(column, virtual_row_[static_cast<size_t>(column)]);
    if (!read.ok()) {
      cx.fail(read.error());
      return false;
    }
  }
  auto rowid = virtual_->rowid();
  if (rowid.ok()) virtual_row_.back().set_integer(rowid.value());
  Slot& at = slot(cx);
  at.row = virtual_row_.data();
  at.map = map_.data();
  at.cursor = &cursor_;
  at.null_row = false;
  return true;
}

}  // namespace db
