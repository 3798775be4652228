// Copies a database into another, some pages at a time, while both stay in use: what sqlite3_backup
// does. Between steps the source may change; then the copy starts over. The target is locked for
// writing from the first step to the last.
//
//   Backup backup(target, source);
//   while (TRY(backup.step(100))) {}
//
// Errors: kBusy (a lock was not granted; the step may be repeated), kPermission (the target cannot
// take the page size), others as in btree.h. Single-threaded.
#pragma once

#include "db/storage/btree.h"

namespace db {

class Backup {
 public:
  Backup(Store& target, Store& source) : target_(target), source_(source) {}
  // Unfinished: the target is rolled back.
  ~Backup();
  Backup(const Backup&) = delete;
  Backup& operator=(const Backup&) = delete;

  // Copies up to `pages` pages (all of them when negative). False: the copy is complete and
  // durable.
  base::Result<bool> step(int pages);
  // As of the last step.
  PageNo remaining() const { return total_ - std::min(total_, next_ - 1); }
  PageNo page_count() const { return total_; }

 private:
  base::Result<bool> copy(int pages);

  Store& target_;
  Store& source_;
  PageNo next_ = 1;
  PageNo total_ = 0;
  u32 version_ = 0;  // of the source when the copy began
  u64 changes_ = 0;
  bool done_ = false;
  bool writing_ = false;
};

}  // namespace db
