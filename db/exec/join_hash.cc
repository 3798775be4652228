#include "db/exec/join_hash.h"

#include "db/exec/eval.h"

namespace db {
namespace {

constexpr u64 kMix = 0x9e3779b97f4a7c15u;

u64 mix(u64 x) {
  x ^= x >> 32;
  x *= kMix;
  return x ^ (x >> 29);
}

u64 hash_bytes(const char* p, u32 size) {
  u64 h = size * kMix;
  for (; size >= 8; p += 8, size -= 8) {
    u64 word;
    std::memcpy(&word, p, 8);
    h = mix(h ^ word) * kMix;
  }
  u64 tail = 0;
  std::memcpy(&tail, p, size);
  return mix(h ^ tail);
}

}  // namespace

u64 hash_cell(const Vector& values, u32 at, const Collation* collation) {
  switch (values.types[at]) {
    case Type::kNull:
      return 0x51;
    case Type::kInteger:
      return mix(static_cast<u64>(values.cells[at].i));
    case Type::kReal: {
      f64 real = values.cells[at].r;
      if (real >= -9223372036854775808.0 && real < 9223372036854775808.0 &&
          static_cast<f64>(static_cast<i64>(real)) == real) {
        return mix(static_cast<u64>(static_cast<i64>(real)));
      }
      return mix(static_cast<u64>(values.cells[at].i));
    }
    case Type::kText:
      if (collation->kind != Collation::Kind::kBinary) {
        Value value;
        values.load(at, value);
        return hash_value(value, collation);
      }
      [[fallthrough]];
    default:
      return hash_bytes(values.cells[at].p, values.sizes[at]);
  }
}

JoinHash::JoinHash(const JoinLevel& level, const ColumnRefs& wanted)
    : level_(level), wanted_(wanted) {
  scan_path_.kind = level.source->kind == SourceKind::kTable ? PathKind::kScan : PathKind::kRows;
  scan_level_.source = level.source;
  scan_level_.path = &scan_path_;
  scan_level_.filters = level.path->build_filters;
  ColumnRefs read = wanted;
  for (const Expr* filter : level.path->build_filters) collect_columns(filter, &read);
  for (const Lookup& lookup : level.path->lookups) collect_columns(lookup.key, &read);
  std::erase_if(read, [&](const ColumnRef& ref) { return ref.slot != level.source->slot; });
  source_ = make_scan(scan_level_, read, false);
  columns_.resize(wanted.size());
  keys_.resize(level.path->lookups.size());
  for (size_t i = 0; i < keys_.size(); ++i) scratch_.push_back(std::make_unique<Vector>());
}

void JoinHash::build(Cx& cx) {
  ++cx.automatic_indexes;
  source_->open(cx);
  VectorExprs keys;
  for (const Lookup& lookup : level_.path->lookups) {
    keys.push_back(compile_vector(lookup.key, source_->batch(), cx));
  }
  while (Batch* batch = source_->next(cx)) append(*batch, keys, cx);
  source_->close(cx);
  if (!keys_.empty() && !cx.failed()) link();
}

// The key with the comparison's affinity applied; a copy only when that changes something.
const Vector& JoinHash::key_vector(size_t key, const Vector& values, const Selection& rows,
                                   sql::Arena& arena, Vector& scratch) const {
  Affinity affinity = level_.path->lookups[key].affinity;
  bool changes = false;
  for (u32 i = 0; i < rows.count && affinity >= Affinity::kText; ++i) {
    Type type = values.types[rows.rows[i]];
    changes |= affinity == Affinity::kText ? type == Type::kInteger || type == Type::kReal
                                           : type == Type::kText;
  }
  if (!changes) return values;
  Value value;
  for (u32 i = 0; i < rows.count; ++i) {
    u32 r = rows.rows[i];
    values.load(r, value);
    apply_comparison_affinity_one(affinity, value);
    scratch.store(r, value, arena);
  }
  return scratch;
}

void JoinHash::hash_rows(const std::vector<const Vector*>& keys, const Selection& rows, u64* out,
                         bool* usable) const {
  for (u32 i = 0; i < rows.count; ++i) {
    out[rows.rows[i]] = 0;
    usable[rows.rows[i]] = true;
  }
  for (size_t k = 0; k < keys.size(); ++k) {
    const Lookup& lookup = level_.path->lookups[k];
    for (u32 i = 0; i < rows.count; ++i) {
      u32 r = rows.rows[i];
      if (keys[k]->types[r] == Type::kNull && !lookup.is_null_safe) usable[r] = false;
      out[r] = out[r] * kMix + hash_cell(*keys[k], r, lookup.collation);
    }
  }
}

// What the rows of a batch are stored and looked up by.
std::vector<const Vector*> JoinHash::key_vectors(const VectorExprs& keys, Batch& batch, Cx& cx) {
  const Selection& rows = batch.selection;
  std::vector<const Vector*> values;
  for (size_t k = 0; k < keys.size(); ++k) {
    const Vector& plain = keys[k]->eval(batch, rows, cx);
    values.push_back(&key_vector(k, plain, rows, batch.arena, *scratch_[k]));
  }
  return values;
}

void JoinHash::append(Batch& batch, const VectorExprs& keys, Cx& cx) {
  const Selection& rows = batch.selection;
  u64 hashes[kBatchRows];
  bool usable[kBatchRows];
  const std::vector<const Vector*> values = key_vectors(keys, batch, cx);
  if (cx.failed()) return;
  hash_rows(values, rows, hashes, usable);
  std::vector<const Vector*> from;
  for (const ColumnRef& ref : wanted_) from.push_back(batch.find(ref));
  for (u32 i = 0; i < rows.count; ++i) {
    u32 r = rows.rows[i];
    if (!usable[r]) continue;
    for (size_t c = 0; c < from.size(); ++c) columns_[c].append(*from[c], r, bytes_);
    for (size_t k = 0; k < values.size(); ++k) keys_[k].append(*values[k], r, bytes_);
    if (!keys_.empty()) hashes_.push_back(hashes[r]);
    ++rows_;
  }
}

void JoinHash::link() {
  u64 size = 16;
  while (size < u64{rows_} * 2) size *= 2;
  mask_ = size - 1;
  heads_.assign(size, kNoRow);
  next_.assign(rows_, kNoRow);
  // Backwards, so that chains run in build order.
  for (u32 row = rows_; row-- > 0;) {
    u32& head = heads_[hashes_[row] & mask_];
    next_[row] = head;
    head = row;
  }
}

bool JoinHash::equal(u32 row, const std::vector<const Vector*>& keys, u32 at) const {
  for (size_t k = 0; k < keys.size(); ++k) {
    const Vector& values = *keys[k];
    const StoredColumn& stored = keys_[k];
    Type type = stored.types[row];
    const Collation* collation = level_.path->lookups[k].collation;
    if (type == values.types[at]) {
      if (type == Type::kNull) continue;
      if (type == Type::kInteger) {
        if (stored.cells[row].i != values.cells[at].i) return false;
        continue;
      }
      if (type >= Type::kText && collation->kind == Collation::Kind::kBinary) {
        u32 size = stored.sizes[row];
        if (size != values.sizes[at] ||
            std::memcmp(stored.cells[row].p, values.cells[at].p, size) != 0) {
          return false;
        }
        continue;
      }
    }
    Value a;
    Value b;
    stored.load(row, a);
    values.load(at, b);
    if (compare(a, b, collation) != 0) return false;
  }
  return true;
}

bool JoinHash::same_keys(u32 a, u32 b) const {
  for (size_t k = 0; k < keys_.size(); ++k) {
    const StoredColumn& stored = keys_[k];
    if (stored.types[a] == Type::kInteger && stored.types[b] == Type::kInteger) {
      if (stored.cells[a].i != stored.cells[b].i) return false;
      continue;
    }
    Value x;
    Value y;
    stored.load(a, x);
    stored.load(b, y);
    if (compare(x, y, level_.path->lookups[k].collation) != 0) return false;
  }
  return true;
}

void JoinHash::find(const VectorExprs& keys, Batch& batch, u32* first, Cx& cx) {
  const Selection& rows = batch.selection;
  if (keys_.empty()) {
    for (u32 i = 0; i < rows.count; ++i) first[rows.rows[i]] = rows_ > 0 ? 0 : kNoRow;
    return;
  }
  u64 hashes[kBatchRows];
  bool usable[kBatchRows];
  const std::vector<const Vector*> values = key_vectors(keys, batch, cx);
  if (cx.failed()) return;
  hash_rows(values, rows, hashes, usable);
  for (u32 i = 0; i < rows.count; ++i) {
    u32 r = rows.rows[i];
    first[r] = usable[r] ? match(hashes[r], values, r) : kNoRow;
  }
}

u32 JoinHash::match(u64 hash, const std::vector<const Vector*>& keys, u32 at) const {
  u32 row = heads_[hash & mask_];
  while (row != kNoRow && (hashes_[row] != hash || !equal(row, keys, at))) row = next_[row];
  return row;
}

u32 JoinHash::find_one(const Value* keys) {
  one_.clear();
  u64 hash = 0;
  for (size_t k = 0; k < keys_.size(); ++k) {
    scratch_[k]->borrow(0, keys[k]);
    one_.push_back(scratch_[k].get());
    hash = hash * kMix + hash_cell(*one_[k], 0, level_.path->lookups[k].collation);
  }
  return match(hash, one_, 0);
}

void JoinHash::load_row(u32 row, Value* out) const {
  for (size_t c = 0; c < columns_.size(); ++c) columns_[c].load(row, out[c]);
}

void JoinHash::load(size_t place, const u32* rows, u32 count, Vector& to) const {
  columns_[place].load(rows, count, to);
}

}  // namespace db
