#include "fs/client/remote_workspace.h"

#include "base/log.h"

#include <cerrno>
#include <chrono>
#include <cstring>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;
using wire::MessageType;

Result<std::optional<RemoteAddress>> parse_remote(const std::string& text) {
  constexpr std::string_view plain = "agentfs://", sealed = "agentfs+tls://";
  bool tls = text.starts_with(sealed);
  if (!tls && !text.starts_with(plain)) return std::optional<RemoteAddress>();
  std::string rest = text.substr(tls ? sealed.size() : plain.size());
  size_t slash = rest.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == rest.size()) {
    return Error(
        ErrorCode::kInvalidArgument,
        "'" + text + "' is no address; write agentfs://HOST:PORT/WORKSPACE or agentfs+tls://...");
  }
  RemoteAddress address{rest.substr(0, slash), rest.substr(slash + 1), {}};
  address.trust.use = tls;
  return std::optional(std::move(address));
}

Result<std::unique_ptr<RemoteWorkspace>> RemoteWorkspace::connect(const RemoteAddress& address,
                                                                  const std::string& token,
                                                                  bool read_only) {
  auto connection = TRY(wire::Connection::dial(address.server, address.trust));
  wire::Hello hello{wire::kVersion, token, address.workspace, read_only};
  TRY(connection->send(MessageType::kHello, 0, wire::encode_hello(hello)));
  wire::Frame frame = TRY(connection->receive());
  if (frame.header.type == MessageType::kRefused) {
    return Error(ErrorCode::kPermission, "the server refuses: " + frame.payload);
  }
  auto welcome = wire::decode_welcome(frame.payload);
  if (frame.header.type != MessageType::kWelcome || !welcome) {
    return Error(ErrorCode::kUnsupported, address.server + " does not speak AgentFS");
  }
  return std::unique_ptr<RemoteWorkspace>(
      new RemoteWorkspace(std::move(connection), std::move(*welcome)));
}

RemoteWorkspace::RemoteWorkspace(std::unique_ptr<wire::Connection> connection,
                                 wire::Welcome welcome)
    : connection_(std::move(connection)), welcome_(std::move(welcome)) {
  last_seq_ = welcome_.last_seq;
}

void RemoteWorkspace::start(Events events) {
  events_ = std::move(events);
  trusted_until_us_ = base::system_clock().monotonic_us() + wire::kLeaseMs * 1000;
  receiver_ = std::thread([this] { receive_loop(); });
  eventer_ = std::thread([this] { event_loop(); });
}

RemoteWorkspace::~RemoteWorkspace() {
  (void)close();
}

Status RemoteWorkspace::close() {
  {
    std::lock_guard lock(mutex_);
    if (closing_) return {};
    closing_ = true;
    changed_.notify_all();
  }
  (void)connection_->send(MessageType::kGoodbye, 0, "");
  connection_->shutdown();
  if (receiver_.joinable()) receiver_.join();
  if (eventer_.joinable()) eventer_.join();
  return {};
}

std::optional<std::string> RemoteWorkspace::ask(MessageType type, u64 id,
                                                std::string_view payload) {
  Waiter waiter;
  {
    std::lock_guard lock(mutex_);
    if (lost_ || closing_) return std::nullopt;
    waiters_[id] = &waiter;
  }
  if (!connection_->send(type, id, payload).ok()) lose();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiter.done; });
  waiters_.erase(id);
  if (waiter.failed) return std::nullopt;
  return std::move(waiter.payload);
}

void RemoteWorkspace::perform(const Request& request, base::ByteView data, Effects& effects) {
  u64 id = 0;
  Request sent = request;
  {
    std::lock_guard lock(mutex_);
    id = next_id_++;
    if (auto* cancel = std::get_if<CancelLock>(&sent.operation)) {
      for (const auto& [call, waiting] : waiting_locks_) {
        if (waiting == cancel->request_id) {
          cancel->request_id = call;
          break;
        }
      }
    }
    if (std::holds_alternative<Setlk>(sent.operation)) waiting_locks_[id] = request.id;
  }
  auto payload = ask(MessageType::kCall, id, wire::encode_call(sent, data));
  effects.clear();
  if (!payload) {
    effects.reply.error = EIO;
    return;
  }
  answer_ = std::move(*payload);
  auto answer = wire::decode_answer(answer_);
  if (!answer) {
    effects.reply.error = EIO;
    return;
  }
  effects.reply = std::move(answer->reply);
  effects.seq = answer->seq;
  effects.reply_later = answer->reply_later;
  bytes_ = answer->bytes;
  // Pieces become places in the answer's bytes: read() finds them there.
  u32 at = 0;
  for (Piece& piece : effects.reply.pieces) {
    piece.data = 1;
    piece.data_offset = at;
    at += piece.length;
  }
  if (effects.seq > last_seq_.load()) last_seq_ = effects.seq;
  if (!effects.reply_later) {
    std::lock_guard lock(mutex_);
    waiting_locks_.erase(id);
  }
}

Status RemoteWorkspace::read(const Piece& piece, base::Bytes out) {
  if (bytes_.size() < u64{piece.data_offset} + piece.length) {
    return Error(ErrorCode::kCorruption, "the server sent fewer bytes than it said");
  }
  std::memcpy(out.data(), bytes_.data() + piece.data_offset, piece.length);
  return {};
}

Status RemoteWorkspace::sync() {
  u64 id = 0;
  {
    std::lock_guard lock(mutex_);
    id = next_id_++;
  }
  std::string wanted(sizeof(Seq), 0);
  base::store_le<Seq>(wanted.data(), last_seq_.load());
  auto payload = ask(MessageType::kSync, id, wanted);
  if (!payload || payload->size() != sizeof(Seq)) {
    return Error(ErrorCode::kUnavailable, "the server is gone; what it did not store is lost");
  }
  synced_seq_ = base::load_le<Seq>(payload->data());
  return {};
}

Status RemoteWorkspace::fork(const std::string&) {
  return Error(ErrorCode::kUnsupported, "fork a served workspace where its store is");
}
Status RemoteWorkspace::snapshot(const std::string& name) {
  return fork(name);
}

WorkspaceInfo RemoteWorkspace::info() const {
  WorkspaceInfo info;
  info.name = welcome_.workspace;
  info.head_seq = last_seq_.load();
  return info;
}

void RemoteWorkspace::receive_loop() {
  for (;;) {
    auto frame = connection_->receive();
    if (!frame.ok()) break;
    std::lock_guard lock(mutex_);
    switch (frame->header.type) {
      case MessageType::kAnswer:
        unsent_++;
        [[fallthrough]];
      case MessageType::kSynced: {
        auto found = waiters_.find(frame->header.id);
        if (found == waiters_.end()) break;
        found->second->payload = std::move(frame->payload);
        found->second->done = true;
        break;
      }
      case MessageType::kInvalidate: {
        auto list = wire::decode_invalidations(frame->payload);
        if (list) queue_.push_back({Event::Kind::kInvalidate, frame->header.id, std::move(*list)});
        break;
      }
      case MessageType::kGranted:
        queue_.push_back({Event::Kind::kGranted, frame->header.id, {}});
        break;
      case MessageType::kPong:
        // The ping's number is the time it was sent: trust counts from then.
        trusted_until_us_ = static_cast<i64>(frame->header.id) + wire::kLeaseMs * 1000;
        break;
      default:
        break;
    }
    changed_.notify_all();
  }
  lose();
}

void RemoteWorkspace::lose() {
  std::lock_guard lock(mutex_);
  if (lost_) return;
  lost_ = true;
  for (auto& [id, waiter] : waiters_) {
    if (waiter->done) continue;
    waiter->done = waiter->failed = true;
  }
  if (!closing_) {
    base::log_error("client", "the server is gone; unmount, and mount again when it is back");
  }
  queue_.push_back({Event::Kind::kLost, 0, {}});
  changed_.notify_all();
}

void RemoteWorkspace::reply_sent() {
  std::lock_guard lock(mutex_);
  if (unsent_ == 0) return;
  unsent_ = 0;  // one request at a time: all answers so far were for it
  changed_.notify_all();
}

void RemoteWorkspace::deliver(const Event& event) {
  if (event.kind == Event::Kind::kLost) {
    events_.lost();
    return;
  }
  if (event.kind == Event::Kind::kGranted) {
    u64 request = 0;
    {
      std::lock_guard lock(mutex_);
      auto found = waiting_locks_.find(event.id);
      if (found == waiting_locks_.end()) return;
      request = found->second;
      waiting_locks_.erase(found);
    }
    events_.granted(request);
    return;
  }
  {
    // An answer from before the change may be on its way to the kernel: let it pass first.
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(50), [this] { return unsent_ == 0; });
  }
  events_.invalidate(event.list);
  (void)connection_->send(MessageType::kAcknowledge, event.id, "");
}

void RemoteWorkspace::event_loop() {
  base::Clock& clock = base::system_clock();
  i64 ping_at_us = 0;
  std::unique_lock lock(mutex_);
  while (!closing_) {
    i64 now = clock.monotonic_us();
    if (!lost_ && now >= trusted_until_us_) {
      lock.unlock();
      connection_->shutdown();
      lose();
      lock.lock();
      continue;
    }
    if (!lost_ && now >= ping_at_us) {
      ping_at_us = now + wire::kPingEveryMs * 1000;
      lock.unlock();
      (void)connection_->send(MessageType::kPing, static_cast<u64>(now), "");
      lock.lock();
    }
    if (queue_.empty()) {
      changed_.wait_for(lock, std::chrono::milliseconds(wire::kPingEveryMs / 2));
      continue;
    }
    Event event = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    deliver(event);
    lock.lock();
  }
}

}  // namespace fs
