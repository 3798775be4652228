#include "db/exec/rowid_table.h"

namespace db {

RowidTable::RowidTable(const JoinLevel& level, const ColumnRefs& wanted)
    : wanted_(wanted),
      rowid_{level.source->slot, static_cast<int>(level.source->table->columns.size())},
      columns_(wanted.size()) {
  scan_path_.kind = PathKind::kScan;
  scan_level_.source = level.source;
  scan_level_.path = &scan_path_;
  ColumnRefs read = wanted;
  read.push_back(rowid_);
  source_ = make_scan(scan_level_, read, false);
}

bool RowidTable::build(i64 first, i64 last, Cx& cx) {
  first_ = first;
  places_.assign(static_cast<u64>(last) - static_cast<u64>(first) + 1, kNoRow);
  source_->open(cx);
  while (Batch* batch = source_->next(cx)) {
    append(*batch);
    if (text_bytes_ > kMaxBytes) break;
  }
  source_->close(cx);
  return !cx.failed() && text_bytes_ <= kMaxBytes;
}

void RowidTable::append(Batch& batch) {
  const Vector& rowids = *batch.find(rowid_);
  std::vector<const Vector*> from;
  for (const ColumnRef& ref : wanted_) from.push_back(batch.find(ref));
  for (u32 i = 0; i < batch.selection.count; ++i) {
    const u32 r = batch.selection.rows[i];
    const u64 at = static_cast<u64>(rowids.cells[r].i) - static_cast<u64>(first_);
    if (at >= places_.size()) continue;  // a file whose rowids are out of order
    places_[at] = rows_++;
    for (size_t c = 0; c < from.size(); ++c) {
      columns_[c].append(*from[c], r, bytes_);
      text_bytes_ += columns_[c].sizes.back();
    }
  }
}

}  // namespace db
