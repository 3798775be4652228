// Join levels over batches: hash lookups, rowid lookups, and nested loops for every other path.
#include "db/exec/eval.h"
#include "db/exec/join_hash.h"
#include "db/exec/rowid_table.h"
#include "db/exec/vector_source.h"

#include <algorithm>

namespace db {
namespace {

constexpr u32 kNoRow = JoinHash::kNoRow;

// What the levels share: the input's rows that go into the output, and the columns copied.
class JoinLevelSource : public BatchSource {
 public:
  JoinLevelSource(const JoinLevel& level, std::unique_ptr<BatchSource> input,
                  const ColumnRefs& wanted)
      : level_(level), input_(std::move(input)) {
    add_columns(batch_, wanted);
    for (Batch::Column& column : batch_.columns) {
      if (column.ref.slot == level.source->slot) {
        own_.push_back({column.ref, column.vector.get()});
      } else {
        carried_.push_back({input_->batch().find(column.ref), column.vector.get()});
      }
    }
  }

  void open(Cx& cx) override {
    input_->open(cx);
    filters_ = compile_all(level_.filters, batch_, cx);
    in_ = nullptr;
  }

  // One batch of input gives several of output, never the other way round: the output points at
  // the input's bytes.
  Batch* next(Cx& cx) override {
    while (!cx.failed()) {
      if (in_ == nullptr) {
        in_ = input_->next(cx);
        if (in_ == nullptr) return nullptr;
        begin(cx);
      }
      batch_.arena.reset();
      count_ = 0;
      if (!fill(cx)) in_ = nullptr;
      if (cx.failed()) return nullptr;
      if (count_ == 0) continue;
      gather();
      batch_.rows = count_;
      batch_.selection.fill(count_);
      if (!cx.tick()) return nullptr;
      filter_batch(filters_, batch_, cx);
      if (batch_.selection.count > 0) return cx.failed() ? nullptr : &batch_;
    }
    return nullptr;
  }

  void close(Cx& cx) override {
    input_->close(cx);
    in_ = nullptr;
  }

 protected:
  struct Own {
    ColumnRef ref;
    Vector* to;
  };
  // A new batch of input.
  virtual void begin(Cx& cx) = 0;
  // Adds output rows until the batch is full or the input is used up (false).
  virtual bool fill(Cx& cx) = 0;

  void gather() {
    for (auto& [from, to] : carried_) {
      for (u32 i = 0; i < count_; ++i) to->copy(i, *from, input_rows_[i]);
    }
  }
  void own_null(u32 at) {
    for (Own& own : own_) own.to->set_null(at);
  }

  const JoinLevel& level_;
  std::unique_ptr<BatchSource> input_;
  VectorExprs filters_;
  std::vector<Own> own_;
  std::vector<std::pair<const Vector*, Vector*>> carried_;
  Batch* in_ = nullptr;
  u32 count_ = 0;
  u16 input_rows_[kBatchRows];
};

class HashLevel : public JoinLevelSource {
 public:
  HashLevel(const JoinLevel& level, std::unique_ptr<BatchSource> input, const ColumnRefs& wanted)
      : JoinLevelSource(level, std::move(input), wanted) {
    for (const Own& own : own_) own_refs_.push_back(own.ref);
  }

  void open(Cx& cx) override {
    JoinLevelSource::open(cx);
    hash_ = nullptr;
  }
  void close(Cx& cx) override {
    JoinLevelSource::close(cx);
    hash_ = nullptr;
  }

 protected:
  void begin(Cx& cx) override {
    if (hash_ == nullptr) {
      hash_ = std::make_unique<JoinHash>(level_, own_refs_);
      hash_->build(cx);
      keys_.clear();
      for (const Lookup& lookup : level_.path->lookups) {
        keys_.push_back(compile_vector(lookup.value, *in_, cx));
      }
    }
    if (cx.failed()) return;
    hash_->find(keys_, *in_, first_, cx);
    at_ = 0;
    next_ = kNoRow;
    entered_ = false;
  }

  bool fill(Cx&) override {
    const Selection& rows = in_->selection;
    while (at_ < rows.count) {
      u16 r = rows.rows[at_];
      if (!entered_) {
        entered_ = true;
        next_ = first_[r];
        if (next_ == kNoRow && level_.left) {
          if (!put(r, kNoRow)) {
            entered_ = false;
            return give();
          }
        }
      }
      while (next_ != kNoRow) {
        if (!put(r, next_)) return give();
        next_ = hash_->after(next_);
      }
      ++at_;
      entered_ = false;
    }
    give();
    return false;
  }

 private:
  bool put(u16 input_row, u32 build_row) {
    if (count_ == kBatchRows) return false;
    input_rows_[count_] = input_row;
    build_rows_[count_++] = build_row;
    return true;
  }
  // The build side's columns of the output rows.
  bool give() {
    for (size_t c = 0; c < own_.size(); ++c) hash_->load(c, build_rows_, count_, *own_[c].to);
    return true;
  }

  ColumnRefs own_refs_;
  std::unique_ptr<JoinHash> hash_;
  VectorExprs keys_;
  u32 first_[kBatchRows];
  u32 build_rows_[kBatchRows];
  u32 at_ = 0;
  u32 next_ = kNoRow;
  bool entered_ = false;
};

// One row of a table by its rowid: looked up in the tree or, when so many are wanted that reading
// the whole table costs less, in memory. `expected`: searches in all, as the plan guesses; it is
// believed once an eighth of what would pay has been wanted, and no more after twice of that.
class RowidLevel : public JoinLevelSource {
 public:
  RowidLevel(const JoinLevel& level, std::unique_ptr<BatchSource> input, const ColumnRefs& wanted,
             f64 expected)
      : JoinLevelSource(level, std::move(input), wanted), expected_(expected) {}

  void open(Cx& cx) override {
    JoinLevelSource::open(cx);
    const SourcePlan& source = *level_.source;
    if (!cursor_.open(cx, *source.table, source.database, nullptr)) return;
    decoder_ = std::make_unique<RowDecoder>(*source.table, batch_, source.slot);
    key_ = compile_vector(level_.path->lookups[0].value, input_->batch(), cx);
    table_.reset();
    searches_ = 0;
    stays_with_tree_ = false;
    span_ = 0;
  }
  void close(Cx& cx) override {
    JoinLevelSource::close(cx);
    cursor_.close();
    table_.reset();
  }

 protected:
  void begin(Cx& cx) override {
    keys_ = &key_->eval(*in_, in_->selection, cx);
    choose(cx);
  }

  bool fill(Cx& cx) override {
    const Selection& rows = in_->selection;
    for (u32 i = 0; i < rows.count && !cx.failed(); ++i) {
      const u16 r = rows.rows[i];
      i64 rowid = 0;
      const bool found =
          key(r, &rowid) && (table_ != nullptr ? find_in_memory(rowid) : find_in_tree(rowid, cx));
      if (!found) {
        if (!level_.left) continue;
        own_null(count_);
        build_rows_[count_] = RowidTable::kNoRow;
      }
      input_rows_[count_++] = r;
    }
    if (table_ != nullptr) {
      for (size_t c = 0; c < own_.size(); ++c) table_->load(c, build_rows_, count_, *own_[c].to);
    }
    return false;
  }

 private:
  // What a search in the tree costs, in rows of a scan.
  static constexpr u64 kRowsPerSearch = 3;
  static constexpr u64 kLeastSearches = 512;

  void choose(Cx& cx) {
    if (table_ != nullptr) {
      if (written_ == cx.session.write_epoch) return;
      table_.reset();  // the table may have changed meanwhile
      stays_with_tree_ = true;
    }
    const f64 left = expected_ - static_cast<f64>(searches_);
    searches_ += in_->selection.count;
    if (stays_with_tree_ || searches_ < kLeastSearches || cx.failed()) return;
    if (span_ == 0 && !find_span(cx)) return;
    const f64 span = static_cast<f64>(span_);
    const f64 paid = static_cast<f64>(searches_ * kRowsPerSearch);
    const bool more_than_planned = paid >= 2 * span;
    if (!more_than_planned && (left * kRowsPerSearch < span || paid * 8 < span)) return;
    ColumnRefs wanted;
    for (const Own& own : own_) wanted.push_back(own.ref);
    table_ = std::make_unique<RowidTable>(level_, wanted);
    written_ = cx.session.write_epoch;
    if (table_->too_large(span_) || !table_->build(first_, last_, cx)) {
      table_.reset();
      stays_with_tree_ = true;
    }
  }
  bool find_span(Cx& cx) {
    Cursor& rows = cursor_.rows();
    stays_with_tree_ = rows.first() != Hit::kRow;
    if (stays_with_tree_) return false;
    first_ = rows.rowid();
    if (rows.last() != Hit::kRow) {
      cx.fail(rows.error());
      return false;
    }
    last_ = rows.rowid();
    span_ = static_cast<u64>(last_) - static_cast<u64>(first_) + 1;
    stays_with_tree_ = last_ < first_ || span_ == 0;
    return !stays_with_tree_;
  }

  // The rowid that input row `r` asks for. False: none.
  bool key(u32 r, i64* rowid) const {
    if (keys_->types[r] == Type::kInteger) {
      *rowid = keys_->cells[r].i;
      return true;
    }
    Value key;
    keys_->load(r, key);
    apply_comparison_affinity_one(level_.path->lookups[0].affinity, key);
    apply_affinity(key, Affinity::kInteger);
    if (!key.is_integer()) return false;
    *rowid = key.raw_integer();
    return true;
  }
  bool find_in_memory(i64 rowid) {
    build_rows_[count_] = table_->find(rowid);
    return build_rows_[count_] != RowidTable::kNoRow;
  }
  bool find_in_tree(i64 rowid, Cx& cx) {
    Cursor& rows = cursor_.rows();
    const Hit hit = rows.seek_equal(rowid);
    if (hit == Hit::kError) cx.fail(rows.error());
    if (hit != Hit::kRow) return false;
    std::string_view record;
    if (!decoder_->only_rowid()) {
      ByteView payload;
      if (rows.payload(&payload) != Hit::kRow) {
        cx.fail(rows.error());
        return false;
      }
      record = base::as_text(payload);
    }
    decoder_->decode(count_, rowid, record, &batch_.arena);
    return true;
  }

  TableCursor cursor_;
  std::unique_ptr<RowDecoder> decoder_;
  std::unique_ptr<VectorExpr> key_;
  const Vector* keys_ = nullptr;
  std::unique_ptr<RowidTable> table_;
  f64 expected_;
  u64 written_ = 0;   // the session's write_epoch when table_ was read
  u64 searches_ = 0;  // wanted so far
  bool stays_with_tree_ = false;
  i64 first_ = 0, last_ = 0;
  u64 span_ = 0;  // of the table's rowids; 0: not known
  u32 build_rows_[kBatchRows];
};

// The row executor's level, started for each input row.
class NestedLevel : public JoinLevelSource {
 public:
  using JoinLevelSource::JoinLevelSource;

  void open(Cx& cx) override {
    JoinLevelSource::open(cx);
    run_ = std::make_unique<LevelRun>(level_, false, cx);
    view_ = RowView();
    Batch& in = input_->batch();
    for (const Expr* expr : level_.on) view_.add(expr, in, cx);
    add_path(*level_.path, in, cx);
  }
  void close(Cx& cx) override {
    JoinLevelSource::close(cx);
    if (run_ != nullptr) run_->close(cx);
    run_.reset();
  }

 protected:
  void begin(Cx&) override {
    at_ = 0;
    started_ = false;
  }

  bool fill(Cx& cx) override {
    const Selection& rows = in_->selection;
    while (at_ < rows.count && !cx.failed()) {
      u16 r = rows.rows[at_];
      view_.show(r, cx);
      Slot& slot = run_->slot(cx);
      if (!started_) {
        slot.null_row = false;
        matched_ = false;
      } else {
        slot = shown_;
      }
      bool found = started_ ? run_->advance(cx) : run_->start(cx);
      started_ = true;
      for (; found; found = run_->advance(cx)) {
        if (!eval_all(level_.on, cx)) continue;
        matched_ = true;
        take(cx);
        input_rows_[count_++] = r;
        if (count_ == kBatchRows) {
          shown_ = slot;
          return true;
        }
      }
      if (cx.failed()) return false;
      if (level_.left && !matched_) {
        own_null(count_);
        input_rows_[count_++] = r;
      }
      ++at_;
      started_ = false;
      if (count_ == kBatchRows) return at_ < rows.count;
    }
    return false;
  }

 private:
  void add_path(const AccessPath& path, Batch& in, Cx& cx) {
    for (const Lookup& lookup : path.lookups) view_.add(lookup.value, in, cx);
    for (const Bound* bound : {&path.low, &path.high}) {
      if (bound->value != nullptr) view_.add(bound->value, in, cx);
    }
    for (const Expr* arg : path.virtual_args) view_.add(arg, in, cx);
    for (const AccessPath* branch : path.branches) add_path(*branch, in, cx);
  }
  void take(Cx& cx) {
    const Slot& slot = run_->slot(cx);
    Value value;
    for (Own& own : own_) {
      read_slot(slot, own.ref.column, level_.source->width, value, cx);
      own.to->store(count_, value, batch_.arena);
    }
  }

  std::unique_ptr<LevelRun> run_;
  RowView view_;
  Slot shown_;
  u32 at_ = 0;
  bool started_ = false;
  bool matched_ = false;
};

void collect_all(const List<Expr*>& exprs, ColumnRefs* out) {
  for (const Expr* expr : exprs) collect_columns(expr, out);
}

void collect_path(const AccessPath& path, ColumnRefs* out) {
  for (const Lookup& lookup : path.lookups) {
    collect_columns(lookup.value, out);
  }
  for (const Bound* bound : {&path.low, &path.high}) {
    if (bound->value != nullptr) collect_columns(bound->value, out);
  }
  collect_all(path.virtual_args, out);
  for (const AccessPath* branch : path.branches) collect_path(*branch, out);
}

}  // namespace

std::unique_ptr<BatchSource> make_join_level(const JoinLevel& level,
                                             std::unique_ptr<BatchSource> input,
                                             const ColumnRefs& wanted, f64 expected) {
  const AccessPath& path = *level.path;
  bool plain = level.on.empty() && !path.reverse;
  if (path.kind == PathKind::kHash && plain && level.source->kind != SourceKind::kVirtual) {
    return std::make_unique<HashLevel>(level, std::move(input), wanted);
  }
  if (path.kind == PathKind::kRowidEqual && plain && !path.lookups[0].is_in &&
      !path.lookups[0].is_null_safe) {
    return std::make_unique<RowidLevel>(level, std::move(input), wanted, expected);
  }
  return std::make_unique<NestedLevel>(level, std::move(input), wanted);
}

std::unique_ptr<BatchSource> make_pipeline(const JoinPlan& plan, const ColumnRefs& wanted) {
  // What is read behind each level, from the last one back.
  size_t count = plan.levels.size();
  std::vector<ColumnRefs> needed(count);
  ColumnRefs later = wanted;
  for (size_t i = count; i-- > 0;) {
    const JoinLevel& level = *plan.levels[i];
    collect_all(level.filters, &later);
    needed[i] = later;
    collect_all(level.on, &later);
    collect_path(*level.path, &later);
  }
  std::unique_ptr<BatchSource> source;
  std::vector<int> slots;
  f64 rows = 1;  // that the levels so far give, as planned
  for (size_t i = 0; i < count; ++i) {
    slots.push_back(plan.levels[i]->source->slot);
    // Columns of later items and of enclosing rows are not this level's.
    std::erase_if(needed[i], [&](const ColumnRef& ref) {
      return std::find(slots.begin(), slots.end(), ref.slot) == slots.end();
    });
    if (i == 0) {
      source = make_scan(*plan.levels[0], needed[0], true);
    } else {
      source = make_join_level(*plan.levels[i], std::move(source), needed[i], rows);
    }
    rows *= plan.levels[i]->path->rows;
  }
  return source;
}

}  // namespace db
