// A wire protocol as pure functions: request to JSON, reply or stream of events to ModelReply,
// error body to outcome. No I/O. What open models get wrong is repaired here when the repair is
// certain, and reported as a warning; everything else is left for the agent loop to send back as a
// tool error. A StreamDecoder is single-threaded; codecs are thread-safe.
#pragma once

#include "base/http_client.h"
#include "team/model/http_model.h"
#include "team/model/model.h"

#include <memory>
#include <string>
#include <string_view>

namespace team {

struct CallFailure {
  CallOutcome outcome = CallOutcome::kMalformed;
  std::string error;
  bool retry = false;
};

class StreamDecoder {
 public:
  virtual ~StreamDecoder() = default;
  // One event of the stream. Errors: kCorruption (not the protocol), kUnavailable (the server
  // reported a failure inside the stream; the message is its text).
  virtual base::Status feed(const base::SseParser::Event& event, const DeltaSink& sink) = 0;
  virtual bool saw_end() const = 0;    // the protocol's own end marker came
  virtual bool cancelled() const = 0;  // the sink said stop
  virtual ModelReply& reply() = 0;     // what came so far
  virtual void finish() = 0;           // closes open parts; call once, after the last event
};

class Codec {
 public:
  virtual ~Codec() = default;
  virtual std::string url(const BackendConfig& config) const = 0;
  virtual base::HttpHeaders headers(const BackendConfig& config) const = 0;
  virtual base::Json encode(const ModelRequest& request, const BackendConfig& config) const = 0;
  // Errors: kCorruption.
  virtual base::Result<ModelReply> decode(std::string_view body) const = 0;
  virtual std::unique_ptr<StreamDecoder> stream_decoder() const = 0;
};

const Codec& codec_for(ApiKind api);
const Codec& openai_codec();
const Codec& anthropic_codec();

// Common to both protocols: what a non-2xx answer means. Reads {"error":{...}} where there is one.
CallFailure classify_http_error(int status, const base::HttpHeaders& headers,
                                std::string_view body);

// Milliseconds a server asked to wait: retry-after-ms, Retry-After in seconds or as a date. -1: it
// did not.
i64 retry_after_ms(const base::HttpHeaders& headers, i64 now_wall_us);

// Shared hardening, applied to every decoded reply: names missing ids, splits calls that share one,
// cuts trailing special tokens off arguments, drops a call cut off by the length limit, fills in
// usage that is missing or impossible. `request_bytes` is what an estimate of the input starts
// from.
void harden(ModelReply& reply, size_t request_bytes);

// What a decoder leaves in ModelReply::usage when the server did not say.
inline Usage no_usage() {
  Usage usage;
  usage.in_fresh = -1;
  return usage;
}

// Cuts what is not JSON off the end when what remains is one JSON value. True when something was
// cut.
bool trim_trailing_noise(std::string& arguments);

}  // namespace team
