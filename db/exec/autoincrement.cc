// AUTOINCREMENT: rowids never come twice; sqlite_sequence remembers the largest.
#include "db/exec/dml_execution.h"

namespace db {
namespace {

Table* sequence_table(const Table& table) {
  return table.schema->find_table("sqlite_sequence");
}

}  // namespace

bool DmlExecution::next_autoincrement(i64* rowid, Cx& cx) {
  if (!note_autoincrement(0)) return false;
  i64 largest = writer_.new_rowid();
  if (largest == 0 && cx.failed()) return false;
  i64 next = std::max(sequence_ + 1, largest);
  if (sequence_ == INT64_MAX) {
    cx.fail(rc::kFull, "database or disk is full");
    return false;
  }
  *rowid = next;
  sequence_ = next;
  sequence_changed_ = true;
  return true;
}

bool DmlExecution::note_autoincrement(i64 rowid) {
  if (!sequence_known_) {
    const Table& table = writer_.table();
    sequence_known_ = true;
    sequence_ = 0;
    sequence_row_ = 0;
    Table* sequence = sequence_table(table);
    if (sequence != nullptr) {
      Cursor cursor(*table.schema->store, sequence->root, nullptr);
      for (Hit hit = cursor.first(); hit == Hit::kRow; hit = cursor.next()) {
        ByteView payload;
        if (cursor.payload(&payload) != Hit::kRow) break;
        RecordView view(base::as_text(payload));
        view.set_encoding(writer_.encoding());
        Value name;
        view.column(0, name);
        if (!name.is_text() || name.bytes() != table.name) continue;
        Value value;
        view.column(1, value);
        sequence_ = value.to_integer();
        sequence_row_ = cursor.rowid();
        break;
      }
    }
  }
  if (rowid > sequence_) {
    sequence_ = rowid;
    sequence_changed_ = true;
  }
  return true;
}

bool DmlExecution::store_autoincrement(Cx& cx) {
  const Table& table = writer_.table();
  Table* sequence = sequence_table(table);
  if (sequence == nullptr) return true;
  Cursor cursor(*table.schema->store, sequence->root, nullptr);
  i64 rowid = sequence_row_;
  if (rowid == 0) {
    rowid = cursor.last() == Hit::kRow ? cursor.rowid() + 1 : 1;
    sequence_row_ = rowid;
  }
  std::string record;
  Value values[2] = {Value::borrowed_text(table.name), Value::integer(sequence_)};
  encode_record(values, record, cx.session.encoding);
  if (cursor.insert(rowid, base::as_bytes(record)) == Hit::kError) {
    cx.fail(cursor.error());
    return false;
  }
  sequence_changed_ = false;
  return true;
}

}  // namespace db
