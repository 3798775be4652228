// The thread behind Bridge that brings the journal to the disk and lets waiting replies go.
#include "base/log.h"
#include "fs/client/bridge.h"

#include <cerrno>
#include <chrono>

namespace fs {

namespace {
// An idle mount wakes this often, to keep its lease.
constexpr std::chrono::milliseconds kKeepEvery(2000);
}  // namespace

void Bridge::announce_dirty() {
  if (dirty_.exchange(true)) return;
  std::lock_guard lock(sync_mutex_);
  sync_wanted_.notify_one();
}

void Bridge::sync_loop() {
  std::unique_lock lock(sync_mutex_);
  for (;;) {
    sync_wanted_.wait_for(lock, kKeepEvery,
                          [this] { return stopping_ || !waiting_.empty() || dirty_.load(); });
    // Changes that nobody waits for are collected for a while: one sync covers them all.
    sync_wanted_.wait_for(lock,
                          std::chrono::milliseconds(dirty_.load() ? options_.sync_interval_ms : 0),
                          [this] { return stopping_ || !waiting_.empty(); });
    bool last_round = stopping_;
    lock.unlock();
    sync_once();
    keep_lease();
    if (!last_round && waiting_count_.load() == 0 && workspace_.wants_checkpoint()) {
      base::Status folded = workspace_.checkpoint();
      if (!folded.ok()) base::log_error("client", folded.error().message());
    }
    lock.lock();
    if (last_round) return;
  }
}

void Bridge::sync_once() {
  dirty_ = false;
  int error = 0;
  if (workspace_.synced_seq() < committed_.load()) {
    base::Status synced = workspace_.sync();
    bool later = !synced.ok() && synced.error().code() == base::ErrorCode::kUnavailable;
    if (!synced.ok() && !std::exchange(in_trouble_, true)) {
      base::log_error("client", synced.error().message());
    }
    if (synced.ok()) in_trouble_ = false;
    std::lock_guard lock(sync_mutex_);
    // Nothing is lost while the server is away; only those who wait now are told so.
    if (later) {
      error = EIO;
      dirty_ = true;
    } else if (!synced.ok()) {
      failed_ = true;
    }
  }
  release_waiting(workspace_.synced_seq(), failed_ ? EIO : error);
}

void Bridge::keep_lease() {
  if (fenced_.load()) return;
  base::Status kept = workspace_.keep();
  if (kept.ok() || kept.error().code() != base::ErrorCode::kConflict) return;
  base::log_error("client", kept.error().message());
  fenced_ = true;
  // What the kernel remembers may be somebody else's past by now.
  if (session_->agreement().inc_epoch()) (void)session_->notify(fuse::encode_inc_epoch());
}

void Bridge::release_waiting(Seq synced, int error) {
  for (;;) {
    Waiting next;
    {
      std::lock_guard lock(sync_mutex_);
      if (waiting_.empty() || (error == 0 && waiting_.front().seq > synced)) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    waiting_count_.fetch_sub(1);
    if (error != 0) {
      fuse::Reply failed(0);
      failed.start(base::load_le<fuse::OutHeader>(next.reply.data()).unique);
      failed.error(error);
      session_->send_later(failed.head());
    } else {
      session_->send_later(next.reply);
    }
  }
}

void Bridge::stop() {
  {
    // Control commands that run now end first; later ones are refused.
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  if (!syncer_.joinable()) return;
  {
    std::lock_guard lock(sync_mutex_);
    stopping_ = true;
    sync_wanted_.notify_one();
  }
  syncer_.join();
}

}  // namespace fs
