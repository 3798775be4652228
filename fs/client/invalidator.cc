#include "fs/client/invalidator.h"

#include <chrono>

namespace fs {

Invalidator::Invalidator(fuse::Session& session) : session_(session) {
  thread_ = std::thread([this] { run(); });
}

Invalidator::~Invalidator() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Invalidator::drop(const std::vector<Invalidation>& list) {
  std::unique_lock lock(mutex_);
  queue_.push_back(list);
  u64 mine = ++queued_;
  changed_.notify_all();
  bool done = changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                                [&] { return finished_ >= mine || stopping_; });
  lock.unlock();
  if (!done) drop_all();
}

void Invalidator::drop_all() {
  if (session_.agreement().inc_epoch()) (void)session_.notify(fuse::encode_inc_epoch());
}

void Invalidator::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (queue_.empty()) {
      changed_.wait(lock);
      continue;
    }
    std::vector<Invalidation> list = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    for (const Invalidation& one : list) notify(one);
    lock.lock();
    finished_++;
    changed_.notify_all();
  }
}

// A refusal means that the kernel does not know the inode or the name: nothing to forget.
void Invalidator::notify(const Invalidation& one) {
  switch (one.kind) {
    case Invalidation::Kind::kEntry:
      (void)session_.notify(fuse::encode_inval_entry(one.ino, one.name, false));
      break;
    case Invalidation::Kind::kAttributes:
      (void)session_.notify(fuse::encode_inval_inode(one.ino, -1, 0));
      break;
    case Invalidation::Kind::kData:
      (void)session_.notify(fuse::encode_inval_inode(one.ino, 0, 0));
      break;
  }
}

}  // namespace fs
