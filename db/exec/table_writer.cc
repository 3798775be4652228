#include "db/exec/table_writer.h"

#include "db/exec/eval.h"

#include <algorithm>

namespace db {
namespace {

using sql::ConflictAction;

const char* type_name(const Value& value) {
  static constexpr const char* kNames[] = {"NULL", "INTEGER", "REAL", "TEXT", "BLOB"};
  return kNames[static_cast<int>(value.type())];
}

std::string upper_ascii(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return text;
}

ConflictAction choose(ConflictAction statement, ConflictAction own) {
  if (statement != ConflictAction::kDefault) return statement;
  return own != ConflictAction::kDefault ? own : ConflictAction::kAbort;
}

// Would applying the affinity leave the value as it is? Most often one look tells.
bool has_affinity(const Value& value, Affinity affinity) {
  switch (affinity) {
    case Affinity::kNone:
    case Affinity::kBlob:
      return true;
    case Affinity::kText:
      return value.is_text();
    case Affinity::kNumeric:
    case Affinity::kInteger:
      return value.is_integer();
    case Affinity::kReal:
      return value.is_real();
  }
  return false;
}

bool fits_strict(Value& value, StrictType type) {
  switch (type) {
    case StrictType::kNone:
    case StrictType::kAny:
      return true;
    case StrictType::kInteger:
      return value.is_integer();
    case StrictType::kReal:
      return value.is_real();
    case StrictType::kText:
      return value.is_text();
    case StrictType::kBlob:
      return value.is_blob();
  }
  return true;
}

}  // namespace

std::string describe_columns(const Index& index) {
  std::string text;
  for (int i = 0; i < index.key_columns; ++i) {
    int column = index.columns[static_cast<size_t>(i)].column;
    if (column == kExpression) return "index '" + index.name + "'";
    if (i > 0) text += ", ";
    const Table& table = *index.table;
    std::string name =
        column == kRowid
            ? (table.rowid_column >= 0 ? table.columns[static_cast<size_t>(table.rowid_column)].name
                                       : "rowid")
            : table.columns[static_cast<size_t>(column)].name;
    text += table.name + "." + name;
  }
  return text;
}

bool TableWriter::storage_failed(Cursor& cursor) {
  cx_.fail(cursor.error());
  return false;
}

bool TableWriter::fail(ConflictAction action, int code, std::string text) {
  failed_action = action;
  cx_.fail(code, std::move(text));
  return false;
}

bool TableWriter::open() {
  if (open_) return true;
  const Table& table = *plan_.table;
  has_unique_ = table.without_rowid;
  for (const IndexWrite& write : plan_.indexes) has_unique_ |= write.index->unique;
  has_constraints_ = !plan_.checks.empty();
  for (const Column& column : table.columns)
    has_constraints_ |= column.not_null || column.strict != StrictType::kNone;
  list_fields();
  if (table.kind != TableKind::kTable) return true;
  Store* store = cx_.session.databases[static_cast<size_t>(plan_.database)]->store.get();
  if (table.without_rowid) {
    primary_order_ = std::make_unique<IndexOrder>(*table.primary, cx_.session);
    cursor_.open(*store, table.root, primary_order_.get());
  } else {
    cursor_.open(*store, table.root, nullptr);
  }
  trees_.clear();
  for (const IndexWrite& write : plan_.indexes) {
    auto tree = std::make_unique<IndexTree>();
    tree->write = &write;
    tree->order = std::make_unique<IndexOrder>(*write.index, cx_.session);
    tree->cursor.open(*store, write.index->root, tree->order.get());
    trees_.push_back(std::move(tree));
  }
  open_ = true;
  return true;
}

void TableWriter::list_fields() {
  const Table& table = *plan_.table;
  fields_.clear();
  virtual_.clear();
  auto add = [&](int column) {
    fields_.push_back({column, table.columns[static_cast<size_t>(column)].affinity,
                       column == table.rowid_column});
  };
  if (table.kind != TableKind::kTable) {
    for (size_t i = 0; i < table.columns.size(); ++i) add(static_cast<int>(i));
    return;
  }
  for (int column : table.record_columns) add(column);
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].record_at < 0) virtual_.push_back(static_cast<int>(i));
  }
}

void TableWriter::close() {
  cursor_.close();
  trees_.clear();
  open_ = false;
}

bool TableWriter::show(const Value* row) {
  Slot& slot = cx_.slots[static_cast<size_t>(plan_.slot)];
  slot.row = const_cast<Value*>(row);
  slot.map = nullptr;
  slot.null_row = false;
  return true;
}

void TableWriter::complete(Value* row) {
  const Table& table = *plan_.table;
  for (const Field& field : fields_) {
    Value& value = row[field.column];
    if (field.is_rowid) {
      value = row[table.columns.size()];
    } else if (!has_affinity(value, field.affinity)) {
      apply_affinity(value, field.affinity);
    }
  }
  if (plan_.generated.empty()) return;
  show(row);
  for (const GeneratedWrite& generated : plan_.generated) {
    Value& to = row[generated.column];
    eval(generated.value, cx_, to);
    apply_affinity(to, table.columns[static_cast<size_t>(generated.column)].affinity);
    to.keep();
  }
}

Written TableWriter::check(Value* row, ConflictAction statement, const List<Expr*>* defaults) {
  if (!has_constraints_) return Written::kYes;
  const Table& table = *plan_.table;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    if (static_cast<int>(i) == table.rowid_column) continue;
    if (row[i].is_null() && column.not_null) {
      ConflictAction action = choose(statement, column.not_null_conflict);
      if (action == ConflictAction::kIgnore) return Written::kSkipped;
      if (action == ConflictAction::kReplace) {
        if (defaults != nullptr && (*defaults)[i] != nullptr) {
          eval((*defaults)[i], cx_, row[i]);
          apply_affinity(row[i], column.affinity);
          row[i].keep();
        }
        action = ConflictAction::kAbort;
      }
      if (row[i].is_null()) {
        fail(action, rc::kConstraintNotNull,
             "NOT NULL constraint failed: " + table.name + "." + column.name);
        return Written::kFailed;
      }
    }
    if (column.strict == StrictType::kNone || row[i].is_null()) continue;
    if (fits_strict(row[i], column.strict)) continue;
    fail(statement == ConflictAction::kDefault ? ConflictAction::kAbort : statement,
         rc::kConstraintDatatype,
         std::string("cannot store ") + type_name(row[i]) + " value in " +
             upper_ascii(column.declared_type) + " column " + table.name + "." + column.name);
    return Written::kFailed;
  }
  if (plan_.checks.empty() || cx_.session.ignore_check_constraints) return Written::kYes;
  show(row);
  for (u32 i = 0; i < plan_.checks.size(); ++i) {
    int truth = eval_truth(plan_.checks[i], cx_);
    if (cx_.failed()) return Written::kFailed;
    if (truth != 0) continue;
    ConflictAction action = choose(statement, ConflictAction::kAbort);
    if (action == ConflictAction::kIgnore) return Written::kSkipped;
    if (action == ConflictAction::kReplace) action = ConflictAction::kAbort;
    fail(action, rc::kConstraintCheck,
         "CHECK constraint failed: " + std::string(plan_.check_names[i]));
    return Written::kFailed;
  }
  return Written::kYes;
}

bool TableWriter::index_values(const IndexTree& tree, const Value* row, std::vector<Value>* out,
                               bool* applies) {
  const Index& index = *tree.write->index;
  *applies = true;
  bool shown = false;
  if (tree.write->where != nullptr) {
    shown = show(row);
    *applies = eval_truth(tree.write->where, cx_) == 1;
    if (!*applies) return !cx_.failed();
  }
  out->clear();
  size_t width = plan_.table->columns.size();
  for (u32 i = 0; i < index.columns.size(); ++i) {
    int column = index.columns[i].column;
    out->emplace_back();
    if (column == kRowid) {
      out->back() = row[width];
    } else if (column >= 0) {
      out->back() = row[column];
      if (plan_.table->columns[static_cast<size_t>(column)].affinity == Affinity::kReal) {
        real_as_integer(out->back());
      }
    } else {
      if (!shown) shown = show(row);
      eval(tree.write->exprs[i], cx_, out->back());
      out->back().keep();
    }
  }
  return !cx_.failed();
}

bool TableWriter::conflict_of(const Index* index, ConflictAction own, ConflictAction statement,
                              const Value* key, std::vector<Conflict>* out) {
  Conflict conflict;
  conflict.index = index;
  conflict.action = choose(statement, own);
  if (!read(key, &conflict.row)) return !cx_.failed();
  out->push_back(std::move(conflict));
  return true;
}

bool TableWriter::find_conflicts(const Value* row, const Value* old_row, ConflictAction statement,
                                 bool rowid_is_free, std::vector<Conflict>* out) {
  const Table& table = *plan_.table;
  size_t width = table.columns.size();
  if (!table.without_rowid) {
    bool same = rowid_is_free ||
                (old_row != nullptr && old_row[width].raw_integer() == row[width].raw_integer());
    if (!same) {
      Hit hit = cursor_.seek_equal(row[width].raw_integer());
      if (hit == Hit::kError) return storage_failed(cursor_);
      if (hit == Hit::kRow &&
          !conflict_of(nullptr, table.rowid_conflict, statement, &row[width], out)) {
        return false;
      }
    }
  } else {
    std::vector<Value> key;
    for (int i = 0; i < table.primary->key_columns; ++i) {
      key.push_back(row[table.primary->columns[static_cast<size_t>(i)].column]);
    }
    bool same = old_row != nullptr;
    for (int i = 0; i < table.primary->key_columns && same; ++i) {
      const auto& info = primary_order_->info().columns[static_cast<size_t>(i)];
      same = compare(key[static_cast<size_t>(i)],
                     old_row[table.primary->columns[static_cast<size_t>(i)].column],
                     info.collation) == 0;
    }
    if (!same && !conflict_of(table.primary, table.primary->conflict, statement, key.data(), out)) {
      return false;
    }
  }
  std::vector<Value> key;
  for (auto& tree : trees_) {
    const Index& index = *tree->write->index;
    if (!index.unique) continue;
    bool applies = false;
    if (!index_values(*tree, row, &key, &applies)) return false;
    if (!applies) continue;
    bool has_null = false;
    for (int i = 0; i < index.key_columns; ++i) has_null |= key[static_cast<size_t>(i)].is_null();
    if (has_null) continue;
    PrefixProbe probe({key.data(), static_cast<size_t>(index.key_columns)}, tree->order->info(), 0);
    Hit hit = tree->cursor.seek_equal(probe);
    if (hit == Hit::kError) return storage_failed(tree->cursor);
    if (hit != Hit::kRow) continue;
    ByteView payload;
    if (tree->cursor.payload(&payload) != Hit::kRow) return storage_failed(tree->cursor);
    std::vector<Value> stored;
    const size_t whole =
        table.without_rowid ? index.columns.size() : static_cast<size_t>(index.key_columns) + 1;
    if (!decode_record(base::as_text(payload), stored, cx_.session.encoding) ||
        stored.size() < whole) {
      cx_.fail(rc::kCorrupt, "database disk image is malformed");
      return false;
    }
    for (Value& value : stored) value.keep();
    if (!table.without_rowid) {
      Value rowid = stored.back();
      if (old_row != nullptr && rowid.to_integer() == old_row[width].raw_integer()) continue;
      if (!conflict_of(&index, index.conflict, statement, &rowid, out)) return false;
    } else {
      std::vector<Value> primary;
      bool same = old_row != nullptr;
      for (int i = 0; i < table.primary->key_columns; ++i) {
        int column = table.primary->columns[static_cast<size_t>(i)].column;
        for (size_t c = 0; c < index.columns.size(); ++c) {
          if (index.columns[c].column != column) continue;
          primary.push_back(stored[c]);
          break;
        }
        same = same && compare(primary.back(), old_row[column]) == 0;
      }
      if (same) continue;
      if (!conflict_of(&index, index.conflict, statement, primary.data(), out)) return false;
    }
  }
  auto decisive = std::find_if(out->begin(), out->end(), [](const Conflict& one) {
    return one.action != ConflictAction::kReplace;
  });
  if (decisive != out->end()) std::iter_swap(out->begin(), decisive);
  return true;
}

void TableWriter::fail_conflict(const Conflict& conflict) {
  const Table& table = *plan_.table;
  if (conflict.index == nullptr) {
    bool named = table.rowid_column >= 0;
    fail(conflict.action, named ? rc::kConstraintPrimaryKey : rc::kConstraintRowid,
         "UNIQUE constraint failed: " + table.name + "." +
             (named ? table.columns[static_cast<size_t>(table.rowid_column)].name : "rowid"));
    return;
  }
  bool primary = conflict.index->origin == 'p';
  fail(conflict.action, primary ? rc::kConstraintPrimaryKey : rc::kConstraintUnique,
       "UNIQUE constraint failed: " + describe_columns(*conflict.index));
}

ByteView TableWriter::table_record(const Value* row) {
  record_.clear();
  for (const Field& field : fields_) {
    if (field.is_rowid) {
      record_.add_null();
    } else if (field.affinity == Affinity::kReal) {
      record_.add_real_column(row[field.column]);
    } else {
      record_.add(row[field.column]);
    }
  }
  return base::as_bytes(record_.finish());
}

bool TableWriter::insert_index(IndexTree& tree, const std::vector<Value>& key) {
  record_.clear();
  for (const Value& value : key) record_.add(value);
  PrefixProbe probe(key, tree.order->info(), 0);
  if (tree.cursor.insert(base::as_bytes(record_.finish()), &probe) == Hit::kError) {
    return storage_failed(tree.cursor);
  }
  return true;
}

bool TableWriter::erase_index(IndexTree& tree, const std::vector<Value>& key) {
  PrefixProbe probe(key, tree.order->info(), 0);
  Hit hit = tree.cursor.seek_equal(probe);
  if (hit == Hit::kRow) hit = tree.cursor.erase();
  return hit == Hit::kError ? storage_failed(tree.cursor) : true;
}

bool TableWriter::insert(Value* row) {
  const Table& table = *plan_.table;
  ++cx_.session.write_epoch;
  for (auto& tree : trees_) {
    bool applies = false;
    if (!index_values(*tree, row, &scratch_, &applies)) return false;
    if (applies && !insert_index(*tree, scratch_)) return false;
  }
  const ByteView record = table_record(row);
  Hit hit = Hit::kRow;
  if (table.without_rowid) {
    primary_key(row, &scratch_);
    PrefixProbe probe(scratch_, primary_order_->info(), 0);
    hit = cursor_.insert(record, &probe);
  } else {
    hit = cursor_.insert(row[width()].raw_integer(), record);
  }
  return hit == Hit::kError ? storage_failed(cursor_) : true;
}

// The values of the primary key as the record holds them. WITHOUT ROWID tables.
void TableWriter::primary_key(const Value* row, std::vector<Value>* key) const {
  const Table& table = *plan_.table;
  key->clear();
  for (int i = 0; i < table.primary->key_columns; ++i) {
    const int column = table.primary->columns[static_cast<size_t>(i)].column;
    key->push_back(row[column]);
    if (table.columns[static_cast<size_t>(column)].affinity == Affinity::kReal)
      real_as_integer(key->back());
  }
}

// Do both rows have the same entry in this index, as plain columns show at a glance?
bool TableWriter::same_key(const IndexTree& tree, const Value* old_row, const Value* row) const {
  if (tree.write->where != nullptr) return false;
  for (const IndexColumn& one : tree.write->index->columns) {
    if (one.column == kExpression) return false;
    const size_t at = one.column == kRowid ? width() : static_cast<size_t>(one.column);
    const Value& before = old_row[at];
    const Value& after = row[at];
    if (before.type() != after.type()) return false;
    if (before.has_bytes() && before.bytes().data() == after.bytes().data() &&
        before.bytes().size() == after.bytes().size())
      continue;
    if (compare(before, after) != 0) return false;
  }
  return true;
}

bool TableWriter::update(const Value* old_row, Value* row) {
  const Table& table = *plan_.table;
  ++cx_.session.write_epoch;
  std::vector<Value>& before = scratch_;
  std::vector<Value>& after = scratch_key_;
  for (auto& tree : trees_) {
    if (same_key(*tree, old_row, row)) continue;
    bool had = false;
    bool has = false;
    if (!index_values(*tree, old_row, &before, &had) || !index_values(*tree, row, &after, &has)) {
      return false;
    }
    if (had && has) {
      bool same = true;
      for (size_t i = 0; i < before.size() && same; ++i) {
        same = before[i].type() == after[i].type() && compare(before[i], after[i]) == 0;
      }
      if (same) continue;
    }
    if (had && !erase_index(*tree, before)) return false;
    if (has && !insert_index(*tree, after)) return false;
  }
  const ByteView record = table_record(row);
  Hit hit = Hit::kRow;
  if (table.without_rowid) {
    old_key_.clear();
    bool same = true;
    size_t keys = static_cast<size_t>(table.primary->key_columns);
    for (size_t i = 0; i < keys; ++i) {
      int column = table.primary->columns[i].column;
      old_key_.push_back(old_row[column]);
      same = same && old_row[column].type() == row[column].type() &&
             compare(old_row[column], row[column]) == 0;
    }
    if (!same) {
      PrefixProbe old_probe(old_key_, primary_order_->info(), 0);
      hit = cursor_.seek_equal(old_probe);
      if (hit == Hit::kRow) hit = cursor_.erase();
      if (hit == Hit::kError) return storage_failed(cursor_);
    }
    primary_key(row, &scratch_);
    PrefixProbe probe(scratch_, primary_order_->info(), 0);
    hit = cursor_.insert(record, &probe);
  } else {
    i64 old_rowid = old_row[width()].raw_integer();
    i64 rowid = row[width()].raw_integer();
    if (at_ != nullptr) {
      return at_->overwrite(rowid, record) == Hit::kError ? storage_failed(*at_) : true;
    }
    if (old_rowid != rowid) {
      hit = cursor_.seek_equal(old_rowid);
      if (hit == Hit::kRow) hit = cursor_.erase();
      if (hit == Hit::kError) return storage_failed(cursor_);
    }
    hit = cursor_.insert(rowid, record);
  }
  return hit == Hit::kError ? storage_failed(cursor_) : true;
}

bool TableWriter::remove(const Value* old_row) {
  const Table& table = *plan_.table;
  ++cx_.session.write_epoch;
  for (auto& tree : trees_) {
    bool applies = false;
    if (!index_values(*tree, old_row, &scratch_, &applies)) return false;
    if (applies && !erase_index(*tree, scratch_)) return false;
  }
  if (at_ != nullptr) return at_->erase() == Hit::kError ? storage_failed(*at_) : true;
  Hit hit = Hit::kRow;
  if (table.without_rowid) {
    old_key_.clear();
    for (int i = 0; i < table.primary->key_columns; ++i) {
      old_key_.push_back(old_row[table.primary->columns[static_cast<size_t>(i)].column]);
    }
    PrefixProbe probe(old_key_, primary_order_->info(), 0);
    hit = cursor_.seek_equal(probe);
  } else {
    hit = cursor_.seek_equal(old_row[width()].raw_integer());
  }
  if (hit == Hit::kRow) hit = cursor_.erase();
  return hit == Hit::kError ? storage_failed(cursor_) : true;
}

Hit TableWriter::seek_row(const Value* key) {
  const Table& table = *plan_.table;
  if (table.without_rowid) {
    PrefixProbe probe({key, static_cast<size_t>(table.primary->key_columns)},
                      primary_order_->info(), 0);
    return cursor_.seek_equal(probe);
  }
  return key->is_integer() ? cursor_.seek_equal(key->raw_integer()) : Hit::kEnd;
}

bool TableWriter::read(const Value* key, std::vector<Value>* row) {
  const Hit hit = seek_row(key);
  if (hit == Hit::kError) return storage_failed(cursor_);
  return hit == Hit::kRow && read_current(row);
}

bool TableWriter::read_current(std::vector<Value>* row) {
  ByteView payload;
  if (cursor_.payload(&payload) != Hit::kRow) return storage_failed(cursor_);
  return decode_row(base::as_text(payload), plan_.table->without_rowid ? 0 : cursor_.rowid(), true,
                    row);
}

bool TableWriter::read_borrowed(const Value* key, std::vector<Value>* row) {
  const Hit hit = seek_row(key);
  if (hit == Hit::kError) return storage_failed(cursor_);
  ByteView payload;
  if (hit != Hit::kRow) return false;
  if (cursor_.payload(&payload) != Hit::kRow) return storage_failed(cursor_);
  row_bytes_.assign(base::as_text(payload));
  return decode_row(row_bytes_, plan_.table->without_rowid ? 0 : cursor_.rowid(), false, row);
}

bool TableWriter::read_here(std::vector<Value>* row) {
  ByteView payload;
  if (at_->payload(&payload) != Hit::kRow) return storage_failed(*at_);
  row_bytes_.assign(base::as_text(payload));
  return decode_row(row_bytes_, at_->rowid(), false, row);
}

bool TableWriter::decode_row(std::string_view record, i64 rowid, bool keep,
                             std::vector<Value>* row) {
  const Table& table = *plan_.table;
  row->resize(width() + 1);
  Value* const values = row->data();
  const bool utf16 = encoding() != Encoding::kUtf8;
  RecordWalk walk(record);
  for (const Field& field : fields_) {
    Value& to = values[field.column];
    const bool present = walk.next(to);
    if (field.is_rowid) {
      to.set_integer(rowid);
      continue;
    }
    if (!present) {
      to = table.columns[static_cast<size_t>(field.column)].added_default;
    } else if (utf16) [[unlikely]] {
      text_from_stored(to, encoding());
    }
    if (field.affinity == Affinity::kReal && to.is_integer())
      to.set_real(static_cast<f64>(to.raw_integer()));
    if (keep) to.keep();
  }
  for (int column : virtual_) values[column].set_null();
  row->back().set_null();
  if (!table.without_rowid) row->back().set_integer(rowid);
  if (table.has_virtual_columns) {
    show(row->data());
    for (const GeneratedWrite& generated : plan_.generated) {
      if (table.columns[static_cast<size_t>(generated.column)].generated != Generated::kVirtual)
        continue;
      Value& to = (*row)[static_cast<size_t>(generated.column)];
      eval(generated.value, cx_, to);
      apply_affinity(to, table.columns[static_cast<size_t>(generated.column)].affinity);
      to.keep();
    }
  }
  return !cx_.failed();
}

i64 TableWriter::new_rowid() {
  Hit hit = cursor_.last();
  if (hit == Hit::kError) {
    storage_failed(cursor_);
    return 0;
  }
  if (hit == Hit::kEnd) return 1;
  i64 last = cursor_.rowid();
  if (last < INT64_MAX) return last + 1;
  // The largest rowid is taken: look for a free one at random, as SQLite does.
  u64 seed =
      static_cast<u64>(cx_.session.total_changes) * 6364136223846793005u + 1442695040888963407u;
  for (int attempt = 0; attempt < 100; ++attempt) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    i64 candidate = static_cast<i64>(seed >> 2) + 1;
    if (cursor_.seek_equal(candidate) == Hit::kEnd) return candidate;
  }
  cx_.fail(rc::kFull, "database or disk is full");
  return 0;
}

}  // namespace db
