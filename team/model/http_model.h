// The Model that talks to a server: encodes through a Codec, sends through a Transport (live HTTP
// or a cassette), retries what is worth it, and keeps to a rate gate shared by all workers of a
// back end. Thread-safe.
#pragma once

#include "base/clock.h"
#include "base/random.h"
#include "team/model/model.h"
#include "team/model/rate_gate.h"
#include "team/model/transport.h"

#include <memory>
#include <string>

namespace team {

enum class ApiKind { kOpenAiChat, kAnthropic };

struct RetryPolicy {
  int tries_max = 5;
  i64 first_delay_ms = 500;
  i64 delay_max_ms = 8'000;
  i64 retry_after_max_ms = 120'000;  // a server that asks for more is given up on
};

struct BackendConfig {
  ApiKind api = ApiKind::kOpenAiChat;
  std::string url;  // OpenAI: ends in /v1; Anthropic: without
  std::string key;  // may be empty
  i64 connect_timeout_ms = 10'000;
  i64 timeout_ms = 1'800'000;
  i64 stall_timeout_ms = 120'000;
  RetryPolicy retry;
  // Older OpenAI-style servers know max_tokens only.
  bool old_max_tokens = false;
};

class HttpModel : public Model {
 public:
  // `transport`, `gate` and `clock` outlive the model. `seed` drives the jitter.
  HttpModel(BackendConfig config, Transport& transport, RateGate& gate, base::Clock& clock,
            u64 seed);
  ~HttpModel() override;
  CallResult complete(const ModelRequest& request, const DeltaSink& on_delta = {}) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One line a finding, from real calls: reachable, lists models, plain reply, streamed reply, tool
// call, usage counted. For `fleet models test URL`.
struct EndpointFinding {
  std::string check;
  bool ok = false;
  std::string detail;
};
std::vector<EndpointFinding> test_endpoint(const BackendConfig& config, const std::string& model);

}  // namespace team
