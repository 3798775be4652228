// The pages a pager holds in memory, found by number through a two-level table, with buffers that
// are reused. Above its capacity a clock hand picks pages to let go: those neither pinned, nor
// changed, nor used since it passed. Never fails but for lack of memory. Single-threaded.
#pragma once

#include "db/storage/page.h"

#include <memory>
#include <vector>

namespace db {

class PageCache {
 public:
  explicit PageCache(u32 page_bytes);
  ~PageCache();
  PageCache(const PageCache&) = delete;
  PageCache& operator=(const PageCache&) = delete;

  Page* find(PageNo number) const {
    u32 chunk = number / kChunk;
    return chunk < chunks_.size() ? chunks_[chunk]->pages[number % kChunk] : nullptr;
  }
  // A page that is not there yet; its bytes are undefined, its padding is zero.
  Page* add(PageNo number);
  // Puts a page back that was there before, with a buffer as its bytes. Does not allocate.
  // REQUIRES: as many pages were there at once before.
  Page* adopt(PageNo number, u8* buffer);
  // REQUIRES: not pinned.
  void remove(Page* page);
  // Renumbers a page; nothing may be cached under `number`.
  void move(Page* page, PageNo number);
  // Forgets the decoded headers and removes all pages that are not pinned.
  void clear();
  size_t size() const { return pages_.size(); }
  // All pages, in no order. Do not add or remove while walking.
  const std::vector<Page*>& pages() const { return pages_; }
  // Lets go of pages until `capacity` are left, if that can be. Pages with saved_epoch of
  // `changed_from` or more have changes and stay.
  void shrink(size_t capacity, u64 changed_from);

  // Page-sized buffers for undo images and scratch.
  u8* take_buffer();
  void give_buffer(u8* buffer) { free_buffers_.push_back(buffer); }

 private:
  static constexpr u32 kChunk = 512;
  struct Chunk {
    Page* pages[kChunk] = {};
  };
  void drop(Page* page);

  u32 stride_;
  u32 next_slab_pages_ = 2;
  std::vector<Chunk*> chunks_;
  std::vector<std::unique_ptr<Chunk>> owned_chunks_;
  std::vector<Page*> pages_;
  size_t hand_ = 0;
  // There is room in the lists for all that was ever made: giving back never allocates, so that a
  // transaction can be taken back when memory has run out.
  size_t buffers_made_ = 0;
  size_t pages_made_ = 0;
  std::vector<std::unique_ptr<u8[]>> slabs_;
  std::vector<u8*> free_buffers_;
  std::vector<std::unique_ptr<Page[]>> page_slabs_;
  std::vector<Page*> free_pages_;
};

}  // namespace db
