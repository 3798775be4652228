// The first column of a search key, compared with a stored record where it lies: no Value is made
// and no call is made. Most comparisons of a search end here; the rest go to compare_record().
#pragma once

#include "base/bytes.h"
#include "db/value/record.h"

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
    sign_ = column.descending ? -1 : 1;
    if (key[0].is_integer()) {
      kind_ = Kind::kInteger;
      integer_ = key[0].raw_integer();
    } else if (key[0].is_text() && column.collation == &kBinary &&
               info.encoding == Encoding::kUtf8) {
      kind_ = Kind::kText;
      text_ = key[0].bytes();
    }
  }

  // False: undecided. Else *answer < 0, 0, > 0 as the record sorts before, with or after the key.
  bool compare(ByteView stored, int* answer) const {
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
  enum class Kind : u8 { kAnything, kInteger, kText };

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
  bool alone_ = false;  // the key has no other column
  int tie_ = 0;
  int sign_ = 1;
  i64 integer_ = 0;
  std::string_view text_;
};

}  // namespace db
