// The lease of a hosted workspace: grants, fenced appends, and what becomes of a writer that was
// shut out. Everything here runs under the host's lock.
#include "base/log.h"
#include "fs/server/host.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace fs::server {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;
using wire::MessageType;
using Kind = LeaseMessage::Kind;

namespace {

constexpr size_t kPullBytes = 4u << 20;
constexpr std::string_view kFencedPrefix = "fenced-";
constexpr size_t kFencedKept = 8;  // bases of writers that never came back

}  // namespace

ClientId Host::client_id(const std::string& client) {
  auto [at, fresh] = client_ids_.emplace(client, static_cast<ClientId>(client_ids_.size() + 1));
  return at->second;
}

void Host::start_lease() {
  // A lease that was given back cannot be believed by anybody; one that was not may be.
  if (writer_.open) {
    lease_.restart(writer_.epoch, now(), client_id(writer_.client));
  } else {
    lease_.restart(writer_.epoch, now() - terms_.server_span());
  }
}

std::string Host::refusal(const Guest& guest) {
  lease_.tick(now());
  if (guest.profile == wire::Profile::kPrivate) {
    for (const auto& [id, session] : sessions_) {
      if (session.writes()) {
        return "the workspace is shared by other mounts; mount it without --private";
      }
    }
    return "";
  }
  if (guest.read_only) return "";
  if (lease_.holder() != 0 || now() < lease_.until()) {
    return "the workspace is held by " + writer_.agent +
           " (a private mount); mount it --read-only, or wait until it is unmounted";
  }
  if (writer_.open) {
    if (Status done = shut_out(); !done.ok()) return done.error().message();
  }
  Status done = must_reclaim_ ? reclaim() : Status();
  must_reclaim_ = false;
  return done.ok() ? "" : done.error().message();
}

// What no session references any more goes, in the name of sessions that have ended.
Status Host::reclaim() {
  if (ended_viewers_.empty()) ended_viewers_.push_back(0);
  std::vector<SessionId> ended = std::exchange(ended_viewers_, {});
  for (SessionId session : ended) {
    Request request;
    request.id = next_request_++;
    request.session = session;
    last_ns_ = request.now_ns = std::max(last_ns_ + 1, clock_.wall_us() * 1000);
    request.operation = EndSession{};
    effects_.clear();
    workspace_->perform(request, {}, effects_);
    send_granted(effects_.granted);
  }
  return workspace_->commit();
}

// The last writer never gave its lease back. Where its history ends, as far as it is known here,
// becomes a snapshot; the workspace goes on under a new number, and so do all ids.
Status Host::shut_out() {
  std::scoped_lock nobody_else(fold_mutex_, keep_mutex_, sync_mutex_);
  std::string snapshot = std::string(kFencedPrefix) + std::to_string(writer_.epoch);
  base::log_warn("server", "a writer did not give its lease back; another one takes over",
                 {{"workspace", name_}, {"writer", writer_.agent}, {"kept", snapshot}});
  Status kept = workspace_->snapshot(snapshot);
  if (!kept.ok() && kept.error().code() != ErrorCode::kExists) return kept;
  TRY(workspace_->close());
  Status moved = store_.rollback(name_, snapshot);
  TRY(reopen());
  TRY(std::move(moved));
  writer_.open = false;
  TRY(workspace_->replica()->set_writer(writer_));
  must_reclaim_ = true;
  std::vector<SnapshotInfo> all = TRY(store_.snapshots(name_));
  std::erase_if(all, [](const auto& info) { return !info.name.starts_with(kFencedPrefix); });
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.created_ns < b.created_ns; });
  for (size_t i = 0; i + kFencedKept < all.size(); ++i) {
    TRY(store_.remove(name_ + "@" + all[i].name));
  }
  return {};
}

std::string Host::news_for(const LeaseMessage& message) {
  ReplicaBase base = workspace_->replica()->base();
  wire::LeaseNews news;
  news.message = message;
  news.duration_us = terms_.duration;
  if (lease_.holder() != 0) news.holder = writer_.agent;
  news.number = base.number;
  news.root = base.root;
  news.root_seq = base.root_seq;
  news.head = base.head;
  news.bytes_quota = base.bytes_quota;
  news.inodes_quota = base.inodes_quota;
  return wire::encode_news(news);
}

void Host::tell(const std::vector<LeaseMessage>& messages) {
  for (const LeaseMessage& message : messages) {
    for (auto& [id, session] : sessions_) {
      if (session.client != message.client || session.may_share()) continue;
      session.connection->post(MessageType::kLease, 0, news_for(message));
    }
  }
}

void Host::lease_message(Session& session, LeaseMessage message) {
  message.client = session.client;
  lease_.tick(now());
  if (message.kind == Kind::kAcquire) {
    bool free = lease_.holder() == 0 && now() >= lease_.until();
    if (free && writer_.open && writer_.client != session.guest.client) {
      if (Status done = shut_out(); !done.ok()) {
        base::log_error("server", done.error().message());
        return;  // it asks again
      }
    }
  }
  bool held = lease_.holder() == session.client && message.epoch == lease_.epoch();
  std::vector<LeaseMessage> answers = lease_.on(message, now());
  bool granted = !answers.empty() && answers.front().kind == Kind::kGranted;
  if (granted || (message.kind == Kind::kRelease && held)) {
    // Known to the store before it is known to anybody else.
    writer_ = {lease_.epoch(), session.guest.client, session.guest.agent, granted};
    Status stored = workspace_->replica()->set_writer(writer_);
    // The grant says how far the log goes: the holder forgets its own copy of it.
    if (stored.ok() && workspace_->ships_log()) stored = workspace_->sync();
    if (!stored.ok()) {
      base::log_error("server", stored.error().message());
      return;
    }
    must_reclaim_ = true;
  }
  tell(answers);
}

// 0, or an errno for the sender. Takes only what is new: a batch may come again.
int Host::take(const Session& session, const wire::Batch& batch,
               std::vector<Invalidation>& changed) {
  Replica& replica = *workspace_->replica();
  ReplicaBase base = replica.base();
  lease_.tick(now());
  if (batch.number != base.number) return EAGAIN;
  for (const auto& item : batch.items) {
    auto header = decode_header(item.record);
    if (!header) return EPROTO;
    if (header->seq <= base.head) continue;
    if (!lease_.append(session.client, batch.epoch, header->seq)) return EAGAIN;
    Status taken = replica.take(item.record, base::as_bytes(item.data), changed);
    if (taken.ok()) continue;
    base::log_error("server", taken.error().message(), {{"writer", writer_.agent}});
    if (taken.error().code() != ErrorCode::kCorruption) return EPROTO;
    // Our copy is of no use any more; what is stored is.
    replica.abandon();
    if (Status again = reopen(); !again.ok()) base::log_error("server", again.error().message());
    return EPROTO;
  }
  Status stored = workspace_->commit();
  if (stored.ok()) return 0;
  base::log_error("server", stored.error().message());
  return EIO;
}

// What a holder hears is stored here it may forget: where another machine may take over, only what
// that one would find counts.
void Host::append(SessionId id, const wire::Frame& frame) {
  std::unique_lock lock(mutex_);
  auto session = sessions_.find(id);
  if (session == sessions_.end() || session->second.may_share()) return;
  wire::Appended appended;
  std::vector<Invalidation> changed;
  auto batch = wire::decode_batch(frame.payload);
  appended.error = batch ? take(session->second, *batch, changed) : EPROTO;
  Seq head = workspace_->last_seq();
  bool ships = appended.error == 0 && workspace_->ships_log();
  if (ships) {
    lock.unlock();
    auto synced = sync(head);
    if (!synced.ok()) {
      base::log_error("server", synced.error().message());
      appended.error = EAGAIN;
    }
    lock.lock();
  }
  ReplicaBase base = workspace_->replica()->base();
  appended.head = ships ? head : base.head;
  appended.root = base.root;
  appended.root_seq = base.root_seq;
  answer(id, MessageType::kAppended, frame.header.id, wire::encode_appended(appended), changed);
}

std::string Host::records_from(Seq from) {
  std::vector<std::string> records;
  size_t bytes = 0;
  Status read = workspace_->replica()->records(from, [&](std::string_view record) -> Status {
    if (bytes > kPullBytes) return Error(ErrorCode::kLimit, "enough for one message");
    records.emplace_back(record);
    bytes += record.size();
    return {};
  });
  if (!read.ok() && read.error().code() != ErrorCode::kLimit) {
    base::log_error("server", read.error().message());
  }
  wire::Batch batch;
  batch.number = workspace_->replica()->base().number;
  for (const std::string& record : records) batch.items.push_back({record, {}});
  return wire::encode_batch(batch);
}

// --- rescue ---

// The fork that a fenced writer's records go to. Several messages fill it; one without records ends
// it. Records that the snapshot has already are skipped, so all of it may be repeated.
wire::Rescued Host::rescue(const wire::Batch& batch) {
  auto fill = [&]() -> Result<std::string> {
    if (!rescue_) {
      // The base is that of the first epoch from this one on whose writer was shut out.
      Epoch best = ~Epoch{0};
      std::vector<SnapshotInfo> all = TRY(store_.snapshots(name_));
      for (const SnapshotInfo& info : all) {
        if (!info.name.starts_with(kFencedPrefix)) continue;
        Epoch epoch = std::strtoull(info.name.c_str() + kFencedPrefix.size(), nullptr, 10);
        if (epoch >= batch.epoch) best = std::min(best, epoch);
      }
      if (best == ~Epoch{0}) {
        return Error(ErrorCode::kNotFound, "the base of the fenced records is gone");
      }
      Seq base_seq = 0;
      for (const SnapshotInfo& info : all) {
        if (info.name == kFencedPrefix.data() + std::to_string(best)) base_seq = info.seq;
      }
      rescue_base_ = name_ + "@" + std::string(kFencedPrefix) + std::to_string(best);
      rescue_name_ = name_ + ".rescue-" + std::to_string(best);
      if (batch.items.empty()) {
        TRY(store_.remove(rescue_base_));  // nothing to keep
        return std::string();
      }
      auto last = decode_header(batch.items.back().record);
      if (!last || last->seq <= base_seq) return std::string();  // all of it was seen
      Status forked = store_.fork(rescue_base_, rescue_name_);
      if (!forked.ok() && forked.error().code() != ErrorCode::kExists) return forked.error();
      OpenOptions options;
      options.follow = true;
      rescue_ = TRY(store_.open_workspace(rescue_name_, options));
    }
    std::vector<Invalidation> nobody;
    for (const auto& item : batch.items) {
      auto header = decode_header(item.record);
      if (!header) return Error(ErrorCode::kInvalidArgument, "a fenced record does not decode");
      if (header->seq <= rescue_->last_seq()) continue;
      TRY(rescue_->replica()->take(item.record, base::as_bytes(item.data), nobody));
    }
    TRY(rescue_->commit());
    TRY(rescue_->sync());
    if (batch.items.empty()) end_rescue(true);
    return rescue_name_;
  };
  auto name = fill();
  if (name.ok()) return {0, *name};
  base::log_error("server", name.error().message());
  end_rescue(false);
  return {EIO, ""};
}

void Host::end_rescue(bool complete) {
  if (!rescue_) return;
  if (!complete) {
    rescue_->replica()->abandon();
    rescue_.reset();
    return;
  }
  Status closed = rescue_->close();
  if (!closed.ok()) base::log_error("server", closed.error().message());
  rescue_.reset();
  base::log_warn("server", "a fenced writer's changes are kept in a fork",
                 {{"fork", rescue_name_}});
  Status removed = store_.remove(rescue_base_);
  if (!removed.ok()) base::log_error("server", removed.error().message());
}

void Host::end_lease_session(const Session& session) {
  if (session.may_share()) {
    if (session.guest.read_only) {
      (void)lease_.on({Kind::kLeaveView, session.client}, now());
    }
    return;
  }
  end_rescue(false);
}

bool Host::private_frame(SessionId id, const wire::Frame& frame) {
  auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second.may_share()) return false;
  Session& session = found->second;
  u64 number = frame.header.id;
  switch (frame.header.type) {
    case MessageType::kLease: {
      auto message = wire::decode_lease(frame.payload);
      if (message) lease_message(session, *message);
      return message.has_value();
    }
    case MessageType::kFetch: {
      if (frame.payload.size() != sizeof(u64)) return false;
      auto bytes = workspace_->replica()->fetch(base::load_le<u64>(frame.payload.data()));
      // The first byte says whether it is there.
      session.connection->post(MessageType::kFetched, number,
                               bytes.ok() ? "\1" + **bytes : std::string("\0", 1));
      return true;
    }
    case MessageType::kPull:
      if (frame.payload.size() != sizeof(Seq)) return false;
      session.connection->post(MessageType::kPulled, number,
                               records_from(base::load_le<Seq>(frame.payload.data())));
      return true;
    default: {
      auto batch = wire::decode_batch(frame.payload);
      if (!batch) return false;
      session.connection->post(MessageType::kRescued, number, wire::encode_rescued(rescue(*batch)));
      return true;
    }
  }
}

}  // namespace fs::server
