#include "team/model/http_model.h"

#include "team/model/codec.h"

#include <algorithm>
#include <mutex>

namespace team {
namespace {

// A reply larger than this is a server gone mad; the stream is cut and the call fails.
constexpr size_t kReplyBytesMax = 32 << 20;

// One exchange, folded as it streams.
struct Exchange {
  CallTry record;
  ModelReply reply;
  bool retry = false;
  i64 retry_after_ms = -1;
  bool throttled = false;
};

CallOutcome outcome_of(const base::Error& error, bool head_came) {
  switch (error.code()) {
    case base::ErrorCode::kDeadline:
      return CallOutcome::kTimeout;
    case base::ErrorCode::kCancelled:
      return CallOutcome::kCancelled;
    case base::ErrorCode::kNotFound:
      return CallOutcome::kNoRecording;
    case base::ErrorCode::kInvalidArgument:
      return CallOutcome::kRejected;
    default:
      return head_came ? CallOutcome::kBroken : CallOutcome::kUnreachable;
  }
}

}  // namespace

struct HttpModel::Impl {
  BackendConfig config;
  Transport& transport;
  RateGate& gate;
  base::Clock& clock;
  std::mutex mutex;
  base::Rng jitter;

  Exchange exchange(const ModelRequest& request, const DeltaSink& on_delta);
  void settle(Exchange& exchange, const base::Result<base::HttpResponse>& sent,
              const base::HttpResponse& head, std::string_view body, StreamDecoder* stream,
              const base::Status& stream_status, size_t request_bytes);
  i64 backoff_ms(int tries);
};

// Full jitter over the upper half of an exponential step: spreads workers out, never below half.
i64 HttpModel::Impl::backoff_ms(int tries) {
  const int doublings = std::min(tries - 1, 20);
  const i64 step = std::min(config.retry.first_delay_ms << doublings, config.retry.delay_max_ms);
  std::lock_guard lock(mutex);
  return step / 2 + jitter.between(0, std::max<i64>(1, step / 2));
}

Exchange HttpModel::Impl::exchange(const ModelRequest& request, const DeltaSink& on_delta) {
  const Codec& codec = codec_for(config.api);
  base::HttpRequest http;
  http.method = "POST";
  http.url = codec.url(config);
  http.headers = codec.headers(config);
  http.body = codec.encode(request, config).dump();
  http.connect_timeout_ms = config.connect_timeout_ms;
  http.timeout_ms = config.timeout_ms;
  http.stall_timeout_ms = config.stall_timeout_ms;

  Exchange result;
  base::HttpResponse head;
  std::string body;
  size_t received = 0;
  std::unique_ptr<StreamDecoder> stream;
  base::Status stream_status;
  base::SseParser sse;
  const i64 begin_us = clock.monotonic_us();
  const auto on_head = [&](const base::HttpResponse& response) {
    head.status = response.status;
    head.headers = response.headers;
    // Some servers answer a stream request with plain JSON; the content type tells.
    if (response.status / 100 == 2 &&
        response.header("content-type").starts_with("text/event-stream")) {
      stream = codec.stream_decoder();
    }
  };
  const auto on_event = [&](const base::SseParser::Event& event) {
    if (stream_status.ok()) stream_status = stream->feed(event, on_delta);
  };
  const auto on_body = [&](std::string_view piece) {
    if (result.record.first_token_ms < 0) {
      result.record.first_token_ms = (clock.monotonic_us() - begin_us) / 1'000;
    }
    received += piece.size();
    if (received > kReplyBytesMax) {
      stream_status = base::Error(base::ErrorCode::kCorruption, "the reply is over 32 MB");
      return false;
    }
    if (stream == nullptr) {
      body += piece;
      return true;
    }
    sse.feed(piece, on_event);
    return stream_status.ok() && !stream->cancelled();
  };
  const base::Result<base::HttpResponse> sent = transport.send(http, on_head, on_body);
  result.record.total_ms = (clock.monotonic_us() - begin_us) / 1'000;
  if (stream != nullptr) stream->finish();
  settle(result, sent, head, body, stream.get(), stream_status, http.body.size());
  return result;
}

// Decides how the exchange ended and what of it may have been billed.
void HttpModel::Impl::settle(Exchange& result, const base::Result<base::HttpResponse>& sent,
                             const base::HttpResponse& head, std::string_view body,
                             StreamDecoder* stream, const base::Status& stream_status,
                             size_t request_bytes) {
  CallTry& record = result.record;
  record.http_status = head.status;
  const auto fail = [&](CallOutcome outcome, std::string error, bool retry) {
    record.outcome = outcome;
    record.error = std::move(error);
    result.retry = retry;
  };
  if (head.status != 0 && head.status / 100 != 2) {
    const CallFailure failure = classify_http_error(head.status, head.headers, body);
    fail(failure.outcome, failure.error, failure.retry);
    result.retry_after_ms = retry_after_ms(head.headers, clock.wall_us());
    result.throttled = head.status == 429 || head.status == 503 || head.status == 529;
    return;
  }
  // From here on the model may have worked: what came is booked even when it is of no use.
  if (stream != nullptr) {
    result.reply = std::move(stream->reply());
    harden(result.reply, request_bytes);
    record.usage = result.reply.usage;
    record.maybe_billed = true;
    if (stream->cancelled()) return fail(CallOutcome::kCancelled, "cancelled by the caller", false);
    if (!stream_status.ok()) {
      const bool reported = stream_status.error().code() == base::ErrorCode::kUnavailable;
      return fail(reported ? CallOutcome::kServerError : CallOutcome::kMalformed,
                  (reported ? "the model server failed inside the stream: " : "") +
                      stream_status.error().message(),
                  true);
    }
    if (!sent.ok() && !stream->saw_end()) {
      return fail(outcome_of(sent.error(), true), sent.error().message(), true);
    }
    if (!stream->saw_end()) {
      return fail(CallOutcome::kBroken, "the stream ended before the reply did", true);
    }
    return;
  }
  if (!sent.ok()) {
    const bool head_came = head.status != 0;
    record.maybe_billed = head_came || sent.error().code() == base::ErrorCode::kDeadline;
    if (record.maybe_billed) {
      record.usage.in_fresh = estimate_tokens(request_bytes);
      record.usage.estimated = true;
    }
    const CallOutcome outcome = outcome_of(sent.error(), head_came);
    const bool final = outcome == CallOutcome::kCancelled || outcome == CallOutcome::kNoRecording ||
                       outcome == CallOutcome::kRejected;
    return fail(stream_status.ok() ? outcome : CallOutcome::kMalformed,
                stream_status.ok() ? sent.error().message() : stream_status.error().message(),
                !final);
  }
  record.maybe_billed = true;
  base::Result<ModelReply> decoded = codec_for(config.api).decode(body);
  if (!decoded.ok()) {
    record.usage.in_fresh = estimate_tokens(request_bytes);
    record.usage.estimated = true;
    return fail(CallOutcome::kMalformed, decoded.error().message(), true);
  }
  result.reply = std::move(*decoded);
  harden(result.reply, request_bytes);
  record.usage = result.reply.usage;
}

HttpModel::HttpModel(BackendConfig config, Transport& transport, RateGate& gate, base::Clock& clock,
                     u64 seed)
    : impl_(new Impl{std::move(config), transport, gate, clock, {}, base::Rng(seed)}) {}

HttpModel::~HttpModel() = default;

CallResult HttpModel::complete(const ModelRequest& request, const DeltaSink& on_delta) {
  CallResult result;
  const RetryPolicy& policy = impl_->config.retry;
  i64 pause_ms = 0;
  for (int tries = 1;; ++tries) {
    if (pause_ms > 0) impl_->clock.sleep_us(pause_ms * 1'000);
    const i64 waited_us = impl_->gate.enter();
    Exchange exchange = impl_->exchange(request, on_delta);
    exchange.record.waited_ms = pause_ms + waited_us / 1'000;
    result.outcome = exchange.record.outcome;
    result.error = exchange.record.error;
    result.tries.push_back(exchange.record);
    pause_ms = exchange.retry_after_ms >= 0 ? exchange.retry_after_ms : impl_->backoff_ms(tries);
    if (result.ok()) {
      impl_->gate.leave_ok();
      result.reply = std::move(exchange.reply);
      return result;
    }
    const bool too_long = pause_ms > policy.retry_after_max_ms;
    if (exchange.throttled) {
      impl_->gate.leave_throttled(too_long ? 0 : pause_ms * 1'000);
    } else {
      impl_->gate.leave_failed();
    }
    if (!exchange.retry || tries >= policy.tries_max) return result;
    if (too_long) {
      result.error += " (it asks to wait " + std::to_string(pause_ms / 1'000) +
                      " s, longer than this run is willing to)";
      return result;
    }
  }
}

base::Result<base::HttpResponse> HttpTransport::send(const base::HttpRequest& request,
                                                     const base::HttpHeadSink& on_head,
                                                     const base::HttpBodySink& on_body) {
  return base::http_stream(request, on_head, on_body);
}

}  // namespace team
