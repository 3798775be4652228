#include "fs/client/lease_link.h"

#include "base/log.h"

#include <chrono>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;
using wire::MessageType;

namespace {
constexpr std::chrono::milliseconds kRedialEvery(300);
}

Result<std::unique_ptr<LeaseLink>> LeaseLink::connect(Options options) {
  std::unique_ptr<LeaseLink> link(new LeaseLink(std::move(options)));
  link->connection_ = TRY(link->dial());
  link->connects_ = 1;
  link->thread_ = std::thread([raw = link.get()] { raw->run(); });
  return link;
}

LeaseLink::~LeaseLink() {
  stop();
}

Result<std::shared_ptr<wire::Connection>> LeaseLink::dial() {
  std::shared_ptr<wire::Connection> connection =
      TRY(wire::Connection::dial(options_.server, options_.trust));
  TRY(connection->send(MessageType::kHello, 0, wire::encode_hello(options_.hello)));
  wire::Frame frame = TRY(connection->receive());
  if (frame.header.type == MessageType::kRefused) {
    return Error(ErrorCode::kPermission, "the server refuses: " + frame.payload);
  }
  if (frame.header.type != MessageType::kWelcome || !wire::decode_welcome(frame.payload)) {
    return Error(ErrorCode::kUnsupported, options_.server + " does not speak AgentFS");
  }
  return connection;
}

void LeaseLink::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (connection_ == nullptr) {
      lock.unlock();
      auto fresh = dial();
      lock.lock();
      if (fresh.ok() && !stopping_) {
        connection_ = *fresh;
        connects_++;
        changed_.notify_all();
        base::log_info("client", "the server is back");
      } else {
        changed_.wait_for(lock, kRedialEvery, [this] { return stopping_; });
      }
      continue;
    }
    std::shared_ptr<wire::Connection> connection = connection_;
    lock.unlock();
    receive(*connection);
    connection->shutdown();
    lock.lock();
    connection_.reset();
    if (!stopping_) base::log_warn("client", "the connection to the server broke");
    fail_all();
  }
}

void LeaseLink::receive(wire::Connection& connection) {
  for (;;) {
    auto frame = connection.receive();
    if (!frame.ok()) return;
    if (frame->header.type == MessageType::kLease) {
      if (auto news = wire::decode_news(frame->payload)) options_.news(*news);
      continue;
    }
    std::lock_guard lock(mutex_);
    auto found = waiters_.find(frame->header.id);
    if (found == waiters_.end()) continue;
    found->second->payload = std::move(frame->payload);
    found->second->done = true;
    changed_.notify_all();
  }
}

// Under the lock.
void LeaseLink::fail_all() {
  for (auto& [id, waiter] : waiters_) {
    if (!waiter->done) waiter->done = waiter->failed = true;
  }
  changed_.notify_all();
}

Result<std::string> LeaseLink::ask(MessageType type, std::string_view payload) {
  Error gone(ErrorCode::kUnavailable, "the server does not answer");
  Waiter waiter;
  std::shared_ptr<wire::Connection> connection;
  u64 id = 0;
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || connection_ == nullptr) return gone;
    connection = connection_;
    id = next_id_++;
    waiters_[id] = &waiter;
  }
  // A failed send ends the receiver too, which fails the waiter.
  if (!connection->send(type, id, payload).ok()) connection->shutdown();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiter.done; });
  waiters_.erase(id);
  if (waiter.failed) return gone;
  return std::move(waiter.payload);
}

void LeaseLink::tell(const LeaseMessage& message) {
  std::shared_ptr<wire::Connection> connection;
  {
    std::lock_guard lock(mutex_);
    connection = connection_;
  }
  if (connection == nullptr) return;
  if (!connection->send(MessageType::kLease, 0, wire::encode_lease(message)).ok()) {
    connection->shutdown();
  }
}

bool LeaseLink::up() {
  std::lock_guard lock(mutex_);
  return connection_ != nullptr;
}

u64 LeaseLink::reconnects() {
  std::lock_guard lock(mutex_);
  return connects_ - 1;
}

void LeaseLink::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    if (connection_ != nullptr) {
      (void)connection_->send(MessageType::kGoodbye, 0, "");
      connection_->shutdown();
    }
    fail_all();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace fs
