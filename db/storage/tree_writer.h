// Changes to one b-tree through one cursor: cells in, cells out, and the balancing that follows.
//
// A page that has no room for a cell keeps it "pending" while up to three siblings are laid out
// anew; the dividers between them go to the parent, where they may be pending in turn, up to the
// root, which grows by a level. Ascending inserts open a new right-most page instead, so that the
// pages behind stay full. Single-threaded; lives for one call.
#pragma once

#include "db/storage/btree.h"

#include <string>
#include <vector>

namespace db {

class TreeWriter {
 public:
  explicit TreeWriter(Cursor& cursor)
      : store_(*cursor.store_), pager_(*cursor.pager_), cursor_(cursor), usable_(cursor.usable_) {}

  // Bytes a cell with this payload takes on a leaf of the tree of `page`.
  static u32 cell_bytes(const Page& page, u32 usable, i64 rowid, u32 payload_bytes, u32* local);
  // Writes the cell (not its child pointer) to `at`, the overflow chain to new pages.
  base::Status write_cell(u8* at, const Page& page, i64 rowid, ByteView payload, u32 zero_tail,
                          u32 local);

  // Puts `cell` in at `index` of the page on top, which has no room for it. The cursor's pages are
  // let go, unless the new row was simply appended (answer: true, the cursor stands on it).
  base::Result<bool> insert_full(u32 index, std::string cell);
  // After a removal from the page on top: merges it with its siblings if it is nearly empty.
  base::Status rebalance();
  // Replaces the cell at `index` of the interior page at `level` by `cell` (with its child
  // pointer).
  base::Status replace_interior(int level, u32 index, std::string cell);

 private:
  struct Pending {
    u32 index = 0;
    std::vector<std::string> cells;
    bool empty() const { return cells.empty(); }
  };
  struct Siblings;

  base::Status balance(int level, Pending pending);
  base::Status deepen_root();
  base::Status collapse_root();
  bool can_append(int level, const Pending& pending) const;
  base::Status append_page(int level, Pending* pending);
  base::Status redistribute(int level, Pending* pending);
  base::Status gather(int level, const Pending& pending, Siblings* all);
  void partition(Siblings* all) const;
  bool spread(Siblings* all) const;
  base::Status lay_out(Siblings* all, Page& parent, Pending* to_parent);
  base::Status insert_or_pend(Page& page, Pending* pending);
  base::Status corrupt(const char* what) const { return store_.corrupt(what); }

  Store& store_;
  Pager& pager_;
  Cursor& cursor_;
  const u32 usable_;
};

}  // namespace db
