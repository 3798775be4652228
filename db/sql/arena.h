// A bump allocator for what lives as long as one parsed statement. reset() keeps the first block,
// so a connection that reuses its arena does not call malloc on the common path. Objects are never
// destroyed one by one, hence only trivially destructible types may live here.
// Single-threaded.
#pragma once

#include "base/types.h"

#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

namespace db::sql {

class Arena {
 public:
  Arena() = default;
  explicit Arena(size_t first_block_bytes) : first_bytes_(first_block_bytes) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  Arena(Arena&& other) noexcept { *this = std::move(other); }
  Arena& operator=(Arena&& other) noexcept {
    std::swap(head_, other.head_);
    std::swap(at_, other.at_);
    std::swap(end_, other.end_);
    std::swap(first_bytes_, other.first_bytes_);
    return *this;
  }
  ~Arena() { free_blocks(head_); }

  // Uninitialised bytes; `align` is a power of two, at most 16.
  void* allocate(size_t bytes, size_t align = 8) {
    auto at = (reinterpret_cast<uintptr_t>(at_) + align - 1) & ~(uintptr_t{align} - 1);
    if (at + bytes > reinterpret_cast<uintptr_t>(end_)) return allocate_slow(bytes, align);
    at_ = reinterpret_cast<char*>(at + bytes);
    return reinterpret_cast<void*>(at);
  }

  template <class T, class... Args>
  T* make(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (allocate(sizeof(T), alignof(T))) T{std::forward<Args>(args)...};
  }

  std::string_view copy(std::string_view text) {
    auto* to = static_cast<char*>(allocate(text.size(), 1));
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    return {to, text.size()};
  }

  // Forgets everything; the first block stays for the next statement.
  void reset() {
    if (head_ == nullptr) return;
    Block* first = head_;
    while (first->next != nullptr) {
      Block* next = first->next;
      ::operator delete(first);
      first = next;
    }
    head_ = first;
    at_ = reinterpret_cast<char*>(first + 1);
    end_ = at_ + first->bytes;
  }

 private:
  struct alignas(16) Block {
    Block* next;  // the block before this one
    size_t bytes;
  };

  void* allocate_slow(size_t bytes, size_t align) {
    size_t size = head_ == nullptr ? first_bytes_ : head_->bytes * 2;
    if (size > kBlockBytesMax) size = kBlockBytesMax;
    if (size < bytes + align) size = bytes + align;
    auto* block = static_cast<Block*>(::operator new(sizeof(Block) + size));
    block->next = head_;
    block->bytes = size;
    head_ = block;
    at_ = reinterpret_cast<char*>(block + 1);
    end_ = at_ + size;
    return allocate(bytes, align);
  }

  static void free_blocks(Block* block) {
    while (block != nullptr) {
      Block* next = block->next;
      ::operator delete(block);
      block = next;
    }
  }

  static constexpr size_t kBlockBytesMax = 1 << 20;
  Block* head_ = nullptr;
  char* at_ = nullptr;
  char* end_ = nullptr;
  size_t first_bytes_ = 4096;
};

// A growing array inside an arena: two words, trivially copyable, copies share the items.
template <class T>
class List {
 public:
  u32 size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() const { return items_; }
  T* end() const { return items_ + size_; }
  T& operator[](size_t index) const { return items_[index]; }
  T& back() const { return items_[size_ - 1]; }

  void push(Arena& arena, T item) {
    if (size_ == capacity_) grow(arena);
    new (items_ + size_) T(item);
    ++size_;
  }

 private:
  void grow(Arena& arena) {
    u32 capacity = capacity_ == 0 ? 4 : capacity_ * 2;
    auto* items = static_cast<T*>(arena.allocate(sizeof(T) * capacity, alignof(T)));
    for (u32 i = 0; i < size_; ++i) new (items + i) T(items_[i]);
    items_ = items;
    capacity_ = capacity;
  }
  static_assert(std::is_trivially_destructible_v<T>);
  T* items_ = nullptr;
  u32 size_ = 0;
  u32 capacity_ = 0;
};

}  // namespace db::sql
