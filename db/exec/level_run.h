// One FROM item at run time: moves its slot from row to row along its access path.
// start() begins over with the enclosing rows as they are now; advance() goes to the next row.
#pragma once

#include "db/catalog/virtual_table.h"
#include "db/exec/row_stream.h"
#include "db/exec/table_cursor.h"
#include "db/value/first_column.h"

#include <unordered_set>

namespace db {

class JoinHash;

// The rowids of a kRowidRange path, both included. False: there are none (or failed).
bool rowid_range(const AccessPath& path, Cx& cx, i64* low, i64* high);

class LevelRun {
 public:
  LevelRun(const JoinLevel& level, bool first, Cx& cx);
  ~LevelRun();

  bool start(Cx& cx);
  bool advance(Cx& cx);
  void close(Cx& cx);
  Slot& slot(Cx& cx) { return cx.slots[static_cast<size_t>(level_.source->slot)]; }
  const JoinLevel& level() const { return level_; }

  // Right joins: rows of the build side, and which of them met a match.
  void note_match() { matched_[current_] = true; }
  bool next_unmatched(Cx& cx);
  void begin_unmatched() { unmatched_at_ = 0; }

  bool active = false;
  bool matched = false;
  bool null_given = false;

 private:
  // One path over a table; branches of an OR are Seekers of their own.
  struct Seeker {
    const AccessPath* path = nullptr;
    std::vector<Value> key;                   // prefix values
    FirstColumn first;                        // a key of one, else empty
    std::vector<std::vector<Value>> choices;  // per prefix column: IN's values
    std::vector<size_t> chosen;
    Value high, low;
    bool has_high = false, has_low = false;
    bool started = false;
  };

  bool start_table(Cx& cx);
  bool seek_start(Seeker& seeker, Cx& cx);
  bool seek_next(Seeker& seeker, Cx& cx);
  bool prepare_choices(Seeker& seeker, Cx& cx);
  bool prepare_range(Seeker& seeker, Cx& cx);
  bool next_choice(Seeker& seeker);
  bool position(Seeker& seeker, Cx& cx);
  bool seek_rowid(Seeker& seeker, Cx& cx);
  bool position_rowid(Seeker& seeker, Cx& cx);
  bool position_index(Seeker& seeker, Cx& cx);
  bool position_rowid_range(Seeker& seeker, Cx& cx);
  bool within(Seeker& seeker, Cx& cx);
  bool move(Seeker& seeker, Cx& cx, bool forward);
  bool hit(Hit hit, Cx& cx);
  bool advance_or(Cx& cx);
  bool build_hash(Cx& cx);
  bool add_hash_row(Cx& cx);
  bool start_hash(Cx& cx);
  void drop_hash();
  bool advance_first_scan(bool found, Cx& cx);
  bool probe(Cx& cx);
  bool probe_key(Value* key, Cx& cx);
  bool advance_hash(Cx& cx);
  bool start_rows(Cx& cx);
  bool advance_rows(Cx& cx);
  bool start_virtual(Cx& cx);
  bool load_virtual_row(Cx& cx);
  void show(Value* row, Cx& cx);

  const JoinLevel& level_;
  bool first_;
  TableCursor cursor_;
  Seeker seeker_;
  // kMultiOr
  std::vector<Seeker> branches_;
  size_t branch_ = 0;
  std::unordered_set<i64> seen_rowids_;
  // kRows
  std::unique_ptr<RowStream> stream_;
  RowBuffer* rows_ = nullptr;
  size_t at_ = 0;
  // kHash
  bool built_ = false;
  std::unique_ptr<JoinHash> hash_;  // built in batches, unless the row executor is forced
  std::vector<Value> hash_row_;
  u64 built_epoch_ = 0, built_run_ = 0;
  bool scanned_ = false;   // kept: the first start read the table without building
  bool scanning_ = false;  // kept: it is under way
  std::vector<i16> map_;
  size_t stride_ = 0;
  std::vector<Value> built_rows_;
  size_t built_count_ = 0;
  std::unique_ptr<ValueSet> keys_;
  std::vector<u32> heads_, tails_, chain_;  // place + 1
  size_t current_ = 0;
  bool probed_ = false;
  std::vector<bool> matched_;
  size_t unmatched_at_ = 0;
  // kVirtual
  std::unique_ptr<VirtualCursor> virtual_;
  std::vector<Value> virtual_args_, virtual_row_;
  std::string virtual_text_;
};

}  // namespace db
