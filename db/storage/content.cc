// Whole contents: a database as the bytes of its file, and one database put in the place of
// another.
#include "base/check.h"
#include "db/storage/btree.h"

#include <algorithm>
#include <cstring>

namespace db {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

Result<std::vector<u8>> Store::serialize() {
  std::vector<u8> bytes(size_t{pager_->page_count()} * page_bytes());
  for (PageNo number = 1; number <= pager_->page_count(); number++) {
    if (number == lock_page(page_bytes())) continue;
    Page* page = TRY(get(number));
    std::memcpy(bytes.data() + size_t{number - 1} * page_bytes(), page->data, page_bytes());
    Pager::unpin(page);
  }
  // In the middle of a write transaction the header does not know the size yet.
  if (!bytes.empty()) base::store_be32(bytes.data() + kAtPageCount, pager_->page_count());
  return bytes;
}

Result<std::unique_ptr<Store>> Store::open_image(ByteView image) {
  auto store = TRY(open("", {}));
  if (image.empty()) return store;
  Error not_ours(ErrorCode::kCorruption, "file is not a database");
  if (image.size() < kMinPageBytes || std::memcmp(image.data(), kFileMagic, 16) != 0)
    return not_ours;
  u32 page_bytes = base::load_be16(image.data() + kAtPageBytes);
  if (page_bytes == 1) page_bytes = kMaxPageBytes;
  if (!store->set_page_size(page_bytes, image[kAtReservedBytes]).ok()) return not_ours;
  TRY(store->pager_->begin_read());
  TRY(store->pager_->begin_write(false));
  PageNo pages = static_cast<PageNo>(image.size() / page_bytes);
  for (PageNo number = 1; number <= pages; number++) {
    if (number == lock_page(page_bytes)) continue;
    Page* page = store->pager_->get_blank(number);
    if (page == nullptr) return store->pager_->error();
    std::memcpy(page->data, image.data() + size_t{number - 1} * page_bytes, page_bytes);
    // A memory database has no log: the write and read versions say so.
    if (number == 1) page->data[kAtWriteVersion] = page->data[kAtReadVersion] = 1;
    Pager::unpin(page);
  }
  TRY(store->pager_->commit_phase_one(""));
  TRY(store->pager_->commit_phase_two());
  store->pager_->end_read();
  return store;
}

Status Store::begin_replace(Store& source) {
  if (state_ != TransactionState::kWrite)
    return Error(ErrorCode::kPermission, "attempt to write a readonly database");
  bool fixed = in_memory() || pager_->journal_mode() == JournalMode::kWal;
  if (fixed && source.page_bytes() != page_bytes())
    return Error(ErrorCode::kPermission, "attempt to write a readonly database");
  trip_cursors(false);
  replaced_by_ = source.page_count();
  return {};
}

Status Store::finish_replace(Store& source) {
  u64 size = u64{source.page_count()} * source.page_bytes();
  PageNo pages = static_cast<PageNo>((size + page_bytes() - 1) / page_bytes());
  if (pages < pager_->page_count()) TRY(pager_->truncate(pages));
  auto_vacuum_ = source.auto_vacuum_;
  replaced_by_ = source.page_count();
  // Every other connection must see that the schema is another one.
  u8* data = page_one_->data;
  base::store_be32(data + kAtMeta + 4, old_cookie_ + 1);
  u8 version = pager_->journal_mode() == JournalMode::kWal ? 2 : 1;
  data[kAtWriteVersion] = data[kAtReadVersion] = version;
  return {};
}

Status Store::replace_content(Store& source) {
  TRY(begin_replace(source));
  for (PageNo number = 1; number <= source.page_count(); number++) TRY(copy_page(source, number));
  return finish_replace(source);
}

// Puts the bytes of one source page where they lie in the file, whatever the page sizes are.
Status Store::copy_page(Store& source, PageNo number) {
  if (number == lock_page(source.page_bytes())) return {};
  if (number == 1) old_cookie_ = meta(Meta::kSchemaCookie);
  Page* from = TRY(source.get(number));
  const u64 start = u64{number - 1} * source.page_bytes();
  Status status;
  for (u64 at = start; at < start + source.page_bytes() && status.ok();) {
    PageNo to_number = static_cast<PageNo>(at / page_bytes()) + 1;
    u32 within = static_cast<u32>(at % page_bytes());
    u32 part = std::min(page_bytes() - within, source.page_bytes() - static_cast<u32>(at - start));
    if (to_number != lock_page(page_bytes())) {
      // A page that is filled in several parts keeps what it has.
      bool there = within != 0 && to_number <= pager_->page_count();
      Page* to = there ? pager_->get(to_number) : pager_->get_blank(to_number);
      if (to == nullptr || !pager_->make_writable(to)) {
        status = pager_->error();
      } else {
        std::memcpy(to->data + within, from->data + (at - start), part);
        to->decoded = false;
      }
      if (to != nullptr) Pager::unpin(to);
    }
    at += part;
  }
  Pager::unpin(from);
  return status;
}

}  // namespace db
