// Columns of values for the vectorised executor: a batch is up to 1,024 rows in columns, and a
// selection of the rows that are still wanted.
//
// A Vector holds a type, eight bytes and a length for each row. Text and blobs point at bytes that
// the batch keeps alive: pinned pages, or its arena; both last until the batch's maker is asked
// for the next one. Values copied out must be kept. Single-threaded.
#pragma once

#include "db/sql/arena.h"
#include "db/value/value.h"

#include <memory>
#include <vector>

namespace db {

inline constexpr u32 kBatchRows = 1024;

union VectorCell {
  i64 i;
  f64 r;
  const char* p;
};

struct Vector {
  Type types[kBatchRows];
  VectorCell cells[kBatchRows];
  u32 sizes[kBatchRows];  // of text and blobs, in bytes

  void set_null(u32 at) { types[at] = Type::kNull; }
  void set_integer(u32 at, i64 value) {
    types[at] = Type::kInteger;
    cells[at].i = value;
  }
  void set_real(u32 at, f64 value) {
    types[at] = value == value ? Type::kReal : Type::kNull;
    cells[at].r = value;
  }
  void set_bytes(u32 at, Type type, const char* bytes, u32 size) {
    types[at] = type;
    cells[at].p = bytes;
    sizes[at] = size;
  }
  void set_truth(u32 at, int truth) {
    types[at] = truth < 0 ? Type::kNull : Type::kInteger;
    cells[at].i = truth;
  }
  void copy(u32 at, const Vector& from, u32 from_at) {
    types[at] = from.types[from_at];
    cells[at] = from.cells[from_at];
    sizes[at] = from.sizes[from_at];
  }
  std::string_view bytes(u32 at) const { return {cells[at].p, sizes[at]}; }
  // The value, borrowing its bytes.
  void load(u32 at, Value& out) const {
    switch (types[at]) {
      case Type::kNull:
        out.set_null();
        return;
      case Type::kInteger:
        out.set_integer(cells[at].i);
        return;
      case Type::kReal:
        out.set_real(cells[at].r);
        return;
      default:
        out.set_borrowed(types[at], cells[at].p, sizes[at]);
    }
  }
  // Points at the value's bytes.
  void borrow(u32 at, const Value& value) {
    types[at] = value.type();
    if (value.is_integer()) {
      cells[at].i = value.raw_integer();
    } else if (value.is_real()) {
      cells[at].r = value.raw_real();
    } else if (value.has_bytes()) {
      set_bytes(at, value.type(), value.bytes().data(), static_cast<u32>(value.bytes().size()));
    }
  }
  // Text and blobs are copied into the arena.
  void store(u32 at, const Value& value, sql::Arena& arena) {
    types[at] = value.type();
    if (value.is_integer()) {
      cells[at].i = value.raw_integer();
    } else if (value.is_real()) {
      cells[at].r = value.raw_real();
    } else if (value.has_bytes()) {
      std::string_view bytes = value.bytes();
      char* to = static_cast<char*>(arena.allocate(bytes.size() + 1, 1));
      std::memcpy(to, bytes.data(), bytes.size());
      set_bytes(at, value.type(), to, static_cast<u32>(bytes.size()));
    }
  }
  // -1 NULL, 0 false, 1 true.
  int truth(u32 at) const {
    if (types[at] == Type::kInteger) return cells[at].i != 0;
    if (types[at] == Type::kNull) return -1;
    if (types[at] == Type::kReal) return cells[at].r != 0;
    Value value;
    load(at, value);
    return value.to_truth();
  }
};

// Places of rows, ascending.
struct Selection {
  u32 count = 0;
  u16 rows[kBatchRows];

  void fill(u32 rows_count) {
    count = rows_count;
    for (u32 i = 0; i < rows_count; ++i) rows[i] = static_cast<u16>(i);
  }
};

// A column of a FROM item: kRowid's number is the item's width, as in a slot.
struct ColumnRef {
  int slot = 0;
  int column = 0;
  bool operator==(const ColumnRef&) const = default;
};

struct Batch {
  struct Column {
    ColumnRef ref;
    std::unique_ptr<Vector> vector;
  };
  u32 rows = 0;
  Selection selection;
  std::vector<Column> columns;
  sql::Arena arena{65536};

  Vector& add(ColumnRef ref) {
    columns.push_back({ref, std::make_unique<Vector>()});
    return *columns.back().vector;
  }
  Vector* find(ColumnRef ref) {
    for (Column& column : columns) {
      if (column.ref == ref) return column.vector.get();
    }
    return nullptr;
  }
};

}  // namespace db
