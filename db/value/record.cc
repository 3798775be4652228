#include "db/value/record.h"

#include "base/bytes.h"
#include "db/value/utf16.h"

#include <algorithm>
#include <cmath>

namespace db {

int get_varint_slow(const u8* at, u64* value) {
  u64 v = 0;
  for (int i = 0; i < 8; ++i) {
    v = (v << 7) | (at[i] & 0x7f);
    if (at[i] < 0x80) {
      *value = v;
      return i + 1;
    }
  }
  *value = (v << 8) | at[8];
  return 9;
}

int get_varint_checked(const u8* at, const u8* end, u64* value) {
  if (end - at >= 9) return get_varint(at, value);
  u64 v = 0;
  for (int i = 0; at + i < end; ++i) {
    v = (v << 7) | (at[i] & 0x7f);
    if (at[i] < 0x80) {
      *value = v;
      return i + 1;
    }
  }
  return 0;
}

int put_varint(u8* at, u64 value) {
  if (value < 0x80) {
    at[0] = static_cast<u8>(value);
    return 1;
  }
  if (value >> 56 != 0) {
    at[8] = static_cast<u8>(value);
    value >>= 8;
    for (int i = 7; i >= 0; --i) {
      at[i] = static_cast<u8>(value & 0x7f) | 0x80;
      value >>= 7;
    }
    return 9;
  }
  int size = varint_size(value);
  for (int i = size - 1; i >= 0; --i) {
    at[i] = static_cast<u8>(value & 0x7f) | (i == size - 1 ? 0 : 0x80);
    value >>= 7;
  }
  return size;
}

int varint_size(u64 value) {
  int size = 1;
  while (size < 9 && (value >>= 7) != 0) ++size;
  return size;
}

void decode_serial(u64 type, const u8* p, Value& out) {
  switch (type) {
    case 0:
      out.set_null();
      return;
    case 1:
      out.set_integer(static_cast<i8>(p[0]));
      return;
    case 2:
      out.set_integer(static_cast<i16>(base::load_be16(p)));
      return;
    case 3:
      out.set_integer((static_cast<i64>(static_cast<i8>(p[0])) << 16) | (p[1] << 8) | p[2]);
      return;
    case 4:
      out.set_integer(static_cast<i32>(base::load_be32(p)));
      return;
    case 5:
      out.set_integer((static_cast<i64>(static_cast<i16>(base::load_be16(p))) << 32) |
                      base::load_be32(p + 2));
      return;
    case 6:
      out.set_integer(static_cast<i64>(base::load_be64(p)));
      return;
    case 7: {
      u64 bits = base::load_be64(p);
      f64 real;
      std::memcpy(&real, &bits, sizeof real);
      out.set_real(real);
      return;
    }
    case 8:
    case 9:
      out.set_integer(static_cast<i64>(type - 8));
      return;
    case 10:
    case 11:
      out.set_null();
      return;
    default:
      out.set_borrowed((type & 1) != 0 ? Type::kText : Type::kBlob,
                       reinterpret_cast<const char*>(p), (type - 12) / 2);
  }
}

u64 serial_type_of(const Value& value) {
  switch (value.type()) {
    case Type::kNull:
      return 0;
    case Type::kInteger: {
      i64 v = value.raw_integer();
      if (v == 0 || v == 1) return 8 + static_cast<u64>(v);
      u64 magnitude = static_cast<u64>(v < 0 ? ~v : v);
      if (magnitude < 0x80) return 1;
      if (magnitude < 0x8000) return 2;
      if (magnitude < 0x800000) return 3;
      if (magnitude < 0x80000000u) return 4;
      return magnitude < 0x800000000000u ? 5 : 6;
    }
    case Type::kReal:
      return 7;
    case Type::kText:
      return value.bytes().size() * 2 + 13;
    case Type::kBlob:
      return value.bytes().size() * 2 + 12;
  }
  return 0;
}

namespace {

bool real_is_integer(f64 real, i64* whole) {
  if (!(std::fabs(real) < 140737488355328.0)) return false;  // 2^47: six bytes at most
  *whole = static_cast<i64>(real);
  return static_cast<f64>(*whole) == real && !(real == 0 && std::signbit(real));
}

}  // namespace

bool real_as_integer(Value& value) {
  i64 whole = 0;
  if (!value.is_real() || !real_is_integer(value.raw_real(), &whole)) return false;
  value.set_integer(whole);
  return true;
}

void text_from_stored(Value& value, Encoding encoding) {
  if (encoding == Encoding::kUtf8 || !value.is_text()) return;
  value = Value::text(utf16_to_utf8(value.bytes(), encoding));
}

void RecordBuilder::add_long_type(u64 type) {
  u8 varint[9];
  const int bytes = put_varint(varint, type);
  for (int i = 0; i < bytes; ++i) add_type(varint[i]);
}

void RecordBuilder::add_bytes(u64 type, std::string_view bytes) {
  if (type < 0x80) [[likely]]
    add_type(static_cast<u8>(type));
  else
    add_long_type(type);
  if (!bytes.empty()) std::memcpy(room(bytes.size()), bytes.data(), bytes.size());
  end_ += bytes.size();
}

void RecordBuilder::add_bytes(const Value& value) {
  const std::string_view bytes = value.bytes();
  if (value.is_blob()) return add_bytes(12 + 2 * u64{bytes.size()}, bytes);
  if (encoding_ == Encoding::kUtf8) [[likely]]
    return add_bytes(13 + 2 * u64{bytes.size()}, bytes);
  const std::string text = utf8_to_utf16(bytes, encoding_);
  add_bytes(13 + 2 * u64{text.size()}, text);
}

void RecordBuilder::add_real_column(const Value& value) {
  i64 whole = 0;
  if (value.is_real() && real_is_integer(value.raw_real(), &whole)) {
    add_integer(whole);
  } else {
    add(value);
  }
}

std::string_view RecordBuilder::finish() {
  const size_t types = types_end_ - kHeaderSlack;
  size_t total = types + 1;
  if (total > 127) total = types + static_cast<size_t>(varint_size(types + 2));
  if (total > kHeaderRoom - kHeaderSlack) [[unlikely]] {  // hundreds of columns
    room(total + kHeaderSlack);
    const size_t to = total + kHeaderSlack;
    std::memmove(out_.data() + to, out_.data() + kHeaderRoom, end_ - kHeaderRoom);
    end_ = end_ - kHeaderRoom + to;
    put_header(out_.data() + to, types, total);
    return {reinterpret_cast<const char*>(out_.data() + kHeaderSlack), end_ - kHeaderSlack};
  }
  room(0);
  put_header(out_.data() + kHeaderRoom, types, total);
  const size_t from = kHeaderRoom - total;
  return {reinterpret_cast<const char*>(out_.data() + from), end_ - from};
}

// The header, `total` bytes, right before `end`: its size, then the serial types, in blocks from
// the last to the first. What the first one has too many lies below the header on both sides.
void RecordBuilder::put_header(u8* end, size_t types, size_t total) {
  const u8* from = types_.data() + types_end_;
  u8* to = end;
  for (size_t left = types; left > 0; left -= std::min(left, kHeaderSlack)) {
    from -= kHeaderSlack;
    to -= kHeaderSlack;
    std::memcpy(to, from, kHeaderSlack);
  }
  put_varint(end - total, total);
}

void encode_record(std::span<const Value> values, std::string& out, Encoding encoding) {
  RecordBuilder builder;
  builder.set_encoding(encoding);
  for (const Value& value : values) builder.add(value);
  out.append(builder.finish());
}

void RecordView::start() {
  u64 header = size_ > 0 ? data_[0] : 0;
  int n = size_ > 0 && header < 0x80 ? 1 : get_varint_checked(data_, data_ + size_, &header);
  if (n == 0 || header > size_ || header < static_cast<u64>(n)) {
    corrupt_ = size_ != 0;
    header_end_ = header_at_ = body_at_ = 0;
    return;
  }
  header_at_ = static_cast<u32>(n);
  header_end_ = body_at_ = static_cast<u32>(header);
}

bool RecordView::parse_to(int index) {
  // One column on, as reading from left to right asks for, without what the loop below needs.
  if (index == parsed_ && header_at_ < header_end_ && parsed_ < capacity_) [[likely]] {
    const u32 type = data_[header_at_];
    const u32 end = body_at_ + serial_type_size(type);
    if (type < 0x80 && end <= size_) [[likely]] {
      types_[parsed_] = type;
      offsets_[parsed_] = body_at_;
      ++header_at_;
      body_at_ = end;
      ++parsed_;
      return true;
    }
  }
  return parse_more(index);
}

bool RecordView::parse_more(int index) {
  const u8* const data = data_;
  u32 at = header_at_;
  u32 body = body_at_;
  int parsed = parsed_;
  for (; parsed <= index && at < header_end_; ++parsed) {
    u64 type = data[at];
    int n = 1;
    if (type >= 0x80) n = get_varint_checked(data + at, data + header_end_, &type);
    const u64 end = body + (type < 12 ? serial_type_size(type) : (type - 12) / 2);
    if (n == 0 || end > size_) [[unlikely]] {
      corrupt_ = true;
      at = header_end_;
      break;
    }
    if (parsed == capacity_) [[unlikely]]
      grow(parsed);
    types_[parsed] = static_cast<u32>(type);
    offsets_[parsed] = body;
    at += static_cast<u32>(n);
    body = static_cast<u32>(end);
  }
  header_at_ = at;
  body_at_ = body;
  parsed_ = parsed;
  return parsed > index;
}

void RecordView::grow(int parsed) {
  std::vector<u32> wider(static_cast<size_t>(capacity_) * 4);
  std::memcpy(wider.data(), types_, sizeof(u32) * static_cast<size_t>(parsed));
  std::memcpy(wider.data() + capacity_ * 2, offsets_, sizeof(u32) * static_cast<size_t>(parsed));
  heap_.swap(wider);
  types_ = heap_.data();
  offsets_ = heap_.data() + capacity_ * 2;
  capacity_ *= 2;
}

int RecordView::count() {
  parse_to(1 << 20);
  return parsed_;
}

i64 last_integer(std::string_view record) {
  const u8* const data = reinterpret_cast<const u8*>(record.data());
  u64 header = 0;
  const int bytes = record.empty() ? 0 : get_varint_checked(data, data + record.size(), &header);
  if (bytes == 0 || header > record.size() || header <= static_cast<u64>(bytes)) return 0;
  const u8 type = data[header - 1];
  const u32 size = serial_type_size(type);
  if (type == 0 || type == 7 || type > 9 || size > record.size() - header) return 0;
  Value value;
  decode_serial(type, data + record.size() - size, value);
  return value.raw_integer();
}

int compare_record(std::string_view record, std::span<const Value> key, const KeyInfo& info) {
  const u8* data = reinterpret_cast<const u8*>(record.data());
  const u8* end = data + record.size();
  u64 header = 0;
  int n = get_varint_checked(data, end, &header);
  if (n == 0 || header > record.size()) return -1;
  const u8* at = data + n;
  const u8* header_end = data + header;
  const u8* body = header_end;
  Value stored;
  for (size_t i = 0; i < key.size(); ++i) {
    if (at >= header_end) return -1;
    u64 type = *at;
    n = type < 0x80 ? 1 : get_varint_checked(at, header_end, &type);
    if (n == 0) return -1;
    at += n;
    u32 size = serial_type_size(type);
    if (size > static_cast<u64>(end - body)) return -1;
    decode_serial(type, body, stored);
    if (info.encoding != Encoding::kUtf8) [[unlikely]]
      text_from_stored(stored, info.encoding);
    body += size;
    const KeyInfo::Column* column = i < info.columns.size() ? &info.columns[i] : nullptr;
    int order = compare(stored, key[i], column != nullptr ? column->collation : &kBinary);
    if (order != 0) return column != nullptr && column->descending ? -order : order;
  }
  return 0;
}

int compare_records(std::string_view a, std::string_view b, const KeyInfo& info) {
  struct Walk {
    const u8 *at, *header_end, *body, *end;
    bool start(std::string_view record) {
      const u8* data = reinterpret_cast<const u8*>(record.data());
      end = data + record.size();
      u64 header = 0;
      int n = get_varint_checked(data, end, &header);
      if (n == 0 || header > record.size()) return false;
      at = data + n;
      header_end = body = data + header;
      return true;
    }
    bool next(Value& out) {
      if (at >= header_end) return false;
      u64 type = *at;
      int n = type < 0x80 ? 1 : get_varint_checked(at, header_end, &type);
      if (n == 0) return false;
      at += n;
      u32 size = serial_type_size(type);
      if (size > static_cast<u64>(end - body)) return false;
      decode_serial(type, body, out);
      body += size;
      return true;
    }
  };
  Walk left, right;
  if (!left.start(a)) return -1;
  if (!right.start(b)) return 1;
  Value x, y;
  for (size_t i = 0;; ++i) {
    const bool more = right.next(y);
    if (!left.next(x)) return more ? -1 : 0;
    if (!more) return 0;
    if (info.encoding != Encoding::kUtf8) [[unlikely]] {
      text_from_stored(x, info.encoding);
      text_from_stored(y, info.encoding);
    }
    const KeyInfo::Column* column = i < info.columns.size() ? &info.columns[i] : nullptr;
    int order = compare(x, y, column != nullptr ? column->collation : &kBinary);
    if (order != 0) return column != nullptr && column->descending ? -order : order;
  }
}

int compare_keys(std::span<const Value> a, std::span<const Value> b, const KeyInfo& info) {
  size_t count = a.size() < b.size() ? a.size() : b.size();
  for (size_t i = 0; i < count; ++i) {
    if (i >= info.columns.size()) {
      int order = compare(a[i], b[i]);
      if (order != 0) return order;
      continue;
    }
    const KeyInfo::Column& column = info.columns[i];
    int order = compare(a[i], b[i], column.collation);
    if (order == 0) continue;
    if (column.nulls_last && (a[i].is_null() || b[i].is_null())) order = -order;
    return column.descending ? -order : order;
  }
  return 0;
}

bool decode_record(std::string_view record, std::vector<Value>& out, Encoding encoding) {
  RecordView view(record);
  view.set_encoding(encoding);
  int count = view.count();
  for (int i = 0; i < count; ++i) {
    out.emplace_back();
    view.column(i, out.back());
  }
  return !view.corrupt();
}

}  // namespace db
