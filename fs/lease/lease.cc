#include "fs/lease/lease.h"

#include "fs/state/mutant.h"

#include <algorithm>

namespace fs {

using Kind = LeaseMessage::Kind;

void LeaseServer::restart(Epoch last_epoch, i64 now, ClientId last_holder) {
  holder_ = last_holder;
  viewers_.clear();
  epoch_ = std::max(epoch_, last_epoch) + 1;  // whoever held it is fenced
  until_ = FS_MUTANT(kRestartGrantsAtOnce) ? now : now + terms_.server_span();
}

void LeaseServer::tick(i64 now) {
  if (holder_ == 0 || now < until_) return;
  holder_ = 0;
  published_ = durable_;  // what the holder never stored is not in this history
}

bool LeaseServer::append(ClientId client, Epoch epoch, Seq seq) {
  if (client != holder_ || epoch != epoch_) return false;
  durable_ = std::max(durable_, seq);
  return true;
}

void LeaseServer::acquire(const LeaseMessage& message, i64 now, std::vector<LeaseMessage>& out) {
  // The holder asks again when its answer was lost, or when it has restarted: a new epoch either
  // way, so that its former self is fenced.
  if (holder_ == message.client || (holder_ == 0 && now >= until_)) {
    holder_ = message.client;
    if (!FS_MUTANT(kEpochNotRaised)) ++epoch_;
    i64 span = FS_MUTANT(kServerWaitsShort) ? terms_.client_span() - 1 : terms_.server_span();
    until_ = now + span;
    std::erase(viewers_, message.client);
    out.push_back(
        {Kind::kGranted, message.client, epoch_, durable_, !viewers_.empty(), message.nonce});
    return;
  }
  out.push_back({Kind::kRefused, message.client, epoch_, holder_, false, message.nonce});
  if (holder_ != 0 && message.flag) out.push_back({Kind::kRecall, holder_, epoch_, 0, false});
}

void LeaseServer::view(const LeaseMessage& message, std::vector<LeaseMessage>& out) {
  if (message.client == holder_) return;
  auto at = std::lower_bound(viewers_.begin(), viewers_.end(), message.client);
  if (at == viewers_.end() || *at != message.client) viewers_.insert(at, message.client);
  if (!FS_MUTANT(kViewerStartsStale)) published_ = std::max(published_, durable_);
  out.push_back({Kind::kViewing, message.client, epoch_, published_, false});
  if (holder_ != 0) out.push_back({Kind::kDowngrade, holder_, epoch_, 0, false});
}

std::vector<LeaseMessage> LeaseServer::on(const LeaseMessage& message, i64 now) {
  tick(now);
  std::vector<LeaseMessage> out;
  switch (message.kind) {
    case Kind::kAcquire:
      acquire(message, now, out);
      break;
    case Kind::kRenew:
      if (!is_holder(message)) {
        out.push_back({Kind::kFenced, message.client, message.epoch, durable_, false});
        break;
      }
      until_ = std::max(until_, now + terms_.server_span());
      out.push_back(
          {Kind::kRenewed, message.client, epoch_, durable_, !viewers_.empty(), message.nonce});
      break;
    case Kind::kRelease:
      if (!is_holder(message) && !FS_MUTANT(kReleaseOfAnyEpoch)) break;
      durable_ = std::max(durable_, message.seq);
      holder_ = 0;
      until_ = now;
      break;
    case Kind::kView:
      view(message, out);
      break;
    case Kind::kLeaveView:
      std::erase(viewers_, message.client);
      break;
    case Kind::kPublished:
      // Viewers see only what is stored: what they have seen can never be taken back.
      if (!is_holder(message) || message.seq <= published_) break;
      if (message.seq > durable_ && !FS_MUTANT(kPublishUnstored)) break;
      published_ = message.seq;
      for (ClientId viewer : viewers_) {
        out.push_back({Kind::kInvalidate, viewer, epoch_, published_, false});
      }
      break;
    default:
      break;  // meant for clients
  }
  return out;
}

std::string LeaseServer::canonical() const {
  std::string text;
  for (u64 number : {u64{holder_}, epoch_, static_cast<u64>(until_), durable_, published_}) {
    text += std::to_string(number) + ",";
  }
  for (ClientId viewer : viewers_) text += "v" + std::to_string(viewer);
  return text;
}

std::string LeaseClient::canonical() const {
  std::string text;
  for (u64 number :
       {u64(role_), epoch_, static_cast<u64>(deadline_),
        asking_ ? static_cast<u64>(asked_) : ~u64{0}, u64{publish_}, u64{recalled_}, seen_}) {
    text += std::to_string(number) + ",";
  }
  return text;
}

LeaseMessage LeaseClient::acquire(i64 now, bool recall) {
  asked_ = now;
  asking_ = true;
  return {Kind::kAcquire, id_, epoch_, 0, recall, ++nonce_};
}

LeaseMessage LeaseClient::renew(i64 now) {
  asked_ = now;
  asking_ = true;
  return {Kind::kRenew, id_, epoch_, 0, false, ++nonce_};
}

LeaseMessage LeaseClient::view() {
  return {Kind::kView, id_, epoch_, 0, false};
}

LeaseMessage LeaseClient::release(Seq flushed) {
  LeaseMessage message{Kind::kRelease, id_, epoch_, flushed, false};
  role_ = Role::kNone;
  recalled_ = publish_ = asking_ = false;
  return message;
}

LeaseMessage LeaseClient::published(Seq seq) {
  return {Kind::kPublished, id_, epoch_, seq, false};
}

void LeaseClient::on(const LeaseMessage& message, i64 now) {
  if (message.epoch < epoch_) return;
  switch (message.kind) {
    case Kind::kGranted:
      // One epoch is entered once: a grant that was given back and comes again is stale.
      if (!asking_ || message.epoch == epoch_) break;
      if (message.nonce != nonce_ && !FS_MUTANT(kAnswerToAnybody)) break;
      role_ = Role::kHolder;
      epoch_ = message.epoch;
      deadline_ = (FS_MUTANT(kCountsFromArrival) ? now : asked_) + terms_.client_span();
      seen_ = std::max(seen_, message.seq);
      publish_ = message.flag;
      recalled_ = asking_ = false;
      break;
    case Kind::kRenewed:
      if (!asking_ || role_ != Role::kHolder || message.epoch != epoch_) break;
      if (message.nonce != nonce_) break;
      if (now < deadline_) deadline_ = std::max(deadline_, asked_ + terms_.client_span());
      publish_ = publish_ || message.flag;
      asking_ = false;
      break;
    case Kind::kFenced:
      if (message.epoch != epoch_) break;
      role_ = Role::kNone;
      asking_ = false;
      break;
    case Kind::kRefused:
      asking_ = false;
      break;
    case Kind::kRecall:
      if (role_ == Role::kHolder && message.epoch == epoch_) recalled_ = true;
      break;
    case Kind::kDowngrade:
      if (role_ == Role::kHolder && message.epoch == epoch_) publish_ = true;
      break;
    case Kind::kViewing:
      if (role_ == Role::kHolder) break;
      role_ = Role::kViewer;
      seen_ = std::max(seen_, message.seq);
      break;
    case Kind::kInvalidate:
      seen_ = std::max(seen_, message.seq);
      break;
    default:
      break;  // meant for the server
  }
}

}  // namespace fs
