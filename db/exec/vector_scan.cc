// Scans into batches: whole tables straight from their pages, other paths row by row.
#include "db/exec/eval.h"
#include "db/exec/vector_source.h"

#include <algorithm>
#include <array>

namespace db {

RowDecoder::RowDecoder(const Table& table, Batch& batch, int slot) {
  int width = static_cast<int>(table.columns.size());
  for (Batch::Column& column : batch.columns) {
    if (column.ref.slot != slot) continue;
    if (column.ref.column == width || column.ref.column == table.rowid_column) {
      rowids_.push_back(column.vector.get());
      continue;
    }
    const Column& definition = table.columns[static_cast<size_t>(column.ref.column)];
    items_.push_back({definition.record_at, 0, column.vector.get(),
                      definition.affinity == Affinity::kReal, &definition.added_default});
  }
  std::sort(items_.begin(), items_.end(),
            [](const Item& a, const Item& b) { return a.place < b.place; });
  int place = 0;
  for (Item& item : items_) {
    item.skip = static_cast<u32>(item.place - place);
    place = item.place;
  }
}

namespace {

// Bytes of the bodies of the serial types that take one byte; of no meaning behind those.
constexpr auto kSmallSizes = [] {
  std::array<u8, 256> sizes{0, 1, 2, 3, 4, 6, 8, 8};
  for (size_t type = 12; type < 128; ++type) sizes[type] = static_cast<u8>((type - 12) / 2);
  return sizes;
}();

// Bits of eight bytes that are not in an integer of this serial type.
constexpr u8 kSpareBits[7] = {0, 56, 48, 40, 32, 16, 0};

// Serial types 1 to 6, 8 and 9. `room`: bytes that may be read from `body` on.
inline i64 decode_integer(u64 type, const u8* body, std::ptrdiff_t room) {
  if (type >= 8) return static_cast<i64>(type - 8);
  if (room >= 8) [[likely]]
    return static_cast<i64>(base::load_be64(body)) >> kSpareBits[type];
  Value value;
  decode_serial(type, body, value);
  return value.raw_integer();
}

}  // namespace

[[gnu::always_inline]] inline void RowDecoder::put(const Item& item, u32 at, u64 type,
                                                   const u8* body, std::ptrdiff_t room,
                                                   sql::Arena* arena) {
  Vector& to = *item.to;
  if (type - 1 <= 5 || type - 8 <= 1) {
    const i64 integer = decode_integer(type, body, room);
    if (item.real) {
      to.set_real(at, static_cast<f64>(integer));
    } else {
      to.set_integer(at, integer);
    }
    return;
  }
  if (type >= 12) {
    u32 size = static_cast<u32>((type - 12) / 2);
    auto* bytes = reinterpret_cast<const char*>(body);
    if (arena != nullptr) {
      char* copy = static_cast<char*>(arena->allocate(size + 1, 1));
      std::memcpy(copy, bytes, size);
      bytes = copy;
    }
    to.set_bytes(at, (type & 1) != 0 ? Type::kText : Type::kBlob, bytes, size);
    return;
  }
  if (type == 7) {
    u64 bits = base::load_be64(body);
    f64 real;
    std::memcpy(&real, &bits, sizeof real);
    to.set_real(at, real);
    return;
  }
  to.set_null(at);
}

// The columns from `item` on, for records whose types take any number of bytes, and for those that
// are malformed or too short: NULLs, or what was added later, as in RecordView.
void RowDecoder::take_any(const Item* item, u32 at, std::string_view record,
                          sql::Arena* arena) const {
  const Item* const last = items_.data() + items_.size();
  RecordWalk walk(record);
  Value value;
  bool present = false;
  for (int place = -1; item != last; ++item) {
    for (; place < item->place; ++place) present = walk.next(value);
    Value shown = present ? value : *item->missing;
    if (item->real && shown.is_integer()) shown.set_real(static_cast<f64>(shown.raw_integer()));
    if (present && arena != nullptr) {
      item->to->store(at, shown, *arena);
    } else {
      item->to->borrow(at, shown);
    }
  }
}

[[gnu::always_inline]] inline void RowDecoder::take(u32 at, i64 rowid, std::string_view record,
                                                    sql::Arena* arena) const {
  for (Vector* to : rowids_) to->set_integer(at, rowid);
  const Item* item = items_.data();
  const Item* const last = item + items_.size();
  if (item == last) return;
  // Nearly always a record's header and all types in it take one byte each.
  const u8* const data = reinterpret_cast<const u8*>(record.data());
  const u8* const end = data + record.size();
  const u32 header = record.empty() ? 0 : *data;
  if (header - 1 > 0x7e || header > record.size()) [[unlikely]]
    return take_any(item, at, record, arena);
  const u8* type = data + 1;
  const u8* const header_end = data + header;
  const u8* body = header_end;  // of `type`
  for (; item != last; ++item) {
    u32 wide = 0;
    const u8* const wanted = type + item->skip;
    if (wanted >= header_end) [[unlikely]]
      return take_any(item, at, record, arena);
    for (; type < wanted; ++type) {
      wide |= *type;
      body += kSmallSizes[*type];
    }
    if ((wide | *type) >= 0x80 || end - body < kSmallSizes[*type]) [[unlikely]]
      return take_any(item, at, record, arena);
    put(*item, at, *type, body, end - body, arena);
  }
}

void RowDecoder::decode(u32 at, i64 rowid, std::string_view record, sql::Arena* arena) const {
  take(at, rowid, record, arena);
}

u32 RowDecoder::decode(u32 at, std::span<const Cell> cells) const {
  u32 done = 0;
  for (const Cell& cell : cells) {
    if (cell.overflows()) [[unlikely]]
      break;
    take(at + done, cell.rowid, {reinterpret_cast<const char*>(cell.payload), cell.size}, nullptr);
    ++done;
  }
  return done;
}

void add_columns(Batch& batch, const ColumnRefs& wanted) {
  for (const ColumnRef& ref : wanted) batch.add(ref);
}

VectorExprs compile_all(const List<Expr*>& exprs, Batch& batch, Cx& cx) {
  VectorExprs nodes;
  for (const Expr* expr : exprs) nodes.push_back(compile_vector(expr, batch, cx));
  return nodes;
}

void read_slot(const Slot& slot, int column, int width, Value& out, Cx& cx) {
  if (slot.null_row) {
    out.set_null();
  } else if (slot.row != nullptr) {
    out = slot.row[slot.map != nullptr ? slot.map[column] : column];
  } else if (column == width) {
    out.set_integer(slot.cursor->rowid());
  } else {
    slot.cursor->column(column, out, cx);
  }
}

namespace {

// Narrows the batch; false when nothing is left.
bool finish_batch(Batch& batch, u32 rows, const VectorExprs& filters, Cx& cx) {
  batch.rows = rows;
  batch.selection.fill(rows);
  cx.countdown -= static_cast<int>(rows);
  if (cx.countdown <= 0 && !cx.tick()) return false;
  filter_batch(filters, batch, cx);
  return batch.selection.count > 0 && !cx.failed();
}

// A table from end to end, or a range of its rowids. The batch's bytes lie on pages that stay
// pinned until the next batch.
class TableScan : public BatchSource {
 public:
  TableScan(const JoinLevel& level, const ColumnRefs& wanted) : level_(level) {
    add_columns(batch_, wanted);
  }
  ~TableScan() override { unpin(); }

  void open(Cx& cx) override {
    const SourcePlan& source = *level_.source;
    if (!cursor_.open(cx, *source.table, source.database, nullptr)) return;
    decoder_ = std::make_unique<RowDecoder>(*source.table, batch_, source.slot);
    filters_ = compile_all(level_.filters, batch_, cx);
    last_ = INT64_MAX;
    at_last_ = false;
    if (level_.path->kind == PathKind::kScan) {
      on_row_ = move(cursor_.drive().first(), cx);
      return;
    }
    i64 first;
    on_row_ = rowid_range(*level_.path, cx, &first, &last_) &&
              move(cursor_.drive().seek_at_least(first), cx);
  }

  Batch* next(Cx& cx) override {
    while (on_row_ && !cx.failed()) {
      unpin();
      batch_.arena.reset();
      u32 rows = fill(cx);
      if (finish_batch(batch_, rows, filters_, cx)) return &batch_;
    }
    return nullptr;
  }

  void close(Cx&) override {
    unpin();
    cursor_.close();
    overflow_.close();
    on_row_ = false;
  }

 private:
  bool move(Hit hit, Cx& cx) {
    if (hit == Hit::kError) cx.fail(cursor_.drive().error());
    return hit == Hit::kRow;
  }

  u32 fill(Cx& cx) {
    Cursor& drive = cursor_.drive();
    // Somebody may have written since the last batch.
    Hit at = drive.restore();
    if (at == Hit::kEnd) at = drive.next();
    on_row_ = move(at, cx);
    u32 rows = 0;
    const bool by_leaf = !level_.source->table->without_rowid;
    while (on_row_ && rows < kBatchRows && !cx.failed()) {
      rows += by_leaf ? take_leaf(rows, cx) : take_row(rows, cx);
      if (!cx.failed()) on_row_ = !at_last_ && move(drive.next(), cx);
    }
    if (level_.path->kind == PathKind::kScan) cx.full_scan_steps += rows;
    return rows;
  }

  // What is left of the leaf.
  u32 take_leaf(u32 rows, Cx& cx) {
    Cursor& drive = cursor_.drive();
    u32 count = drive.batch(cells_, std::min<u32>(kLeafCells, kBatchRows - rows));
    if (count == 0) return take_row(rows, cx);  // malformed: says so
    if (cells_[count - 1].rowid > last_) {
      while (count > 0 && cells_[count - 1].rowid > last_) --count;
      at_last_ = true;
      if (count == 0) return 0;
    }
    pin(drive.page());
    for (u32 i = 0; i < count;) {
      i += decoder_->decode(rows + i, std::span(cells_ + i, count - i));
      if (i == count) break;
      take_overflowing(rows + i, cells_[i].rowid, cx);
      ++i;
    }
    return count;
  }

  u32 take_row(u32 at, Cx& cx) {
    Cursor& drive = cursor_.drive();
    ByteView payload;
    if (!move(drive.payload(&payload), cx)) return 0;
    sql::Arena* arena = drive.cell().overflows() ? &batch_.arena : nullptr;
    if (arena == nullptr) pin(drive.page());
    decoder_->decode(at, drive.rowid(), base::as_text(payload), arena);
    return 1;
  }

  // A row that runs over into other pages is assembled by a cursor of its own.
  void take_overflowing(u32 at, i64 rowid, Cx& cx) {
    const SourcePlan& source = *level_.source;
    if (!overflow_.open(cx, *source.table, source.database, nullptr)) return;
    ByteView payload;
    Cursor& rows = overflow_.rows();
    if (!move(rows.seek_equal(rowid), cx) || !move(rows.payload(&payload), cx)) {
      cx.fail(rc::kCorrupt, "database disk image is malformed");
      return;
    }
    decoder_->decode(at, rowid, base::as_text(payload), &batch_.arena);
  }

  void pin(Page* page) {
    if (!pinned_.empty() && pinned_.back() == page) return;
    Pager::pin(page);
    pinned_.push_back(page);
  }
  void unpin() {
    for (Page* page : pinned_) Pager::unpin(page);
    pinned_.clear();
  }

  const JoinLevel& level_;
  TableCursor cursor_;
  std::unique_ptr<RowDecoder> decoder_;
  VectorExprs filters_;
  bool on_row_ = false;
  i64 last_ = INT64_MAX;  // the largest rowid wanted
  bool at_last_ = false;
  std::vector<Page*> pinned_;
  static constexpr u32 kLeafCells = 256;
  Cell cells_[kLeafCells];
  TableCursor overflow_;
};

// Any other path: the row executor's own steps, gathered.
class LevelScan : public BatchSource {
 public:
  LevelScan(const JoinLevel& level, const ColumnRefs& wanted, bool first)
      : level_(level), first_(first) {
    add_columns(batch_, wanted);
  }

  void open(Cx& cx) override {
    if (run_ == nullptr) run_ = std::make_unique<LevelRun>(level_, first_, cx);
    filters_ = compile_all(level_.filters, batch_, cx);
    run_->slot(cx).null_row = false;
    started_ = false;
    done_ = false;
  }

  Batch* next(Cx& cx) override {
    while (!done_ && !cx.failed()) {
      batch_.arena.reset();
      // Whoever evaluated row by row has shown rows of its own in the slot.
      if (started_) run_->slot(cx) = shown_;
      u32 rows = 0;
      while (rows < kBatchRows) {
        done_ = !(started_ ? run_->advance(cx) : run_->start(cx));
        started_ = true;
        if (done_) break;
        take(rows++, cx);
      }
      if (cx.failed()) return nullptr;
      shown_ = run_->slot(cx);
      if (finish_batch(batch_, rows, filters_, cx)) return &batch_;
    }
    return nullptr;
  }

  void close(Cx& cx) override {
    if (run_ != nullptr) run_->close(cx);
    done_ = true;
  }

 private:
  void take(u32 at, Cx& cx) {
    const Slot& slot = run_->slot(cx);
    Value value;
    for (Batch::Column& column : batch_.columns) {
      read_slot(slot, column.ref.column, level_.source->width, value, cx);
      column.vector->store(at, value, batch_.arena);
    }
  }

  const JoinLevel& level_;
  bool first_;
  std::unique_ptr<LevelRun> run_;
  Slot shown_;
  VectorExprs filters_;
  bool started_ = false;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<BatchSource> make_scan(const JoinLevel& level, const ColumnRefs& wanted,
                                       bool first) {
  const AccessPath& path = *level.path;
  const bool in_order = level.source->kind == SourceKind::kTable && !path.reverse;
  const bool whole = path.kind == PathKind::kScan &&
                     (path.index == nullptr || path.index == level.source->table->primary);
  if (in_order && (whole || path.kind == PathKind::kRowidRange))
    return std::make_unique<TableScan>(level, wanted);
  return std::make_unique<LevelScan>(level, wanted, first);
}

}  // namespace db
