// What a mount and agentfsd say to each other. A frame is
//
//   offset  size  field
//        0     4  length of the payload, bytes, at most kPayloadBytesMax
//        4     1  type (MessageType)
//        5     3  zero
//        8     8  id: a call's and its answer's; 0 for what the server says unasked
//       16     n  payload, by type
//
// A session is Hello -> Welcome, then calls in both directions. A session that shares:
//   client: Call (a serialiser request and the bytes of a write), Sync, Goodbye, Acknowledge, Ping
//   server: Answer (the reply, the record's seq, the bytes of a read), Synced (u64 seq),
//   Invalidate,
//           Granted, Pong, Refused (a sentence)
// The server answers a change only after every other session acknowledged its Invalidate, or was
// silent for kExpelAfterMs. A client whose Ping was not answered within kLeaseMs trusts no cache
// any more; since the lease is the shorter time, no cache is stale after a writer's call returned.
//
// A session that holds the workspace's lease (Profile::kPrivate) runs the serialiser itself:
//   client: Lease (a LeaseMessage), Append (records, answered by Appended), Sync, Fetch (u64 id of
//   a
//           page or of data), Pull (u64 seq: the log from there), Rescue (Append's payload: records
//           of an epoch that is over, for a fork of their own), Ping, Goodbye
//   server: Lease (LeaseNews), Appended, Synced, Fetched, Pulled (records), Rescued, Pong, Refused
//
// Decoders give nullopt for bytes that are no message. Pure; thread-safe.
#pragma once

#include "fs/lease/lease.h"
#include "fs/serialiser/request.h"
#include "fs/serialiser/serialiser.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fs::wire {

inline constexpr u32 kVersion = 2;
inline constexpr size_t kHeaderBytes = 16;
inline constexpr int kPingEveryMs = 1'000;
inline constexpr int kLeaseMs = 4'000;
inline constexpr int kExpelAfterMs = 5'000;
inline constexpr size_t kPayloadBytesMax = 8u << 20;

enum class MessageType : u8 {
  kHello = 1,
  kWelcome,
  kRefused,
  kCall,
  kAnswer,
  kSync,
  kSynced,
  kInvalidate,
  kAcknowledge,
  kGranted,
  kGoodbye,
  kPing,
  kPong,
  kLease,
  kAppend,
  kAppended,
  kFetch,
  kFetched,
  kPull,
  kPulled,
  kRescue,
  kRescued,
  kLast = kRescued,
};

struct Header {
  u32 payload_bytes = 0;
  MessageType type = MessageType::kHello;
  u64 id = 0;
};
void append_frame(std::string& out, MessageType type, u64 id, std::string_view payload);
// REQUIRES: kHeaderBytes bytes.
std::optional<Header> decode_header(std::string_view bytes);

enum class Profile : u8 {
  kShared,   // every change is a call; any number of mounts
  kPrivate,  // holds the lease and changes the workspace itself
};

struct Hello {
  u32 version = kVersion;
  std::string token;
  std::string workspace;
  bool read_only = false;
  Profile profile = Profile::kShared;
  std::string client;  // kPrivate: who it is, the same after a restart
};
struct Welcome {
  u32 version = kVersion;
  SessionId session = 0;
  Seq last_seq = 0;
  std::string workspace;
};
// The reply of a call. `bytes` is what a read gave; it points into the frame.
struct Answer {
  Reply reply;
  Seq seq = 0;
  bool reply_later = false;
  std::string_view bytes;
};

// What the server says about the lease, and where the workspace stands.
struct LeaseNews {
  LeaseMessage message;
  i64 duration_us = 0;
  std::string holder;  // for a person, when somebody has it
  u32 number = 0;      // of the workspace; another one than before: our history has ended
  PageId root = 0;
  Seq root_seq = 0;
  Seq head = 0;
  u64 bytes_quota = 0;
  u64 inodes_quota = 0;
};
struct Appended {
  int error = 0;  // EAGAIN: the lease is not the sender's any more
  Seq head = 0;
  PageId root = 0;
  Seq root_seq = 0;
};
// Records of the lease's holder, or of one that was fenced.
struct Batch {
  Epoch epoch = 0;
  u32 number = 0;  // workspace number under which they were made
  struct Item {
    std::string_view record;
    std::string_view data;
  };
  std::vector<Item> items;  // point into the payload
};
struct Rescued {
  int error = 0;
  std::string fork;  // name of the workspace that holds them; "" when there was nothing to keep
};

std::string encode_lease(const LeaseMessage& message);
std::optional<LeaseMessage> decode_lease(std::string_view payload);
std::string encode_news(const LeaseNews& news);
std::optional<LeaseNews> decode_news(std::string_view payload);
std::string encode_appended(const Appended& appended);
std::optional<Appended> decode_appended(std::string_view payload);
std::string encode_batch(const Batch& batch);
std::optional<Batch> decode_batch(std::string_view payload);
std::string encode_rescued(const Rescued& rescued);
std::optional<Rescued> decode_rescued(std::string_view payload);

std::string encode_hello(const Hello& hello);
std::optional<Hello> decode_hello(std::string_view payload);
std::string encode_welcome(const Welcome& welcome);
std::optional<Welcome> decode_welcome(std::string_view payload);

// `data` are the bytes of a write.
std::string encode_call(const Request& request, base::ByteView data);
struct Call {
  Request request;  // views point into the payload
  std::string_view data;
};
std::optional<Call> decode_call(std::string_view payload);

std::string encode_answer(const Effects& effects, std::string_view bytes);
std::optional<Answer> decode_answer(std::string_view payload);

std::string encode_invalidations(const std::vector<Invalidation>& list);
std::optional<std::vector<Invalidation>> decode_invalidations(std::string_view payload);

}  // namespace fs::wire
