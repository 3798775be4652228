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

Status Store::replace_content(Store& source) {
  if (state_ != TransactionState::kWrite)
    return Error(ErrorCode::kPermission, "attempt to write a readonly database");
  if (source.page_bytes() != page_bytes())
    return Error(ErrorCode::kInvalidArgument, "the page sizes of the two databases differ");
  trip_cursors(false);
  PageNo pages = source.pager_->page_count();
  for (PageNo number = 1; number <= pages; number++) {
    if (number == lock_page(page_bytes())) continue;
    TRY(copy_page(source, number));
  }
  if (pages < pager_->page_count()) TRY(pager_->truncate(pages));
  auto_vacuum_ = source.auto_vacuum_;
  return {};
}

Status Store::copy_page(Store& source, PageNo number) {
  Page* from = TRY(source.get(number));
  Page* to = pager_->get_blank(number);
  if (to != nullptr) {
    std::memcpy(to->data, from->data, page_bytes());
    Pager::unpin(to);
  }
  Pager::unpin(from);
  return to == nullptr ? Status(pager_->error()) : Status{};
}

}  // namespace db
