// SQLite's record format: header (its size, then one serial type per column, all varints), then the
// column bodies. Serial types: 0 NULL; 1-6 big-endian ints of 1, 2, 3, 4, 6, 8 bytes; 7 double;
// 8 and 9 the integers 0 and 1; N>=12 blob (even) or text (odd) of (N-12)/2 bytes.
//
// RecordView reads lazily: it walks the header only as far as a wanted column and remembers where
// the walk stopped. Values it returns borrow from the record's bytes. Malformed records give NULLs
// and set corrupt(). Thread-compatible.
#pragma once

#include "db/value/value.h"
#include "db/value/varint.h"

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace db {

// How the columns of an index key compare. Columns past the end compare BINARY ascending.
struct KeyInfo {
  struct Column {
    const Collation* collation = &kBinary;
    bool descending = false;
    bool nulls_last = false;  // only for sorters: NULLS LAST with ASC, NULLS FIRST with DESC
  };
  std::vector<Column> columns;
  Encoding encoding = Encoding::kUtf8;  // of the text in stored records
};

// Bytes of the body of a serial type.
inline u32 serial_type_size(u64 type) {
  static constexpr u8 kSizes[12] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
  return type < 12 ? kSizes[type] : static_cast<u32>((type - 12) / 2);
}
// The value of one body; `body` must have serial_type_size() bytes.
void decode_serial(u64 type, const u8* body, Value& out);
u64 serial_type_of(const Value& value);

// Stored text as UTF-8. For other encodings than that, `value` gets bytes of its own.
void text_from_stored(Value& value, Encoding encoding);

// Appends the record to `out` (which is not cleared). REAL values that are integral and that the
// caller flags by storing them as INTEGER are the caller's business (see real_as_integer).
void encode_record(std::span<const Value> values, std::string& out,
                   Encoding encoding = Encoding::kUtf8);
// A REAL column stores 36.0 as the integer 36. True and changed when that loses nothing.
bool real_as_integer(Value& value);

// Builds one record after another in a buffer that it keeps: bodies are written as they come,
// behind room for the header, which finish() puts right before them.
class RecordBuilder {
 public:
  RecordBuilder() : types_(kHeaderRoom), out_(2 * kHeaderRoom) {}
  // Of the text in the record; what is added is UTF-8.
  void set_encoding(Encoding encoding) { encoding_ = encoding; }
  void clear() {
    types_end_ = kHeaderSlack;
    end_ = kHeaderRoom;
  }
  void add(const Value& value) {
    switch (value.type()) {
      case Type::kNull:
        return add_null();
      case Type::kInteger:
        return add_integer(value.raw_integer());
      case Type::kReal:
        return add_word(7, 8, std::bit_cast<u64>(value.raw_real()));
      default:
        return add_bytes(value);
    }
  }
  // As add(), for a column of REAL affinity (see real_as_integer).
  void add_real_column(const Value& value);
  void add_null() { add_type(0); }
  void add_integer(i64 value) {
    const u64 bits = static_cast<u64>(value);
    if (bits < 2) return add_type(static_cast<u8>(8 + bits));
    // The bytes that hold the bits below the sign, and the sign.
    const int wide = 64 - std::countl_zero(value < 0 ? ~bits : bits);
    const u8 type = wide < 32 ? static_cast<u8>(wide / 8 + 1) : wide < 48 ? 5 : 6;
    add_word(type, serial_type_size(type), bits);
  }
  // The record of all that was added since clear(), once; good until the next clear().
  std::string_view finish();

 private:
  static constexpr size_t kHeaderRoom = 256;
  static constexpr size_t kHeaderSlack = 16;  // finish() copies blocks of this many bytes
  void add_type(u8 type) {
    if (types_end_ == types_.size()) [[unlikely]]
      types_.resize(2 * types_.size());
    types_[types_end_++] = type;
  }
  void add_long_type(u64 type);
  // The low `bytes` bytes of a word. They come first once it is turned round.
  void add_word(u8 type, u32 bytes, u64 word) {
    add_type(type);
    word = __builtin_bswap64(word << (64 - 8 * bytes));
    std::memcpy(room(sizeof word), &word, sizeof word);
    end_ += bytes;
  }
  void put_header(u8* end, size_t types, size_t total);
  void add_bytes(const Value& value);
  void add_bytes(u64 type, std::string_view bytes);
  // Where the next body goes; there is room for `bytes` and for a whole word.
  u8* room(size_t bytes) {
    if (out_.size() < end_ + bytes + sizeof(u64)) [[unlikely]]
      out_.resize((end_ + bytes + sizeof(u64)) * 2);
    return out_.data() + end_;
  }

  std::vector<u8> types_;  // kHeaderSlack bytes, then serial types
  size_t types_end_ = kHeaderSlack;
  std::vector<u8> out_;  // kHeaderRoom, then the bodies
  size_t end_ = kHeaderRoom;
  Encoding encoding_ = Encoding::kUtf8;
};

// Reads a record's columns one after the other, all of them or the first ones.
class RecordWalk {
 public:
  explicit RecordWalk(std::string_view record)
      : at_(reinterpret_cast<const u8*>(record.data())), end_(at_ + record.size()) {
    u64 header = 0;
    const int bytes = record.empty() ? 0 : get_varint_checked(at_, end_, &header);
    if (bytes == 0 || header > record.size() || header < static_cast<u64>(bytes)) header = 0;
    body_ = header_end_ = at_ + header;
    at_ += header == 0 ? 0 : bytes;
  }
  // The next column, borrowed. False, and `out` as it was: the record has no more, or is malformed.
  bool next(Value& out) {
    u64 type;
    const u8* const body = pass(&type);
    if (body == nullptr) return false;
    if (type >= 12) {
      out.set_borrowed((type & 1) != 0 ? Type::kText : Type::kBlob,
                       reinterpret_cast<const char*>(body), (type - 12) / 2);
    } else if (type - 1 <= 5 && end_ - body >= 8) {
      // The bits of eight bytes that are not in an integer of this type go out behind.
      static constexpr u8 kSpareBits[7] = {0, 56, 48, 40, 32, 16, 0};
      u64 word;
      std::memcpy(&word, body, sizeof word);
      out.set_integer(static_cast<i64>(__builtin_bswap64(word)) >> kSpareBits[type]);
    } else {
      decode_serial(type, body, out);
    }
    return true;
  }
  void skip() {
    u64 type;
    pass(&type);
  }

 private:
  // Past the next column: its body, and its serial type. Null: there is none.
  const u8* pass(u64* type) {
    if (at_ >= header_end_) return nullptr;
    *type = *at_;
    int bytes = 1;
    if (*type >= 0x80) [[unlikely]]
      bytes = get_varint_checked(at_, header_end_, type);
    const u64 size = *type < 12 ? serial_type_size(*type) : (*type - 12) / 2;
    if (bytes == 0 || size > static_cast<u64>(end_ - body_)) [[unlikely]] {
      at_ = header_end_;
      return nullptr;
    }
    const u8* const body = body_;
    at_ += bytes;
    body_ += size;
    return body;
  }

  const u8* at_;
  const u8* end_;
  const u8* header_end_;
  const u8* body_;
};

class RecordView {
 public:
  RecordView() = default;
  explicit RecordView(std::string_view record) { reset(record); }

  void reset(std::string_view record) {
    data_ = reinterpret_cast<const u8*>(record.data());
    size_ = static_cast<u32>(record.size());
    parsed_ = 0;
    corrupt_ = false;
    start();
  }
  // Column `index`, or NULL with false when the record has fewer columns.
  bool column(int index, Value& out) {
    if (index >= parsed_ && !parse_to(index)) {
      out.set_null();
      return false;
    }
    decode_serial(types_[index], data_ + offsets_[index], out);
    if (encoding_ != Encoding::kUtf8) [[unlikely]]
      text_from_stored(out, encoding_);
    return true;
  }
  // Serial type without decoding; 0 past the end.
  u64 serial_type(int index) {
    if (index >= parsed_ && !parse_to(index)) return 0;
    return types_[index];
  }
  const u8* body(int index) const { return data_ + offsets_[index]; }  // after serial_type(index)
  int count();
  // Of the text in the records; UTF-8 unless said.
  void set_encoding(Encoding encoding) { encoding_ = encoding; }
  bool corrupt() const { return corrupt_; }
  std::string_view bytes() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  void start();
  bool parse_to(int index);
  bool parse_more(int index);
  void grow(int parsed);

  static constexpr int kInline = 24;
  const u8* data_ = nullptr;
  u32 size_ = 0;
  u32 header_end_ = 0;
  u32 header_at_ = 0;
  u32 body_at_ = 0;
  int parsed_ = 0;
  int capacity_ = kInline;
  bool corrupt_ = false;
  Encoding encoding_ = Encoding::kUtf8;
  u32 inline_types_[kInline];
  u32 inline_offsets_[kInline];
  u32* types_ = inline_types_;
  u32* offsets_ = inline_offsets_;
  std::vector<u32> heap_;

 public:
  RecordView(const RecordView&) = delete;
  RecordView& operator=(const RecordView&) = delete;
};

// Order of the stored record against a key of unpacked values, as far as the key goes; 0 when the
// record starts with the key. Negative: the record is smaller. Descending columns are flipped.
int compare_record(std::string_view record, std::span<const Value> key, const KeyInfo& info);
// Order of two stored records, as far as the shorter goes (fewer columns than `b`: smaller).
int compare_records(std::string_view a, std::string_view b, const KeyInfo& info);
// Order of two unpacked keys; the shorter one decides how far.
int compare_keys(std::span<const Value> a, std::span<const Value> b, const KeyInfo& info);
// The last column of a record that ends in an integer, as those of an index end in the rowid: found
// from behind. 0 for other records.
i64 last_integer(std::string_view record);
// All columns of a record as borrowed values, appended to `out`.
bool decode_record(std::string_view record, std::vector<Value>& out,
                   Encoding encoding = Encoding::kUtf8);

}  // namespace db
