// Walks every page of a database and says what is wrong with it, in SQLite's words, since people
// and programs know those. What the rows mean (indexes that lack one, NULLs in NOT NULL columns) is
// the executor's part of PRAGMA integrity_check.
#include "db/storage/btree.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace db {

using base::load_be16;
using base::load_be32;
using base::Result;

class IntegrityCheck {
 public:
  IntegrityCheck(Store& store, int max_messages)
      : store_(store),
        usable_(store.usable_bytes()),
        left_(max_messages),
        seen_(size_t{store.page_count()} + 1, false) {}

  std::vector<std::string> run(const std::vector<PageNo>& roots);

 private:
  using MapType = Store::MapType;
  static constexpr i64 kNoLimit = INT64_MAX;

  void say(const char* format, ...) __attribute__((format(printf, 2, 3)));
  bool first_visit(PageNo number);
  void expect_map(PageNo number, MapType type, PageNo parent);
  void freelist();
  void overflow_chain(PageNo first, u64 expected, PageNo owner);
  int tree_page(PageNo number, bool table, i64* rowid_below, i64 rowid_limit, int depth);
  bool check_cell(Page& page, u32 index, const u8* at, bool table, Cell* cell);
  void check_space(Page& page);
  void roots_and_header(const std::vector<PageNo>& roots);
  void unused_pages();

  Store& store_;
  const u32 usable_;
  int left_;
  std::vector<bool> seen_;
  std::vector<std::string> messages_;
  std::string where_;
};

void IntegrityCheck::say(const char* format, ...) {
  if (left_ <= 0) return;
  left_--;
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  messages_.push_back(where_ + text);
}

bool IntegrityCheck::first_visit(PageNo number) {
  if (number == 0 || number >= seen_.size()) {
    say("invalid page number %u", number);
    return false;
  }
  if (seen_[number]) {
    say("2nd reference to page %u", number);
    return false;
  }
  seen_[number] = true;
  return true;
}

void IntegrityCheck::expect_map(PageNo number, MapType type, PageNo parent) {
  if (store_.auto_vacuum() == AutoVacuum::kNone) return;
  MapType got_type;
  PageNo got_parent;
  if (!store_.map_get(number, &got_type, &got_parent).ok()) {
    say("Failed to read ptrmap key=%u", number);
    return;
  }
  if (got_type == type && got_parent == parent) return;
  say("Bad ptr map entry key=%u expected=(%u,%u) got=(%u,%u)", number, static_cast<u32>(type),
      parent, static_cast<u32>(got_type), got_parent);
}

void IntegrityCheck::freelist() {
  where_ = "Freelist: ";
  u32 expected = store_.meta(Meta::kFreePages);
  u32 found = 0;
  PageNo number = load_be32(store_.page_one_->data + kAtFirstTrunk);
  while (number != 0 && left_ > 0) {
    if (!first_visit(number)) break;
    found++;
    Result<Page*> trunk = store_.get(number);
    if (!trunk.ok()) {
      say("failed to get page %u", number);
      break;
    }
    const u8* data = (*trunk)->data;
    u32 leaves = load_be32(data + 4);
    expect_map(number, MapType::kFree, 0);
    if (leaves > usable_ / 4 - 2) {
      say("freelist leaf count too big on page %u", number);
      found--;
      leaves = 0;
    }
    for (u32 i = 0; i < leaves; i++) {
      PageNo leaf = load_be32(data + 8 + 4 * i);
      expect_map(leaf, MapType::kFree, 0);
      (void)first_visit(leaf);
    }
    found += leaves;
    number = load_be32(data);
    Pager::unpin(*trunk);
  }
  if (found != expected && left_ > 0) say("size is %u but should be %u", found, expected);
  where_.clear();
}

void IntegrityCheck::overflow_chain(PageNo first, u64 expected, PageNo owner) {
  u64 found = 0;
  PageNo previous = owner;
  for (PageNo number = first; number != 0 && left_ > 0; found++) {
    if (found == expected) {
      found++;
      break;
    }
    if (!first_visit(number)) return;
    expect_map(number, found == 0 ? MapType::kOverflowFirst : MapType::kOverflow, previous);
    Result<Page*> page = store_.get(number);
    if (!page.ok()) {
      say("failed to get page %u", number);
      return;
    }
    previous = number;
    number = load_be32((*page)->data);
    Pager::unpin(*page);
  }
  if (found != expected)
    say("overflow list length is %u but should be %u", static_cast<u32>(found),
        static_cast<u32>(expected));
}

// Free blocks and cells must cover the page without overlap, gaps counted as fragments.
void IntegrityCheck::check_space(Page& page) {
  u32 content = load_be16_or_64k(page.data + page.header_at + kAtContentStart);
  std::vector<std::pair<u32, u32>> pieces;
  for (u32 i = 0; i < page.cell_count; i++) {
    Cell cell;
    u32 at = static_cast<u32>(page.cell_at(i) - page.data);
    if (!parse_cell(page, usable_, page.cell_at(i), &cell)) return;
    pieces.emplace_back(at, at + cell.bytes);
  }
  u32 steps = usable_;
  for (u32 block = load_be16(page.data + page.header_at + kAtFirstFreeblock);
       block != 0 && steps-- > 0; block = load_be16(page.data + block)) {
    if (block + 4 > usable_)
      return say("free block %u out of range on page %u", block, page.number);
    pieces.emplace_back(block, block + load_be16(page.data + block + 2));
  }
  std::sort(pieces.begin(), pieces.end());
  u32 end = content;
  u32 fragments = 0;
  for (auto [from, to] : pieces) {
    if (from < end) return say("Multiple uses for byte %u of page %u", from, page.number);
    fragments += from - end;
    end = to;
  }
  fragments += usable_ - std::min(end, usable_);
  u32 reported = page.data[page.header_at + kAtFragments];
  if (fragments != reported)
    say("Fragmentation of %u bytes reported as %u on page %u", fragments, reported, page.number);
}

// Answers the height of the tree below, 0 for a leaf, -1 when it cannot be told. Rowids must lie
// above *rowid_below (then it is moved on) and not above rowid_limit.
int IntegrityCheck::tree_page(PageNo number, bool table, i64* rowid_below, i64 rowid_limit,
                              int depth) {
  if (left_ <= 0) return -1;
  if (depth > 20) return say("Child page depth differs"), -1;
  if (!first_visit(number)) return -1;
  Result<Page*> got = store_.get(number);
  if (!got.ok()) return say("unable to get the page. error code=%d", 11), -1;
  Page& page = **got;
  const std::string outer = where_;
  char text[60];
  std::snprintf(text, sizeof(text), "%spage %u: ", outer.substr(0, outer.find("page ")).c_str(),
                number);
  where_ = text;
  int height = -1;
  if ((!page.decoded && !decode_node(page, usable_)) || page.table != table) {
    say("btreeInitPage() returns error code 11");
  } else {
    height = 0;
    for (u32 i = 0; i <= page.cell_count && left_ > 0; i++) {
      const bool right = i == page.cell_count;
      if (right && page.leaf) break;
      Cell cell;
      i64 limit = rowid_limit;
      if (!right) {
        if (!parse_cell(page, usable_, page.cell_at(i), &cell)) {
          say("cell %u: Extends off end of page", i);
          continue;
        }
        if (cell.overflows()) {
          u64 pages = (u64{cell.size} - cell.local + usable_ - 5) / (usable_ - 4);
          overflow_chain(cell.first_overflow(), pages, number);
        }
        if (table) limit = cell.rowid;
      }
      if (!page.leaf) {
        expect_map(page.child_at(i), MapType::kNode, number);
        int below = tree_page(page.child_at(i), table, rowid_below, limit, depth + 1);
        if (below >= 0 && height > 0 && below + 1 != height) say("Child page depth differs");
        if (below >= 0) height = below + 1;
      }
      if (!table || right) continue;
      bool ordered = page.leaf ? cell.rowid > *rowid_below && cell.rowid <= rowid_limit
                               : cell.rowid >= *rowid_below && cell.rowid <= rowid_limit;
      // The smallest rowid of all has nothing below it.
      if (!ordered && !(cell.rowid == INT64_MIN && *rowid_below == INT64_MIN))
        say("cell %u: Rowid %lld out of order", i, static_cast<long long>(cell.rowid));
      *rowid_below = cell.rowid;
    }
    check_space(page);
  }
  Pager::unpin(&page);
  where_ = outer;
  return height;
}

void IntegrityCheck::roots_and_header(const std::vector<PageNo>& roots) {
  PageNo largest = store_.meta(Meta::kLargestRoot);
  if (store_.auto_vacuum() != AutoVacuum::kNone) {
    PageNo found = 1;
    for (PageNo root : roots) found = std::max(found, root);
    if (found != largest) say("max rootpage (%u) disagrees with header (%u)", found, largest);
  } else if (store_.meta(Meta::kIncrementalVacuum) != 0) {
    say("incremental_vacuum enabled with a max rootpage of zero");
  }
}

void IntegrityCheck::unused_pages() {
  for (PageNo number = 1; number < seen_.size() && left_ > 0; number++) {
    bool map = store_.auto_vacuum() != AutoVacuum::kNone && store_.is_map_page(number);
    if (!seen_[number] && !map) say("Page %u: never used", number);
    if (seen_[number] && map) say("Page %u: pointer map referenced", number);
  }
}

std::vector<std::string> IntegrityCheck::run(const std::vector<PageNo>& roots) {
  PageNo lock = lock_page(store_.page_bytes());
  if (lock < seen_.size()) seen_[lock] = true;
  freelist();
  std::vector<PageNo> all{1};
  all.insert(all.end(), roots.begin(), roots.end());
  roots_and_header(all);
  for (PageNo root : all) {
    if (root == 0 || left_ <= 0) continue;
    if (root > 1) expect_map(root, MapType::kRoot, 0);
    Result<bool> table = store_.is_table_tree(root);
    where_ = "Tree " + std::to_string(root) + " page " + std::to_string(root) + ": ";
    if (!table.ok()) {
      if (first_visit(root)) say("btreeInitPage() returns error code 11");
      continue;
    }
    i64 below = INT64_MIN;
    (void)tree_page(root, *table, &below, kNoLimit, 0);
  }
  where_.clear();
  unused_pages();
  return std::move(messages_);
}

Result<std::vector<std::string>> Store::integrity_check(const std::vector<PageNo>& roots,
                                                        int max_messages) {
  if (page_one_ == nullptr) return std::vector<std::string>();
  return IntegrityCheck(*this, max_messages).run(roots);
}

}  // namespace db
