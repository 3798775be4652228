#include "team/model/codec.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <string>

namespace team {
namespace {

constexpr size_t kErrorTextMax = 400;

std::string_view find_header(const base::HttpHeaders& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

std::string error_text(std::string_view body) {
  base::Result<base::Json> parsed = base::Json::parse(body);
  std::string text;
  if (parsed.ok()) {
    const base::Json& error = (*parsed)["error"];
    text = error.is_string() ? error.as_string() : error["message"].as_string();
    if (text.empty()) text = (*parsed)["message"].as_string();
    if (text.empty()) text = (*parsed)["detail"].as_string();
  }
  if (text.empty()) text = std::string(body.substr(0, kErrorTextMax));
  if (text.size() > kErrorTextMax) text.resize(kErrorTextMax);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Servers say "this prompt is too long" in many ways, none of them by status alone.
bool is_overflow(int status, std::string_view body) {
  if (status == 413) return true;
  if (status != 400 && status != 422) return false;
  std::string lower(body);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* sign : {"context_length_exceeded", "context length", "maximum context",
                           "prompt is too long", "context window", "too many tokens"}) {
    if (lower.find(sign) != std::string::npos) return true;
  }
  return false;
}

CallOutcome outcome_of(int status, std::string_view body) {
  if (is_overflow(status, body)) return CallOutcome::kContextOverflow;
  switch (status) {
    case 401:
    case 403:
      return CallOutcome::kUnauthorized;
    case 404:
      return CallOutcome::kNoSuchModel;
    case 408:
      return CallOutcome::kTimeout;
    case 429:
      return CallOutcome::kRateLimited;
    default:
      return status >= 500 ? CallOutcome::kServerError : CallOutcome::kRejected;
  }
}

std::string advice(CallOutcome outcome) {
  switch (outcome) {
    case CallOutcome::kUnauthorized:
      return "; check the key of this back end";
    case CallOutcome::kNoSuchModel:
      return "; check the model's name and the URL (OpenAI-style URLs end in /v1)";
    default:
      return "";
  }
}

}  // namespace

CallFailure classify_http_error(int status, const base::HttpHeaders& headers,
                                std::string_view body) {
  CallFailure failure;
  failure.outcome = outcome_of(status, body);
  failure.error = "the model server answered " + std::to_string(status) + ": " + error_text(body) +
                  advice(failure.outcome);
  failure.retry = status == 408 || status == 409 || status == 429 || status >= 500;
  const std::string_view said = find_header(headers, "x-should-retry");
  if (said == "true") failure.retry = true;
  if (said == "false") failure.retry = false;
  return failure;
}

i64 retry_after_ms(const base::HttpHeaders& headers, i64 now_wall_us) {
  const auto number = [](std::string_view text) {
    f64 value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? value : -1.0;
  };
  constexpr f64 kMsMax = 1e12;
  if (const f64 ms = number(find_header(headers, "retry-after-ms")); ms >= 0) {
    return static_cast<i64>(std::min(ms, kMsMax));
  }
  const std::string after(find_header(headers, "retry-after"));
  if (after.empty()) return -1;
  if (const f64 seconds = number(after); seconds >= 0) {
    return static_cast<i64>(std::min(seconds * 1'000, kMsMax));
  }
  std::tm when = {};
  const char* rest = ::strptime(after.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &when);
  if (rest == nullptr) return -1;
  const i64 wait_ms = (i64{::timegm(&when)} * 1'000'000 - now_wall_us) / 1'000;
  return std::max<i64>(0, wait_ms);
}

}  // namespace team
