// The thread behind LeasedWorkspace that keeps its lease: renews, notices the end, asks again,
// hands over, and saves what a fenced mount had not stored.
#include "base/log.h"
#include "fs/client/leased_workspace.h"

#include <chrono>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;
using wire::MessageType;
using Kind = LeaseMessage::Kind;

void LeasedWorkspace::start(std::function<void(const std::vector<Ino>&)> distrust) {
  distrust_ = std::move(distrust);
  keeper_ = std::thread([this] { keep_loop(); });
}

void LeasedWorkspace::keep_loop() {
  constexpr std::chrono::milliseconds look_every(100);
  constexpr i64 ask_every_us = 500'000;
  u64 reconnects = 0;
  std::unique_lock lock(lease_mutex_);
  while (!stopping_) {
    news_came_.wait_for(lock, look_every, [this] { return stopping_ || !news_.empty(); });
    while (!news_.empty() && !stopping_) {
      wire::LeaseNews news = std::move(news_.front());
      news_.pop_front();
      lock.unlock();
      hear(news);
      lock.lock();
    }
    if (stopping_ || over_.load()) continue;
    bool held = lease_.may_write(now());
    if (!held && !distrusted_) {
      distrusted_ = true;
      base::log_warn("client", "the lease of the workspace is over; calls fail until it is back");
      lock.unlock();
      distrust();
      lock.lock();
    }
    if (held) distrusted_ = false;
    // A server that was started anew has a new epoch and would refuse to renew the old one: the
    // holder asks for the lease itself, and keeps it until the answer comes.
    const u64 met = reconnects;
    reconnects = link_->reconnects();
    const bool met_anew = reconnects != met;
    if (now() < renew_at_ && !met_anew) continue;
    renew_at_ = now() + (held ? terms_.client_span() / 3 : ask_every_us);
    LeaseMessage question = held && !met_anew ? lease_.renew(now()) : lease_.acquire(now(), false);
    lock.unlock();
    link_->tell(question);
    lock.lock();
  }
}

void LeasedWorkspace::hear(const wire::LeaseNews& news) {
  bool recalled = false, other_history = false, granted = false;
  {
    std::lock_guard lock(lease_mutex_);
    Epoch before = lease_.epoch();
    lease_.on(news.message, now());
    granted = lease_.epoch() != before;
    recalled = lease_.recalled() && lease_.may_write(now());
    other_history = news.number != granted_.number;
    if (news.message.kind == Kind::kFenced) renew_at_ = 0;
  }
  if (over_.load()) return;
  // A clean hand-over to somebody else and back keeps the number, but not what we know.
  bool others_wrote = granted && news.head > committed_.load();
  if (other_history || others_wrote) {
    shut_out();
    return;
  }
  if (granted) {
    std::lock_guard lock(state_mutex_);
    serialiser_->set_epoch(news.message.epoch);
    if (Status saved = local_->save(news.message.epoch, news.number); !saved.ok()) {
      base::log_error("client", saved.error().message());
    }
    base::log_info("client", "the lease of the workspace is ours again");
  }
  if (recalled) hand_over();
}

// Somebody else wants to write: all goes to the server, then the lease.
void LeasedWorkspace::hand_over() {
  base::log_warn("client", "another mount asks for the workspace; handing it over");
  {
    std::lock_guard lock(state_mutex_);  // the call that is under way ends first
    over_ = true;
  }
  Status synced = sync();
  if (!synced.ok()) {
    // The one who asks waits for the end of our lease, and we learn what became of it.
    base::log_error("client", synced.error().message());
    over_ = false;
    return;
  }
  {
    std::lock_guard lock(lease_mutex_);
    link_->tell(lease_.release(acked_.load()));
  }
  distrust();
}

// Our history has ended at the server. What it never saw goes into a fork.
void LeasedWorkspace::shut_out() {
  base::log_error("client", "another holder has written to the workspace: this mount is fenced");
  std::vector<LocalRecord> lost;
  {
    std::lock_guard lock(state_mutex_);
    over_ = fenced_ = true;
    std::lock_guard push_lock(push_mutex_);
    lost.assign(pending_.begin(), pending_.end());
    pushed_.notify_all();
  }
  {
    std::lock_guard lock(lease_mutex_);
    if (lease_.role() == LeaseClient::Role::kHolder) link_->tell(lease_.release(acked_.load()));
  }
  distrust();
  Status kept = rescue(lost);
  if (kept.ok()) kept = local_->clear();
  if (!kept.ok()) {
    base::log_error("client", "changes that the server has not seen stay in " +
                                  options_.journal_folder + ": " + kept.error().message());
  }
}

Status LeasedWorkspace::rescue(const std::vector<LocalRecord>& records) {
  constexpr size_t batch_bytes = 4u << 20;
  size_t next = 0;
  std::string fork;
  for (bool last = false; !last;) {
    wire::Batch batch;
    batch.epoch = local_->state().epoch;
    batch.number = local_->state().number;
    size_t bytes = 0;
    for (; next < records.size() && bytes < batch_bytes; next++) {
      batch.items.push_back({records[next].record, records[next].data});
      bytes += records[next].record.size() + records[next].data.size();
    }
    last = batch.items.empty();
    std::string answer = TRY(link_->ask(MessageType::kRescue, wire::encode_batch(batch)));
    auto rescued = wire::decode_rescued(answer);
    if (!rescued || rescued->error != 0) {
      return Error(ErrorCode::kIo, "the server could not make a rescue fork; see its log");
    }
    if (!rescued->fork.empty()) fork = rescued->fork;
  }
  if (!fork.empty()) {
    base::log_warn("client", "changes that nobody else has seen are kept in the workspace " + fork);
  }
  return {};
}

void LeasedWorkspace::distrust() {
  std::vector<Ino> known;
  {
    std::lock_guard lock(state_mutex_);
    known = serialiser_->referenced();
  }
  if (distrust_) distrust_(known);
}

}  // namespace fs
