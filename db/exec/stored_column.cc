#include "db/exec/stored_column.h"

namespace db {

void StoredColumn::append(const Vector& from, u32 at, sql::Arena& arena) {
  Type type = from.types[at];
  types.push_back(type);
  cells.push_back(from.cells[at]);
  u32 size = 0;
  if (type >= Type::kText) {
    size = from.sizes[at];
    char* copy = static_cast<char*>(arena.allocate(size + 1, 1));
    std::memcpy(copy, from.cells[at].p, size);
    cells.back().p = copy;
  }
  sizes.push_back(size);
}

void StoredColumn::load(u32 row, Value& out) const {
  switch (types[row]) {
    case Type::kNull:
      out.set_null();
      return;
    case Type::kInteger:
      out.set_integer(cells[row].i);
      return;
    case Type::kReal:
      out.set_real(cells[row].r);
      return;
    default:
      out.set_borrowed(types[row], cells[row].p, sizes[row]);
  }
}

void StoredColumn::load(const u32* rows, u32 count, Vector& to) const {
  for (u32 i = 0; i < count; ++i) {
    u32 row = rows[i];
    if (row == kNoRow) {
      to.set_null(i);
      continue;
    }
    to.types[i] = types[row];
    to.cells[i] = cells[row];
    to.sizes[i] = sizes[row];
  }
}

}  // namespace db
