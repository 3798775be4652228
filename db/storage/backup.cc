#include "db/storage/backup.h"

namespace db {

using base::Result;
using base::Status;

Backup::~Backup() {
  if (!writing_ || done_) return;
  (void)target_.rollback();
  target_.end_read();
}

Result<bool> Backup::step(int pages) {
  if (done_) return false;
  const bool own_read = source_.state() == TransactionState::kNone;
  if (own_read) TRY(source_.begin_read());
  Result<bool> more = copy(pages);
  if (own_read) source_.end_read();
  return more;
}

Result<bool> Backup::copy(int pages) {
  if (!writing_) {
    // An empty target takes the source's page size.
    TRY(target_.begin_read());
    bool empty = target_.page_count() == 0;
    target_.end_read();
    if (empty)
      TRY(target_.set_page_size(source_.page_bytes(),
                                source_.page_bytes() - source_.usable_bytes()));
    TRY(target_.begin_write());
    writing_ = true;
    TRY(target_.begin_replace(source_));
  }
  // Somebody changed the source since the last step: pages copied before may be old.
  u64 changes = source_.pager().change_count();
  if (source_.data_version() != version_ || changes != changes_) next_ = 1;
  version_ = source_.data_version();
  changes_ = changes;
  total_ = source_.page_count();
  for (; next_ <= total_ && pages != 0; next_++) {
    TRY(target_.copy_page(source_, next_));
    if (pages > 0) pages--;
  }
  if (next_ <= total_) return true;
  if (total_ > 0) TRY(target_.finish_replace(source_));
  TRY(target_.commit());
  target_.end_read();
  done_ = true;
  return false;
}

}  // namespace db
