#include "db/exec/table_cursor.h"

namespace db {

IndexOrder::IndexOrder(const Index& index, Session& session) {
  info_.encoding = session.encoding;
  for (const IndexColumn& column : index.columns) {
    const Collation* collation = session.collation(column.collation);
    info_.columns.push_back(
        {collation != nullptr ? collation : &kBinary, column.descending, false});
  }
}

int IndexOrder::compare(ByteView a, ByteView b) const {
  return compare_records(base::as_text(a), base::as_text(b), info_);
}

int PrefixProbe::compare(ByteView stored) const {
  int order = compare_record(base::as_text(stored), key_, info_);
  return order != 0 ? order : tie_;
}

bool TableCursor::open(Cx& cx, const Table& table, int database, const Index* index) {
  const Index* wanted = index == table.primary ? nullptr : index;
  if (table_ == &table && index_ == wanted && cursor_.is_open()) {
    moved();
    return true;
  }
  close();
  Store* store = cx.session.databases[static_cast<size_t>(database)]->store.get();
  if (store == nullptr) {
    cx.fail(rc::kError, "no such table: " + table.name);
    return false;
  }
  record_.set_encoding(cx.session.encoding);
  index_record_.set_encoding(cx.session.encoding);
  table_ = &table;
  index_ = wanted;
  if (prepared_table_ != table_ || prepared_index_ != index_) prepare(cx);
  cursor_.open(*store, table.root, primary_order_.get());
  if (index_ != nullptr) index_cursor_.open(*store, index_->root, order_.get());
  moved();
  return true;
}

void TableCursor::prepare(Cx& cx) {
  width_ = static_cast<int>(table_->columns.size());
  primary_order_ =
      table_->without_rowid ? std::make_unique<IndexOrder>(*table_->primary, cx.session) : nullptr;
  if (index_ != nullptr) {
    order_ = std::make_unique<IndexOrder>(*index_, cx.session);
    index_place_.assign(static_cast<size_t>(width_), -1);
    for (size_t i = index_->columns.size(); i-- > 0;) {
      int column = index_->columns[i].column;
      if (column >= 0) index_place_[static_cast<size_t>(column)] = static_cast<i16>(i);
    }
  } else if (table_->without_rowid) {
    order_ = std::make_unique<IndexOrder>(*table_->primary, cx.session);
  }
  prepared_table_ = table_;
  prepared_index_ = index_;
}

void TableCursor::close() {
  cursor_.close();
  index_cursor_.close();
  table_ = nullptr;
  index_ = nullptr;
}

bool TableCursor::load_index_record_slow(Cx& cx) {
  ByteView payload;
  if (index_cursor_.restore() != Hit::kRow || index_cursor_.payload(&payload) != Hit::kRow) {
    cx.fail(rc::kCorrupt, "database disk image is malformed");
    return false;
  }
  index_record_.reset(base::as_text(payload));
  index_known_ = true;
  return true;
}

bool TableCursor::load_record_slow(Cx& cx) {
  if (!row_found_ && !find_row(cx)) return false;
  ByteView payload;
  if (cursor_.restore() != Hit::kRow || cursor_.payload(&payload) != Hit::kRow) {
    cx.fail(rc::kCorrupt, "database disk image is malformed");
    return false;
  }
  record_.reset(base::as_text(payload));
  record_known_ = true;
  return true;
}

bool TableCursor::find_row(Cx& cx) {
  if (row_found_) return true;
  if (!table_->without_rowid) {
    Hit hit = cursor_.seek_equal(rowid());
    if (hit != Hit::kRow) {
      cx.fail(rc::kCorruptIndex, "database disk image is malformed");
      return false;
    }
  } else {
    if (!load_index_record(cx)) return false;
    primary_key_.clear();
    for (int i = 0; i < table_->primary->key_columns; ++i) {
      int column = table_->primary->columns[static_cast<size_t>(i)].column;
      primary_key_.emplace_back();
      index_record_.column(index_place_[static_cast<size_t>(column)], primary_key_.back());
    }
    PrefixProbe probe(primary_key_, primary_order_->info(), 0);
    if (cursor_.seek_equal(probe) != Hit::kRow) {
      cx.fail(rc::kCorruptIndex, "database disk image is malformed");
      return false;
    }
  }
  row_found_ = true;
  record_known_ = false;
  return true;
}

void TableCursor::column(int column, Value& out, Cx& cx) {
  refresh(cx);
  const Column& definition = table_->columns[static_cast<size_t>(column)];
  if (column == table_->rowid_column) {
    out.set_integer(rowid());
    return;
  }
  bool present = false;
  if (index_ != nullptr && index_place_[static_cast<size_t>(column)] >= 0) {
    if (!load_index_record(cx)) {
      out.set_null();
      return;
    }
    present = index_record_.column(index_place_[static_cast<size_t>(column)], out);
  } else {
    if (!load_record(cx)) {
      out.set_null();
      return;
    }
    present = record_.column(definition.record_at, out);
  }
  if (!present) {
    out = definition.added_default;
    return;
  }
  if (definition.affinity == Affinity::kReal && out.is_integer()) {
    out.set_real(static_cast<f64>(out.raw_integer()));
  }
}

void TableCursor::columns(std::span<const ColumnPick> picks, Value* out, Cx& cx) {
  refresh(cx);
  ByteView payload;
  const bool found = row_found_ || find_row(cx);
  if (!found || cursor_.restore() != Hit::kRow || cursor_.payload(&payload) != Hit::kRow) {
    cx.fail(rc::kCorrupt, "database disk image is malformed");
    for (const ColumnPick& pick : picks) out[pick.out].set_null();
    return;
  }
  RecordWalk walk(base::as_text(payload));
  int at = 0;
  for (const ColumnPick& pick : picks) {
    for (; at < pick.record_at; ++at) walk.skip();
    ++at;
    Value& to = out[pick.out];
    if (!walk.next(to)) {
      to = table_->columns[static_cast<size_t>(pick.column)].added_default;
      continue;
    }
    if (pick.is_real && to.is_integer()) to.set_real(static_cast<f64>(to.raw_integer()));
    if (cx.session.encoding != Encoding::kUtf8) [[unlikely]]
      text_from_stored(to, cx.session.encoding);
  }
}

i64 TableCursor::rowid() {
  if (index_ == nullptr) {
    if (cursor_.restore() != Hit::kRow) return 0;
    return cursor_.rowid();
  }
  if (row_found_) return cursor_.rowid();
  ByteView payload;
  if (index_cursor_.restore() != Hit::kRow || index_cursor_.payload(&payload) != Hit::kRow)
    return 0;
  return last_integer(base::as_text(payload));
}

}  // namespace db
