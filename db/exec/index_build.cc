#include "db/exec/index_build.h"

#include "db/exec/execution.h"
#include "db/exec/table_writer.h"
#include "db/plan/dml_binder.h"
#include "db/value/sort_prefix.h"

#include <algorithm>
#include <cstring>

namespace db {

void IndexBuild::add(std::string_view record) {
  const u32 size = static_cast<u32>(record.size());
  const size_t bytes = sizeof size + record.size();
  if (left_ < bytes) {
    left_ = std::max(kBlockBytes, bytes);
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(left_));
    at_ = blocks_.back().get();
  }
  std::memcpy(at_, &size, sizeof size);
  std::memcpy(at_ + sizeof size, record.data(), record.size());
  entries_.push_back({prefix_of(record), at_});
  at_ += bytes;
  left_ -= bytes;
}

u64 IndexBuild::prefix_of(std::string_view record) const {
  RecordView view(record);
  view.set_encoding(info_.encoding);
  Value value;
  view.column(0, value);
  const u64 prefix = sort_prefix(value, info_.columns[0].collation);
  return info_.columns[0].descending ? ~prefix : prefix;
}

bool IndexBuild::is_plain(const Table& table) const {
  if (info_.encoding != Encoding::kUtf8) return false;
  if (index_.where != nullptr || table.kind != TableKind::kTable) return false;
  for (const IndexColumn& one : index_.columns) {
    if (one.column == kExpression) return false;
    if (one.column < 0 || one.column == table.rowid_column) continue;
    if (table.columns[static_cast<size_t>(one.column)].record_at < 0) return false;
  }
  return true;
}

Status IndexBuild::add_plain(Cursor& rows, const Table& table) {
  RecordBuilder key;
  RecordView view;
  Value value;
  Hit hit = rows.first();
  for (; hit == Hit::kRow; hit = rows.next()) {
    ByteView payload;
    if (rows.payload(&payload) != Hit::kRow) return rows.error();
    view.reset(base::as_text(payload));
    key.clear();
    for (const IndexColumn& one : index_.columns) {
      if (one.column < 0 || one.column == table.rowid_column) {
        key.add(Value::integer(rows.rowid()));
        continue;
      }
      const Column& column = table.columns[static_cast<size_t>(one.column)];
      if (!view.column(column.record_at, value)) value = column.added_default;
      if (column.affinity == Affinity::kReal) {
        key.add_real_column(value);
      } else {
        key.add(value);
      }
    }
    add(key.finish());
  }
  if (hit == Hit::kError) return rows.error();
  return {};
}

Status IndexBuild::add_table(Session& session, const Table& table) {
  Program program;
  Binder binder(session, program.arena);
  DmlBinder dml(binder, nullptr);
  WritePlan* plan = dml.write_plan(&table);
  if (plan == nullptr) return binder.error();
  program.take_counts(binder);
  Cx cx(session);
  program.fit(cx);
  TableWriter writer(*plan, cx);
  if (!writer.open()) return Error(cx.code, cx.message);
  if (is_plain(table)) return add_plain(writer.rows(), table);
  int number = -1;
  for (u32 i = 0; i < plan->indexes.size(); ++i) {
    if (plan->indexes[i].index == &index_) number = static_cast<int>(i);
  }
  if (number < 0) return {};
  std::vector<Value> row, values;
  RecordBuilder key;
  key.set_encoding(info_.encoding);
  Cursor& cursor = writer.rows();
  Hit hit = cursor.first();
  for (; hit == Hit::kRow; hit = cursor.next()) {
    bool applies = false;
    if (!writer.read_current(&row) || !writer.index_key(number, row.data(), &values, &applies))
      return Error(cx.code, cx.message);
    if (!applies) continue;
    key.clear();
    for (const Value& value : values) key.add(value);
    add(key.finish());
  }
  if (hit == Hit::kError) return cursor.error();
  return {};
}

// Do two neighbours violate UNIQUE?
bool IndexBuild::same_key(const Entry& a, const Entry& b) const {
  if (a.prefix != b.prefix) return false;
  std::vector<Value> left, right;
  decode_record(a.bytes(), left, info_.encoding);
  decode_record(b.bytes(), right, info_.encoding);
  const size_t declared = static_cast<size_t>(index_.key_columns);
  if (left.size() < declared || right.size() < declared) return false;
  for (size_t i = 0; i < declared; ++i) {
    if (left[i].is_null()) return false;
  }
  return compare_keys({left.data(), declared}, {right.data(), declared}, info_) == 0;
}

Status IndexBuild::write(Cursor& tree) {
  std::sort(entries_.begin(), entries_.end(), [this](const Entry& a, const Entry& b) {
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    return compare_records(a.bytes(), b.bytes(), info_) < 0;
  });
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (index_.unique && i > 0 && same_key(entries_[i - 1], entries_[i])) {
      return Error(rc::kConstraintUnique, "UNIQUE constraint failed: " + describe_columns(index_));
    }
    if (tree.append(base::as_bytes(entries_[i].bytes())) == Hit::kError) return tree.error();
  }
  return {};
}

}  // namespace db
