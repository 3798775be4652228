// The first column of a search key, compared with a stored record where it lies: no Value is made
// and no call is made. Most comparisons of a search end here; so do those of a key of two columns
// whose second is an integer, as the rowid behind the column of an index is. The rest go to
// compare_record().
#pragma once

#include "base/bytes.h"
#include "db/value/record.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace db {

class FirstColumn {
 public:
  FirstColumn() = default;  // decides nothing
  // `key` and `info` as for compare_record(). `tie`: the answer for a record that starts with the
  // key.
  FirstColumn(std::span<const Value> key, const KeyInfo& info, int tie) : tie_(tie) {
    if (key.empty() || info.columns.empty()) return;
    const KeyInfo::Column& column = info.columns[0];
    alone_ = key.size() == 1;
    if (key.size() == 2 && key[1].is_integer()) {
      has_second_ = true;
      second_ = key[1].raw_integer();
      second_sign_ = info.columns.size() > 1 && info.columns[1].descending ? -1 : 1;
    }
    sign_ = column.descending ? -1 : 1;
    if (key[0].is_integer()) {
      kind_ = Kind::kInteger;
      integer_ = key[0].raw_integer();
    } else if (key[0].is_text() && column.collation == &kBinary &&
               info.encoding == Encoding::kUtf8) {
      kind_ = Kind::kText;
      text_ = key[0].bytes();
      char start[sizeof start_] = {};
      if (!text_.empty()) std::memcpy(start, text_.data(), std::min(text_.size(), sizeof start));
      start_ = base::load_be64(reinterpret_cast<const u8*>(start));
    }
  }

  enum class Kind : u8 { kAnything, kInteger, kText };
  Kind kind() const { return kind_; }

  // As compare() below, for records that eight bytes may be read behind of. REQUIRES: `kind` is
  // kind(), and not kAnything.
  template <Kind kind>
  bool compare(base::ByteView stored, int* answer) const {
    const u8* at = stored.data();
    const u32 header = at[0];
    const u32 type = at[1];
    u32 size;
    int order;
    if constexpr (kind == Kind::kInteger) {
      if (type - 1 > 5 || header - 2 > 0x7d) return compare(stored, answer);
      size = kSizes[type];
      if (header + size > stored.size()) return false;
      const i64 key = static_cast<i64>(base::load_be64(at + header)) >> kSpareBits[type];
      if (key != integer_) [[likely]] {
        *answer = (key < integer_) == (sign_ > 0) ? -1 : 1;
        return true;
      }
      order = 0;
    } else {
      if (stored.size() < 3) return false;
      if (type < 13 || type % 2 == 0 || type >= 0x80 || header - 2 > 0x7d)
        return compare(stored, answer);
      size = (type - 13) / 2;
      if (header + size > stored.size()) return false;
      u64 start = base::load_be64(at + header);
      // Shorter text ends in zeros, which sort before all that the longer one may have there.
      if (size < 8) start = size == 0 ? 0 : start & ~u64{0} << (64 - 8 * size);
      order = start != start_ ? (start < start_ ? -1 : 1) : compare_text(at + header, size);
    }
    if (order == 0) {
      if (has_second_) return compare_second(stored, header + size, answer);
      *answer = tie_;
      return alone_;
    }
    *answer = sign_ > 0 ? order : -order;
    return true;
  }

  // False: undecided. Else *answer < 0, 0, > 0 as the record sorts before, with or after the key.
  bool compare(base::ByteView stored, int* answer) const {
    if (kind_ == Kind::kAnything) return false;
    const u8* at = stored.data();
    if (stored.size() < 3 || at[0] >= 0x80 || at[0] < 2 || at[0] > stored.size()) return false;
    u32 type = at[1];
    if (type >= 0x80) {
      if (at[2] >= 0x80 || at[0] < 3) return false;
      type = (type & 0x7f) << 7 | at[2];
    }
    const u8* body = at + at[0];
    const u32 size = serial_type_size(type);
    if (size > stored.size() - at[0] || type == 7 || type == 10 || type == 11) return false;
    int order;
    if (type == 0) {
      order = -1;  // NULL is below everything else
    } else if (kind_ == Kind::kInteger) {
      const i64 stored_key = type >= 12 ? 0 : integer_at(body, type);
      order = type >= 12 ? 1 : stored_key < integer_ ? -1 : stored_key > integer_;
    } else {
      order = type < 12 ? -1 : type % 2 == 0 ? 1 : compare_text(body, size);
    }
    if (order == 0) {
      *answer = tie_;
      return alone_;
    }
    *answer = sign_ > 0 ? order : -order;
    return true;
  }

 private:
  // Bits of eight bytes that are not in an integer of this serial type.
  static constexpr u8 kSpareBits[7] = {0, 56, 48, 40, 32, 16, 0};
  static constexpr u8 kSizes[7] = {0, 1, 2, 3, 4, 6, 8};

  // The second column, whose body is at `body`, when it has a short integer's type.
  bool compare_second(base::ByteView stored, u32 body, int* answer) const {
    const u32 type = stored[2];
    if (stored[0] < 3 || type - 1 > 5) return false;
    if (body + 8 - kSpareBits[type] / 8 > stored.size()) return false;
    const i64 key = static_cast<i64>(base::load_be64(stored.data() + body)) >> kSpareBits[type];
    *answer = key == second_ ? tie_ : (key > second_) == (second_sign_ > 0) ? 1 : -1;
    return true;
  }

  // An integer of serial type 1 to 6, 8 or 9.
  static i64 integer_at(const u8* body, u32 type) {
    switch (type) {
      case 1:
        return static_cast<i8>(body[0]);
      case 2:
        return static_cast<i16>(base::load_be16(body));
      case 3:
        return static_cast<i32>(u32{body[0]} << 24 | u32{body[1]} << 16 | u32{body[2]} << 8) >> 8;
      case 4:
        return static_cast<i32>(base::load_be32(body));
      case 5:
        return i64{static_cast<i16>(base::load_be16(body))} * (i64{1} << 32) +
               base::load_be32(body + 2);
      case 6:
        return static_cast<i64>(base::load_be64(body));
      default:
        return static_cast<i64>(type) - 8;
    }
  }

  int compare_text(const u8* body, size_t size) const {
    const size_t common = size < text_.size() ? size : text_.size();
    const int order = common == 0 ? 0 : std::memcmp(body, text_.data(), common);
    if (order != 0) return order < 0 ? -1 : 1;
    return size < text_.size() ? -1 : size > text_.size();
  }

  Kind kind_ = Kind::kAnything;
  bool alone_ = false;       // the key has no other column
  bool has_second_ = false;  // ... one other, an integer
  int second_sign_ = 1;
  i64 second_ = 0;
  int tie_ = 0;
  int sign_ = 1;
  i64 integer_ = 0;
  std::string_view text_;
  u64 start_ = 0;  // the text's first eight bytes as a number, zeros behind its end
};

}  // namespace db
