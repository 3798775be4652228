#include "fs/server/host.h"

#include "base/log.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace fs::server {

using base::Result;
using base::Status;
using wire::MessageType;

namespace {

// What a session that only looks may ask.
bool is_read(const Operation& operation) {
  return std::holds_alternative<Lookup>(operation) || std::holds_alternative<Forget>(operation) ||
         std::holds_alternative<Getattr>(operation) ||
         std::holds_alternative<Readlink>(operation) ||
         std::holds_alternative<Readdir>(operation) || std::holds_alternative<Read>(operation) ||
         std::holds_alternative<Seek>(operation) || std::holds_alternative<Getxattr>(operation) ||
         std::holds_alternative<Listxattr>(operation) || std::holds_alternative<Getlk>(operation) ||
         std::holds_alternative<Statfs>(operation) || std::holds_alternative<Setlk>(operation) ||
         std::holds_alternative<CancelLock>(operation);
}

std::string seq_payload(Seq seq) {
  std::string out(sizeof(seq), 0);
  base::store_le<Seq>(out.data(), seq);
  return out;
}

}  // namespace

Result<std::unique_ptr<Host>> Host::open(Store& store, const std::string& workspace,
                                         const OpenOptions& options, LeaseTerms terms,
                                         base::Clock& clock) {
  std::unique_ptr<Host> host(new Host(store, workspace, options, terms, clock));
  host->open_options_.publish = host->open_options_.follow = true;
  TRY(host->reopen());
  host->writer_ = TRY(host->workspace_->replica()->writer());
  host->start_lease();
  host->watcher_ = std::thread([raw = host.get()] { raw->watch(); });
  host->storer_ = std::thread([raw = host.get()] { raw->store(); });
  host->keeper_ = std::thread([raw = host.get()] { raw->keep(); });
  return host;
}

Status Host::reopen() {
  workspace_ = TRY(store_.open_workspace(name_, open_options_));
  return {};
}

Host::~Host() {
  (void)close();
}

void Host::serve(wire::Connection& connection, const Guest& guest) {
  SessionId id = 0;
  {
    std::lock_guard lock(mutex_);
    if (closing_) return;
    std::string why_not = refusal(guest);
    if (!why_not.empty()) {
      (void)connection.send(MessageType::kRefused, 0, why_not);
      return;
    }
    id = next_session_++;
    std::string client = guest.client.empty() ? "session " + std::to_string(id) : guest.client;
    sessions_[id] = {&connection, guest, client_id(client)};
    if (guest.read_only && guest.profile == wire::Profile::kShared) {
      tell(lease_.on({LeaseMessage::Kind::kView, sessions_[id].client}, now()));
    }
    wire::Welcome welcome{wire::kVersion, id, workspace_->last_seq(), workspace_->info().name};
    if (!connection.send(MessageType::kWelcome, 0, wire::encode_welcome(welcome)).ok()) {
      sessions_.erase(id);
      return;
    }
  }
  for (;;) {
    auto frame = connection.receive();
    if (!frame.ok() || !handle(id, *frame)) break;
  }
  end_session(id);
}

bool Host::handle(SessionId id, const wire::Frame& frame) {
  switch (frame.header.type) {
    case MessageType::kCall:
      call(id, frame);
      return true;
    case MessageType::kAppend:
      append(id, frame);
      return true;
    case MessageType::kLease:
    case MessageType::kFetch:
    case MessageType::kPull:
    case MessageType::kRescue: {
      std::lock_guard lock(mutex_);
      return private_frame(id, frame);
    }
    case MessageType::kAcknowledge:
      acknowledged(id, frame.header.id);
      return true;
    case MessageType::kPing: {
      std::lock_guard lock(mutex_);
      auto session = sessions_.find(id);
      if (session == sessions_.end()) return false;
      session->second.connection->post(MessageType::kPong, frame.header.id, "");
      return true;
    }
    case MessageType::kSync: {
      if (frame.payload.size() != sizeof(Seq)) return false;
      // A failed sync has no answer: the session ends, and with it its promise.
      auto synced = sync(base::load_le<Seq>(frame.payload.data()));
      if (!synced.ok()) base::log_error("server", synced.error().message());
      std::lock_guard lock(mutex_);
      auto session = sessions_.find(id);
      if (!synced.ok() || session == sessions_.end()) return false;
      session->second.connection->post(MessageType::kSynced, frame.header.id, seq_payload(*synced));
      return true;
    }
    default:
      return false;  // goodbye, or something that is not for us
  }
}

Result<Seq> Host::sync(Seq wanted) {
  std::shared_ptr<Workspace> workspace;
  {
    std::lock_guard lock(mutex_);
    workspace = workspace_;
  }
  std::lock_guard lock(sync_mutex_);
  if (workspace->synced_seq() < wanted) TRY(workspace->sync());
  return workspace->synced_seq();
}

void Host::call(SessionId id, const wire::Frame& frame) {
  std::lock_guard lock(mutex_);
  auto session = sessions_.find(id);
  if (session == sessions_.end() || !session->second.may_share()) return;
  effects_.clear();
  auto call = wire::decode_call(frame.payload);
  u64 number = next_request_++;
  std::string bytes;
  if (!call) {
    effects_.reply.error = EPROTO;
  } else if (session->second.guest.read_only && !is_read(call->request.operation)) {
    effects_.reply.error = EROFS;
  } else {
    Request& request = call->request;
    request.id = number;
    request.session = id;
    // Our clock, growing strictly: what a client calls now is its own affair.
    last_ns_ = request.now_ns = std::max(last_ns_ + 1, clock_.wall_us() * 1000);
    if (auto* cancel = std::get_if<CancelLock>(&request.operation)) {
      for (const auto& [waiting, who] : waiting_locks_) {
        if (who == std::pair{id, cancel->request_id}) {
          cancel->request_id = waiting;
          break;
        }
      }
    }
    workspace_->perform(request, base::as_bytes(call->data), effects_);
    if (effects_.reply.error == 0 && effects_.seq != 0) {
      Status stored = workspace_->commit();
      if (!stored.ok()) {
        base::log_error("server", stored.error().message());
        effects_.reply = {};
        effects_.reply.error = EIO;
      }
    }
    if (!read_pieces(effects_.reply, bytes)) {
      effects_.reply = {};
      effects_.reply.error = EIO;
    }
    if (effects_.reply_later) waiting_locks_[number] = {id, frame.header.id};
  }
  answer(id, MessageType::kAnswer, frame.header.id, wire::encode_answer(effects_, bytes),
         effects_.invalidations);
  send_granted(effects_.granted);
}

bool Host::read_pieces(const Reply& reply, std::string& bytes) {
  for (const Piece& piece : reply.pieces) {
    size_t at = bytes.size();
    bytes.resize(at + piece.length, 0);
    if (piece.data == 0) continue;
    Status got = workspace_->read(piece, {reinterpret_cast<u8*>(bytes.data()) + at, piece.length});
    if (!got.ok()) {
      base::log_error("server", got.error().message());
      bytes.clear();
      return false;
    }
  }
  return true;
}

// Under the lock.
void Host::answer(SessionId id, MessageType type, u64 call, std::string payload,
                  const std::vector<Invalidation>& list) {
  bool watched = std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& item) {
    return item.first != id && item.second.may_share();
  });
  if (!list.empty() && watched) {
    i64 patience_us = i64{wire::kExpelAfterMs} * 1000;
    Held held{id, type, call, std::move(payload), {}, now() + patience_us};
    u64 number = next_invalidation_++;
    std::string invalidations = wire::encode_invalidations(list);
    for (auto& [other, session] : sessions_) {
      if (other == id || !session.may_share()) continue;
      held.waiting_for.insert(other);
      // If this fails its own thread ends the session, which counts as acknowledged.
      session.connection->post(MessageType::kInvalidate, number, invalidations);
    }
    held_.emplace(number, std::move(held));
    return;
  }
  sessions_[id].connection->post(type, call, payload);
}

void Host::acknowledged(SessionId id, u64 invalidation) {
  std::lock_guard lock(mutex_);
  auto found = held_.find(invalidation);
  if (found == held_.end()) return;
  Held& held = found->second;
  held.waiting_for.erase(id);
  if (!held.waiting_for.empty()) return;
  auto to = sessions_.find(held.to);
  if (to != sessions_.end()) to->second.connection->post(held.type, held.call, held.payload);
  held_.erase(found);
}

void Host::send_granted(const std::vector<u64>& requests) {
  for (u64 request : requests) {
    auto found = waiting_locks_.find(request);
    if (found == waiting_locks_.end()) continue;
    auto [id, call] = found->second;
    waiting_locks_.erase(found);
    auto session = sessions_.find(id);
    if (session == sessions_.end()) continue;
    session->second.connection->post(MessageType::kGranted, call, "");
  }
}

void Host::end_session(SessionId id) {
  std::vector<u64> owed;
  {
    std::lock_guard lock(mutex_);
    auto ended = sessions_.find(id);
    Session session = ended->second;
    sessions_.erase(ended);
    end_lease_session(session);
    std::erase_if(waiting_locks_, [&](const auto& item) { return item.second.first == id; });
    ended_viewers_.push_back(id);
    // A holder's records continue the log: while there is one, nothing else may write to it.
    if (!writer_.open) {
      Status stored = reclaim();
      if (!stored.ok()) base::log_error("server", stored.error().message());
    }
    for (const auto& [number, held] : held_) {
      if (held.waiting_for.contains(id)) owed.push_back(number);
    }
    closing_changed_.notify_all();
  }
  for (u64 number : owed) acknowledged(id, number);
}

// Expels the silent.
void Host::watch() {
  constexpr auto pause = std::chrono::milliseconds(100);
  std::unique_lock lock(mutex_);
  while (!closing_) {
    closing_changed_.wait_for(lock, pause);
    lease_.tick(now());
    for (const auto& [number, held] : held_) {
      if (held.deadline_us > now()) continue;
      for (SessionId late : held.waiting_for) {
        auto session = sessions_.find(late);
        if (session == sessions_.end()) continue;
        base::log_warn("server", "a mount does not answer and is expelled",
                       {{"session", u64{late}}});
        session->second.connection->shutdown();
      }
    }
  }
}

// Keeps the store's lease, whatever holds up the thread that folds: two puts into a slow object
// store can take longer than a lease lives.
void Host::keep() {
  constexpr auto pause = std::chrono::seconds(1);
  int failures = 0;
  std::unique_lock lock(mutex_);
  while (!closing_) {
    closing_changed_.wait_for(lock, pause);
    std::shared_ptr<Workspace> workspace = workspace_;
    lock.unlock();
    {
      std::lock_guard keep_lock(keep_mutex_);
      Status kept = workspace->keep();
      failures = kept.ok() ? 0 : failures + 1;
      // The first one may be of a workspace that was closed for another one a moment ago.
      if (failures == 2) base::log_error("server", kept.error().message());
    }
    lock.lock();
  }
}

// Syncs and folds in the background. An engine that does not answer holds up this thread, not the
// others.
void Host::store() {
  constexpr auto pause = std::chrono::milliseconds(100);
  std::unique_lock lock(mutex_);
  while (!closing_) {
    closing_changed_.wait_for(lock, pause);
    std::shared_ptr<Workspace> workspace = workspace_;
    Seq last = workspace->last_seq();
    lock.unlock();
    if (auto synced = sync(last); !synced.ok()) {
      base::log_error("server", synced.error().message());
    }
    if (workspace->wants_checkpoint()) {
      std::lock_guard fold_lock(fold_mutex_);
      Status folded = workspace->checkpoint();
      if (!folded.ok()) base::log_error("server", folded.error().message());
    }
    lock.lock();
  }
}

size_t Host::sessions() {
  std::lock_guard lock(mutex_);
  return sessions_.size();
}

Status Host::close() {
  {
    std::unique_lock lock(mutex_);
    if (closing_) return {};
    closing_ = true;
    for (auto& [id, session] : sessions_) session.connection->shutdown();
    closing_changed_.notify_all();
    closing_changed_.wait(lock, [this] { return sessions_.empty(); });
  }
  // A host whose open() failed has neither threads nor, maybe, a workspace.
  if (watcher_.joinable()) watcher_.join();
  if (storer_.joinable()) storer_.join();
  if (keeper_.joinable()) keeper_.join();
  return workspace_ ? workspace_->close() : Status();
}

}  // namespace fs::server
