// What the orchestrator and a worker process say to each other: frames over a socket pair. A frame
// is two little-endian u32 lengths, that many bytes of JSON and that many raw bytes (for what need
// not be text, such as logs).
//
//   orchestrator                              worker
//   {"do":"attempt", ...} ------------------>           the work; once, first
//                        <------------------  {"say":"emit"|"once"|"infer"|"check", ...}   asks
//   {"ok":...} or {"do":"act"} ------------->           answers
//                        <------------------  {"say":"beat"|"activity"|"line"}             tells
//                        <------------------  {"say":"done"|"failed", ...}                 the end
//
// Errors: kUnavailable when the other side is gone; kDeadline when nothing came in time;
// kCorruption for bytes that are no frame. Sending is thread-safe (heartbeats come from a thread of
// their own); one thread receives.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "base/types.h"

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace team {

struct Frame {
  base::Json head;
  std::string bytes;
};

class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}  // takes it over
  ~Channel();
  Channel(const Channel&) = delete;

  // Ours and the other end's file descriptor; both are closed on exec.
  static base::Result<std::pair<int, int>> make_pair();

  base::Status send(const base::Json& head, std::string_view bytes = {});
  // Waits up to timeout_ms (negative: for ever).
  base::Result<Frame> receive(i64 timeout_ms);
  void close();

 private:
  base::Status read_some(i64 end_us);

  int fd_;
  std::mutex sending_;
  std::string buffer_;
};

}  // namespace team
