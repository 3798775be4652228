// Builds an index in one go: takes the records of its rows in any order, sorts them, and appends
// them to the empty tree, which so becomes as dense as it can be.
//
// Sorting looks at the first column's sort_prefix() first; only then are the records themselves
// compared. All records are held in memory. Single-threaded.
#pragma once

#include "db/exec/context.h"
#include "db/value/record.h"

#include <memory>
#include <string_view>
#include <vector>

namespace db {

class IndexBuild {
 public:
  IndexBuild(const Index& index, const KeyInfo& info) : index_(index), info_(info) {}

  // Takes the entries of all rows that the table holds.
  Status add_table(Session& session, const Table& table);
  // Sorts and writes. kConstraintUnique: two rows have the same key in a UNIQUE index.
  Status write(Cursor& tree);

 private:
  struct Entry {
    u64 prefix;
    const char* record;  // its length, a u32, then its bytes
    std::string_view bytes() const {
      u32 size;
      std::memcpy(&size, record, sizeof size);
      return {record + sizeof size, size};
    }
  };

  void add(std::string_view record);
  // Can the entries be read off the table's records, without evaluating anything?
  bool is_plain(const Table& table) const;
  Status add_plain(Cursor& rows, const Table& table);
  bool same_key(const Entry& a, const Entry& b) const;
  u64 prefix_of(std::string_view record) const;

  static constexpr size_t kBlockBytes = 256 * 1024;
  const Index& index_;
  const KeyInfo& info_;
  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* at_ = nullptr;
  size_t left_ = 0;
};

}  // namespace db
