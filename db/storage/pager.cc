#include "db/storage/pager.h"

#include "base/check.h"

#include <algorithm>
#include <cstring>

namespace db {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

Result<std::unique_ptr<Pager>> Pager::open(const std::string& path, PagerOptions options) {
  std::unique_ptr<Pager> pager(new Pager(std::move(options)));
  PagerOptions& with = pager->options_;
  if (with.vfs == nullptr) with.vfs = &posix_vfs();
  pager->use_page_size(kDefaultPageBytes, 0);
  if (path.empty()) {
    pager->journal_mode_ = JournalMode::kMemory;
    return pager;
  }
  VfsOpen mode{.create = with.create && !with.read_only, .read_only = with.read_only};
  Result<std::unique_ptr<VfsFile>> file = with.vfs->open(path, mode);
  if (!file.ok() && file.error().code() == ErrorCode::kPermission && !with.read_only) {
    // A file that may only be read is still worth opening.
    with.read_only = true;
    file = with.vfs->open(path, {.read_only = true});
  }
  pager->file_ = TRY(std::move(file));
  pager->path_ = with.vfs->absolute(path);
  return pager;
}

Pager::~Pager() {
  if (wal_ == nullptr) return;
  // The last one out puts the log back into the file.
  wal_->end_read();
  if (!read_only() && file_->lock(LockLevel::kExclusive).ok())
    (void)wal_->close_and_remove(synchronous_ != Synchronous::kOff);
  wal_ = nullptr;
}

void Pager::use_page_size(u32 page_bytes, u32 reserved_bytes) {
  if (page_bytes != page_bytes_) {
    cache_ = std::make_unique<PageCache>(page_bytes);
    scratch_ = std::make_unique<u8[]>(page_bytes + kPagePadding);
  }
  page_bytes_ = page_bytes;
  usable_bytes_ = page_bytes - reserved_bytes;
  set_cache_size(cache_size_);
}

Status Pager::set_page_size(u32 page_bytes, u32 reserved_bytes) {
  if (page_count_ > 0 || reading_) return {};
  use_page_size(page_bytes, reserved_bytes);
  return {};
}

void Pager::set_cache_size(i64 size) {
  cache_size_ = size;
  i64 pages = size >= 0 ? size : -size * 1024 / page_bytes_;
  cache_pages_ = static_cast<size_t>(std::max<i64>(pages, 10));
  shrink_at_ = cache_pages_;
}

Page* Pager::fail(Error error) {
  error_ = std::make_unique<Error>(std::move(error));
  return nullptr;
}

Page* Pager::fetch(PageNo number) {
  if (number == 0 || number > page_count_ || number == lock_page(page_bytes_)) {
    return fail(Error(ErrorCode::kCorruption, "database disk image is malformed"));
  }
  if (file_ != nullptr && cache_->size() >= shrink_at_) {
    cache_->shrink(cache_pages_ - cache_pages_ / 16 - 1, writing_ ? txn_epoch_ : ~u64{0});
    // Where nearly all is pinned or changed, do not look again for every page.
    shrink_at_ = std::max(cache_pages_, cache_->size() + cache_->size() / 4);
  }
  Page* page = cache_->add(number);
  page->pins = 1;
  Status status = read_page(page);
  if (!status.ok()) {
    page->pins = 0;
    cache_->remove(page);
    return fail(std::move(status).error());
  }
  return page;
}

Status Pager::read_page(Page* page) {
  u8* data = page->data;
  size_t got = 0;
  if (file_ != nullptr) {
    u32 frame = wal_ != nullptr ? TRY(wal_->find(page->number)) : 0;
    if (frame != 0) return wal_->read_frame(frame, {data, page_bytes_});
    got = TRY(file_->read_at(u64{page->number - 1} * page_bytes_, {data, page_bytes_}));
  }
  std::memset(data + got, 0, page_bytes_ - got);
  return {};
}

PageNo Pager::next_page() const {
  PageNo next = page_count_ + 1;
  return next == lock_page(page_bytes_) ? next + 1 : next;
}

Page* Pager::get_blank(PageNo number) {
  if (number > max_page_count_) return fail(Error(ErrorCode::kFull, "database or disk is full"));
  Page* page = cache_->find(number);
  // A rollback may need what is there now; the log keeps that by itself.
  bool keep = number <= page_count_ && (wal_ == nullptr || !savepoints_.empty());
  if (page == nullptr && keep) {
    page = fetch(number);
    if (page == nullptr) return nullptr;
  } else {
    if (page == nullptr) page = cache_->add(number);
    page->pins++;
    page->referenced = true;
  }
  if (number > page_count_) {
    // Behind the end there was nothing, so there is nothing to keep.
    page_count_ = number;
    page->saved_epoch = epoch_;
    if (!in_memory()) changed_.push_back(number);
  } else if (!make_writable(page)) {
    unpin(page);
    return nullptr;
  }
  std::memset(page->data, 0, page_bytes_);
  page->decoded = false;
  return page;
}

bool Pager::make_writable_slow(Page* page) {
  if (!writing_) {
    fail(Error(ErrorCode::kPermission, "attempt to write a readonly database"));
    return false;
  }
  bool first = page->saved_epoch < txn_epoch_;
  PageNo kept_count = savepoints_.empty() ? original_count_ : savepoints_.back().page_count;
  bool keep = page->number <= kept_count && (!savepoints_.empty() || wal_ == nullptr);
  if (keep) {
    u8* image = cache_->take_buffer();
    std::memcpy(image, page->data, page_bytes_);
    undo_.push_back({page->number, image, page->saved_epoch});
  }
  if (first && !in_memory()) changed_.push_back(page->number);
  page->saved_epoch = epoch_;
  return true;
}

void Pager::drop_behind(PageNo pages) {
  if (page_count_ <= pages) return;
  for (PageNo number = page_count_; number > pages; number--) {
    Page* page = cache_->find(number);
    if (page != nullptr) cache_->remove(page);
  }
}

Status Pager::truncate(PageNo pages) {
  PageNo kept_count = savepoints_.empty() ? original_count_ : savepoints_.back().page_count;
  for (PageNo number = pages + 1; number <= std::min(page_count_, kept_count); number++) {
    if (number == lock_page(page_bytes_)) continue;
    Page* page = get(number);
    if (page == nullptr) return error();
    bool good = make_writable(page);
    unpin(page);
    if (!good) return error();
  }
  drop_behind(pages);
  page_count_ = pages;
  return {};
}

Status Pager::move_page(Page* from, PageNo to) {
  Page* target = get_blank(to);
  if (target == nullptr) return error();
  std::memcpy(target->data, from->data, page_bytes_);
  unpin(target);
  return {};
}

// Walks the undo log back, newest first, so that the oldest image of a page wins.
void Pager::undo_to(size_t undo_at, PageNo page_count) {
  drop_behind(page_count);
  page_count_ = page_count;
  while (undo_.size() > undo_at) {
    Undo& undo = undo_.back();
    Page* page = cache_->find(undo.number);
    if (page != nullptr) {
      std::memcpy(page->data, undo.image, page_bytes_);
      cache_->give_buffer(undo.image);
    } else {
      page = cache_->adopt(undo.number, undo.image);
    }
    page->saved_epoch = undo.saved_epoch;
    page->decoded = false;
    undo_.pop_back();
  }
}

int Pager::open_savepoint() {
  CHECK(writing_);
  epoch_ = ++last_epoch_;
  savepoints_.push_back({epoch_, undo_.size(), page_count_});
  return static_cast<int>(savepoints_.size()) - 1;
}

void Pager::release_savepoint(int index) {
  if (index >= savepoint_count()) return;
  savepoints_.resize(static_cast<size_t>(index));
  epoch_ = savepoints_.empty() ? txn_epoch_ : savepoints_.back().epoch;
}

Status Pager::rollback_savepoint(int index) {
  if (index >= savepoint_count()) return {};
  savepoints_.resize(static_cast<size_t>(index) + 1);
  const Savepoint& savepoint = savepoints_.back();
  undo_to(savepoint.undo_at, savepoint.page_count);
  epoch_ = savepoint.epoch;
  return {};
}

void Pager::finish_write() {
  for (Undo& undo : undo_) cache_->give_buffer(undo.image);
  undo_.clear();
  changed_.clear();
  savepoints_.clear();
  writing_ = false;
  journal_written_ = false;
  shrink_at_ = cache_pages_;
  epoch_ = txn_epoch_ = ~u64{0};
}

Status Pager::stamp_page_one(Page* page_one, PageNo page_count) {
  if (!make_writable(page_one)) return error();
  base::store_be32(page_one->data + kAtPageCount, page_count);
  if (in_memory() || wal_ != nullptr) return {};
  // On from what the file had, even if its content was replaced.
  u32 counter = base::load_be32(file_version_) + 1;
  base::store_be32(page_one->data + kAtChangeCounter, counter);
  base::store_be32(page_one->data + kAtValidFor, counter);
  base::store_be32(page_one->data + kAtLibraryVersion, kLibraryVersion);
  return {};
}

}  // namespace db
