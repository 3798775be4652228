// The lease protocol of one workspace: who may change it, who may read along, how it moves on. Two
// pure state machines without clock, network or storage: LeaseServer beside the engine, LeaseClient
// in the mount. Hosts carry messages between them and hand in the time; the models of fs/models run
// these very classes.
//
// States: free; exclusive (one holder); exclusive with viewers (the holder has promised to publish
// what it writes; viewers never take the lease away). A second writer waits, or recalls: the holder
// flushes, releases with its last seq, and the next epoch starts from there.
// Time: ticks of a host's monotonic clock, which runs within `drift_permille` of true. A holder
// counts from the moment it asked and stops early; the server counts from the moment it granted and
// waits long.
//   holder stops at   asked + duration * (1 - drift) - margin
//   server frees at   granted + duration * (1 + drift) + margin
// A message of an older epoch, repeated or late, changes nothing. Answers carry the nonce of their
// question: the grant to a client's former self, arriving late, must not count from the new
// question's moment (model 1 found that two could write then). Single-threaded.
#pragma once

#include "fs/state/types.h"

#include <string>
#include <vector>

namespace fs {

using ClientId = u32;  // 0 is none

struct LeaseTerms {
  i64 duration = 15'000'000;  // us in production
  i64 drift_permille = 10;
  i64 margin = 200'000;
  i64 client_span() const { return duration - duration * drift_permille / 1000 - margin; }
  i64 server_span() const { return duration + duration * drift_permille / 1000 + margin; }
};

struct LeaseMessage {
  enum class Kind : u8 {
    // client to server
    kAcquire,  // flag: recall the holder when there is one
    kRenew,
    kRelease,  // seq: all up to it is in the store
    kView,
    kLeaveView,
    kPublished,  // seq: viewers may see this much
    // server to client
    kGranted,     // seq: the log's durable head; flag: publish, there are viewers
    kRefused,     // client: the holder
    kRenewed,     // flag: publish
    kFenced,      // this epoch is over
    kRecall,      // flush and release
    kDowngrade,   // publish from now on
    kViewing,     // seq: start from here
    kInvalidate,  // seq: newer data is there
  };
  Kind kind = Kind::kAcquire;
  ClientId client = 0;  // sender or addressee
  Epoch epoch = 0;
  Seq seq = 0;
  bool flag = false;
  u64 nonce = 0;  // of the question; an answer repeats it
  bool operator==(const LeaseMessage&) const = default;
};

class LeaseServer {
 public:
  explicit LeaseServer(LeaseTerms terms) : terms_(terms) {}
  // After a restart of the server: nobody is granted anything until every old lease must have
  // ended.
  // `last_holder`, when it is known, may come back at once: it excludes nobody but its former self.
  void restart(Epoch last_epoch, i64 now, ClientId last_holder = 0);

  std::vector<LeaseMessage> on(const LeaseMessage& message, i64 now);
  // The lease ends when its time is over. Call before and between messages.
  void tick(i64 now);

  // Fencing: whether the log accepts an append of this client and epoch ending at `seq`.
  bool append(ClientId client, Epoch epoch, Seq seq);

  ClientId holder() const { return holder_; }
  Epoch epoch() const { return epoch_; }
  Seq durable() const { return durable_; }
  Seq published() const { return published_; }
  const std::vector<ClientId>& viewers() const { return viewers_; }
  i64 until() const { return until_; }
  std::string canonical() const;  // the whole state, for the models

 private:
  void acquire(const LeaseMessage& message, i64 now, std::vector<LeaseMessage>& out);
  void view(const LeaseMessage& message, std::vector<LeaseMessage>& out);
  bool is_holder(const LeaseMessage& message) const {
    return message.client == holder_ && message.epoch == epoch_;
  }

  LeaseTerms terms_;
  ClientId holder_ = 0;
  Epoch epoch_ = 0;
  i64 until_ = 0;
  Seq durable_ = 0;
  Seq published_ = 0;
  std::vector<ClientId> viewers_;  // sorted
};

class LeaseClient {
 public:
  enum class Role : u8 { kNone, kHolder, kViewer };
  // `first_nonce` must differ between incarnations of a client, e.g. random.
  LeaseClient(ClientId id, LeaseTerms terms, u64 first_nonce = 0)
      : id_(id), terms_(terms), nonce_(first_nonce) {}

  // REQUIRES: no lease was ever granted.
  void set_terms(LeaseTerms terms) { terms_ = terms; }
  LeaseMessage acquire(i64 now, bool recall);
  LeaseMessage renew(i64 now);
  LeaseMessage view();
  // REQUIRES: holder with nothing unflushed above `flushed`.
  LeaseMessage release(Seq flushed);
  LeaseMessage published(Seq seq);
  void on(const LeaseMessage& message, i64 now);

  // Whether it may change and acknowledge at this moment. Ask after the write, before the reply.
  bool may_write(i64 now) const { return role_ == Role::kHolder && now < deadline_; }
  Role role() const { return role_; }
  Epoch epoch() const { return epoch_; }
  bool must_publish() const { return publish_; }
  bool recalled() const { return recalled_; }
  // What its caches may show: a viewer's newest known seq.
  Seq seen() const { return seen_; }
  i64 deadline() const { return deadline_; }
  std::string canonical() const;

 private:
  ClientId id_;
  LeaseTerms terms_;
  Role role_ = Role::kNone;
  Epoch epoch_ = 0;
  i64 deadline_ = 0;
  i64 asked_ = 0;  // when the question `nonce_` left
  u64 nonce_ = 0;
  bool asking_ = false;
  bool publish_ = false;
  bool recalled_ = false;
  Seq seen_ = 0;
};

}  // namespace fs
