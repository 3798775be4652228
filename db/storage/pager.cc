#include "db/storage/pager.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace db {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

Result<std::unique_ptr<Pager>> Pager::open(const std::string& path, PagerOptions options) {
  std::unique_ptr<Pager> pager(new Pager(std::move(options)));
  pager->path_ = path;
  pager->use_page_size(kDefaultPageBytes, 0);
  if (path.empty()) pager->journal_mode_ = JournalMode::kMemory;
  return pager;
}

Pager::~Pager() = default;

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
}

Page* Pager::fail(Error error) {
  error_ = std::make_unique<Error>(std::move(error));
  return nullptr;
}

Page* Pager::fetch(PageNo number) {
  if (number == 0 || number > page_count_ || number == lock_page(page_bytes_)) {
    return fail(Error(ErrorCode::kCorruption, "database disk image is malformed"));
  }
  Page* page = cache_->add(number);
  std::memset(page->data, 0, page_bytes_);
  page->pins = 1;
  return page;
}

PageNo Pager::next_page() const {
  PageNo next = page_count_ + 1;
  return next == lock_page(page_bytes_) ? next + 1 : next;
}

Page* Pager::get_blank(PageNo number) {
  if (number > max_page_count_)
    return fail(Error(ErrorCode::kFull, "database or disk is full"));
  Page* page = cache_->find(number);
  if (page == nullptr) page = cache_->add(number);
  page->pins++;
  page->referenced = true;
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
  bool keep = page->number <= kept_count && (!savepoints_.empty() || journal_mode_ != JournalMode::kWal);
  if (keep) {
    u8* image = cache_->take_buffer();
    std::memcpy(image, page->data, page_bytes_);
    undo_.push_back({page->number, image, page->saved_epoch});
  }
  page->saved_epoch = epoch_;
  if (first && !in_memory()) changed_.push_back(page->number);
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
    if (page == nullptr) page = cache_->add(undo.number);
    std::memcpy(page->data, undo.image, page_bytes_);
    page->saved_epoch = undo.saved_epoch;
    page->decoded = false;
    cache_->give_buffer(undo.image);
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

Status Pager::begin_read() {
  reading_ = true;
  return {};
}

Status Pager::begin_write(bool) {
  if (writing_) return {};
  if (read_only()) return Error(ErrorCode::kPermission, "attempt to write a readonly database");
  writing_ = true;
  original_count_ = page_count_;
  epoch_ = txn_epoch_ = ++last_epoch_;
  return {};
}

void Pager::finish_write() {
  for (Undo& undo : undo_) cache_->give_buffer(undo.image);
  undo_.clear();
  changed_.clear();
  savepoints_.clear();
  writing_ = false;
  epoch_ = txn_epoch_ = ~u64{0};
}

Status Pager::stamp_page_one(Page* page_one) {
  if (!make_writable(page_one)) return error();
  base::store_be32(page_one->data + kAtPageCount, page_count_);
  if (in_memory()) return {};
  u32 counter = base::load_be32(page_one->data + kAtChangeCounter) + 1;
  base::store_be32(page_one->data + kAtChangeCounter, counter);
  base::store_be32(page_one->data + kAtValidFor, counter);
  base::store_be32(page_one->data + kAtLibraryVersion, kLibraryVersion);
  return {};
}

Status Pager::commit_phase_one(const std::string&) { return {}; }

Status Pager::commit_phase_two() {
  finish_write();
  return {};
}

Status Pager::rollback() {
  if (!writing_) return {};
  undo_to(0, original_count_);
  finish_write();
  return {};
}

void Pager::end_read() { reading_ = false; }

Result<CheckpointResult> Pager::checkpoint(CheckpointMode) { return CheckpointResult{}; }

Result<JournalMode> Pager::set_journal_mode(JournalMode mode) {
  if (in_memory()) {
    if (mode == JournalMode::kOff || mode == JournalMode::kMemory) journal_mode_ = mode;
    return journal_mode_;
  }
  journal_mode_ = mode;
  return journal_mode_;
}

}  // namespace db
