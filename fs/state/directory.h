// The entries of one directory, in the order they were made, with an index by name.
//
// Slots are appended with growing cookies and only emptied by removal, so a reader that continues
// after a cookie sees every lasting entry exactly once whatever happens in between. The index is
// open addressing over slot numbers. Copyable. Thread-compatible.
#pragma once

#include "fs/state/types.h"

#include <string>
#include <string_view>
#include <vector>

namespace fs {

class Directory {
 public:
  struct Slot {
    std::string name;
    Ino ino = 0;  // 0: empty
    u64 cookie = 0;
    FileType type = FileType::kUnknown;
  };

  // All entries at once, as paged in: any order, distinct names and cookies.
  void assign(std::vector<Slot> slots);
  // Null when there is none. Valid until the next change.
  const Slot* find(std::string_view name) const;
  // REQUIRES: the name is not there and `cookie` is not in use. Cheapest when cookies grow.
  void insert(std::string_view name, Ino ino, u64 cookie, FileType type);
  // Points an existing name at another inode; the cookie stays.
  void replace(std::string_view name, Ino ino, FileType type);
  // REQUIRES: the name is there.
  void erase(std::string_view name);
  size_t size() const { return live_; }
  // First slot with a cookie greater than `after`, or slots().size(). Skip those with ino 0.
  size_t first_after(u64 after) const;
  const std::vector<Slot>& slots() const { return slots_; }

  // Inode numbers reserved for children, so that siblings are neighbours in the tree.
  Ino run_next = 0;
  Ino run_end = 0;

 private:
  size_t probe(std::string_view name) const;  // index position of the name, or of the free place
  void rebuild();

  std::vector<Slot> slots_;  // by cookie
  std::vector<u32> index_;   // slot number + 1; 0 free; a power of two long
  size_t live_ = 0;
};

}  // namespace fs
