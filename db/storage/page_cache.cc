#include "db/storage/page_cache.h"

#include "base/check.h"
#include "db/storage/node.h"

#include <algorithm>
#include <cstring>

namespace db {

PageCache::PageCache(u32 page_bytes) : stride_(page_bytes + kPagePadding) {}

PageCache::~PageCache() {
  for (Page* page : pages_) forget_keys(*page);
}

u8* PageCache::take_buffer() {
  if (free_buffers_.empty()) {
    u32 count = next_slab_pages_;
    // Small databases stay small; large ones are not built from thousands of allocations.
    if (next_slab_pages_ * stride_ < (1u << 20)) next_slab_pages_ *= 2;
    free_buffers_.reserve(buffers_made_ + count);
    slabs_.push_back(std::make_unique_for_overwrite<u8[]>(size_t{count} * stride_));
    buffers_made_ += count;
    for (u32 i = count; i-- > 0;) {
      u8* buffer = slabs_.back().get() + size_t{i} * stride_;
      std::memset(buffer + stride_ - kPagePadding, 0, kPagePadding);
      free_buffers_.push_back(buffer);
    }
  }
  u8* buffer = free_buffers_.back();
  free_buffers_.pop_back();
  return buffer;
}

Page* PageCache::add(PageNo number) {
  u32 chunk = number / kChunk;
  if (chunk >= chunks_.size()) {
    static Chunk none;  // never written: a chunk of our own takes its place first
    owned_chunks_.resize(chunk + 1);
    chunks_.resize(chunk + 1, &none);
  }
  if (owned_chunks_[chunk] == nullptr) {
    owned_chunks_[chunk] = std::make_unique<Chunk>();
    chunks_[chunk] = owned_chunks_[chunk].get();
  }
  if (free_pages_.empty()) {
    u32 count = std::clamp<u32>(static_cast<u32>(pages_.size()), 4, 1024);
    free_pages_.reserve(pages_made_ + count);
    pages_.reserve(pages_made_ + count);
    page_slabs_.push_back(std::make_unique<Page[]>(count));
    pages_made_ += count;
    for (u32 i = count; i-- > 0;) free_pages_.push_back(page_slabs_.back().get() + i);
  }
  return adopt(number, take_buffer());
}

Page* PageCache::adopt(PageNo number, u8* buffer) {
  const u32 chunk = number / kChunk;
  Page* page = free_pages_.back();
  free_pages_.pop_back();
  *page = Page{};
  page->data = buffer;
  page->mask = stride_ - kPagePadding - 1;
  page->number = number;
  page->referenced = true;
  page->cache_slot = static_cast<u32>(pages_.size());
  pages_.push_back(page);
  DCHECK(chunks_[chunk]->pages[number % kChunk] == nullptr);
  chunks_[chunk]->pages[number % kChunk] = page;
  return page;
}

void PageCache::drop(Page* page) {
  forget_keys(*page);
  chunks_[page->number / kChunk]->pages[page->number % kChunk] = nullptr;
  pages_[page->cache_slot] = pages_.back();
  pages_[page->cache_slot]->cache_slot = page->cache_slot;
  pages_.pop_back();
  free_buffers_.push_back(page->data);
  page->data = nullptr;
  free_pages_.push_back(page);
}

void PageCache::remove(Page* page) {
  CHECK(page->pins == 0);
  drop(page);
}

void PageCache::move(Page* page, PageNo number) {
  chunks_[page->number / kChunk]->pages[page->number % kChunk] = nullptr;
  DCHECK(find(number) == nullptr);
  page->number = number;
  u32 chunk = number / kChunk;
  CHECK(chunk < chunks_.size() && owned_chunks_[chunk] != nullptr);
  chunks_[chunk]->pages[number % kChunk] = page;
}

void PageCache::clear() {
  for (size_t i = 0; i < pages_.size();) {
    Page* page = pages_[i];
    forget_keys(*page);
    page->decoded = false;
    if (page->pins == 0) {
      drop(page);
    } else {
      i++;
    }
  }
}

void PageCache::shrink(size_t capacity, u64 changed_from) {
  // Twice round at most: the first pass takes the mark of use away.
  size_t steps = 2 * pages_.size();
  while (pages_.size() > capacity && steps-- > 0) {
    if (hand_ >= pages_.size()) hand_ = 0;
    Page* page = pages_[hand_];
    if (page->pins != 0 || page->saved_epoch >= changed_from) {
      hand_++;
    } else if (page->referenced) {
      page->referenced = false;
      hand_++;
    } else {
      drop(page);
    }
  }
}

}  // namespace db
