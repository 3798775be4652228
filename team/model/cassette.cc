#include "team/model/cassette.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;

struct Chunk {
  i64 delay_ms = 0;
  std::string text;
};

struct Recording {
  std::string key;
  i64 ordinal = 0;  // among equal requests
  std::string path;
  Json request;
  int status = 0;
  base::HttpHeaders headers;
  std::vector<Chunk> chunks;
  std::string end = "ok";  // or the name of the error it ended with
  bool used = false;
};

std::string path_of(const std::string& url) {
  const size_t host = url.find("://");
  const size_t slash = url.find('/', host == std::string::npos ? 0 : host + 3);
  return slash == std::string::npos ? "/" : url.substr(slash);
}

// Stable whatever the host, the key and the order of members.
std::string key_of(const std::string& path, const Json& request) {
  return base::sha256_hex(path + "\n" + request.dump_canonical());
}

bool matters(const std::string& header) {
  return header == "content-type" || header == "retry-after" || header == "retry-after-ms" ||
         header == "x-should-retry";
}

// Bytes that are no UTF-8 cannot stand in JSON; they are kept in hexadecimal.
bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const size_t length = lead < 0x80         ? 1
                          : (lead >> 5) == 6  ? 2
                          : (lead >> 4) == 14 ? 3
                          : (lead >> 3) == 30 ? 4
                                              : 0;
    if (length == 0 || at + length > text.size()) return false;
    for (size_t i = 1; i < length; ++i) {
      if ((static_cast<unsigned char>(text[at + i]) & 0xC0) != 0x80) return false;
    }
    at += length;
  }
  return true;
}

std::string from_hex(const std::string& hex) {
  std::string out;
  for (size_t at = 0; at + 1 < hex.size(); at += 2) {
    out += static_cast<char>(std::strtol(hex.substr(at, 2).c_str(), nullptr, 16));
  }
  return out;
}

Json to_json(const Recording& recording) {
  Json chunks = Json::array();
  for (const Chunk& chunk : recording.chunks) {
    if (is_utf8(chunk.text)) {
      chunks.push(Json::array({chunk.delay_ms, chunk.text}));
    } else {
      chunks.push(Json::array({chunk.delay_ms, nullptr, base::to_hex(base::as_bytes(chunk.text))}));
    }
  }
  Json headers = Json::object();
  for (const auto& [name, value] : recording.headers) headers.set(name, value);
  return Json::object({{"v", 1},
                       {"key", recording.key},
                       {"n", recording.ordinal},
                       {"path", recording.path},
                       {"request", recording.request},
                       {"status", recording.status},
                       {"headers", std::move(headers)},
                       {"chunks", std::move(chunks)},
                       {"end", recording.end}});
}

base::Result<Recording> parse_line(std::string_view line, const std::string& where) {
  const auto damaged = [&](const std::string& what) {
    return Error(ErrorCode::kCorruption,
                 where + ": " + what + "; the cassette is damaged, record it again");
  };
  base::Result<Json> parsed = Json::parse(line);
  if (!parsed.ok()) return damaged(parsed.error().message());
  const Json& json = *parsed;
  if (json["v"].as_int() != 1) return damaged("not a line of version 1");
  if (!json["request"].is_object() || !json["chunks"].is_array() || !json["status"].is_integer()) {
    return damaged("request, status or chunks are missing");
  }
  Recording recording;
  recording.path = json["path"].as_string();
  recording.request = json["request"];
  recording.key = key_of(recording.path, recording.request);
  if (recording.key != json["key"].as_string())
    return damaged("the key does not match the request");
  recording.ordinal = json["n"].as_int();
  recording.status = static_cast<int>(json["status"].as_int());
  recording.end = json["end"].as_string_or("ok");
  for (const auto& [name, value] : json["headers"].members()) {
    recording.headers.emplace_back(name, value.as_string());
  }
  for (const Json& chunk : json["chunks"].items()) {
    recording.chunks.push_back({chunk[0].as_int(), chunk[1].is_string()
                                                       ? chunk[1].as_string()
                                                       : from_hex(chunk[2].as_string())});
  }
  return recording;
}

bool is_about(std::string_view line) {
  if (line.size() > 64 << 10 || line.find("\"about\"") == std::string_view::npos) return false;
  auto json = Json::parse(line);
  return json.ok() && (*json)["about"].is_object();
}

ErrorCode code_of_end(const std::string& end) {
  return end == "deadline" ? ErrorCode::kDeadline : ErrorCode::kUnavailable;
}

}  // namespace

struct Cassette::Impl {
  Options options;
  Transport* live = nullptr;
  mutable std::mutex mutex;
  std::vector<Recording> recordings;
  std::map<std::string, i64> asked;  // how often, by key

  std::string first_line() const {
    if (options.about.is_null()) return "";
    return Json::object({{"v", 1}, {"about", options.about}}).dump() + "\n";
  }
  base::Status load();
  base::Status store(const Recording& recording);
  base::Result<base::HttpResponse> play(const Recording& recording,
                                        const base::HttpHeadSink& on_head,
                                        const base::HttpBodySink& on_body);
  base::Result<base::HttpResponse> record(const base::HttpRequest& request, Recording recording,
                                          const base::HttpHeadSink& on_head,
                                          const base::HttpBodySink& on_body);
  Error missing(const Recording& wanted) const;
};

base::Status Cassette::Impl::load() {
  if (!base::file_exists(options.path)) {
    if (options.mode == CassetteMode::kRecord) return base::write_file(options.path, first_line());
    if (options.mode == CassetteMode::kAuto) return {};
    return Error(ErrorCode::kNotFound,
                 "there is no cassette at " + options.path + "; record one first or name another");
  }
  if (options.mode == CassetteMode::kRecord) {
    return options.keep ? base::Status() : base::write_file(options.path, first_line());
  }
  const std::string text = TRY(base::read_file(options.path));
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    ++number;
    const bool about = number == 1 && is_about(std::string_view(text).substr(at, end - at));
    if (end > at && !about) {
      recordings.push_back(TRY(parse_line(std::string_view(text).substr(at, end - at),
                                          options.path + ", line " + std::to_string(number))));
    }
    at = end + 1;
  }
  return {};
}

base::Status Cassette::Impl::store(const Recording& recording) {
  std::lock_guard lock(mutex);
  recordings.push_back(recording);
  recordings.back().used = true;
  return base::append_file(options.path, redact(to_json(recording).dump(), options.secrets) + "\n");
}

base::Result<base::HttpResponse> Cassette::Impl::play(const Recording& recording,
                                                      const base::HttpHeadSink& on_head,
                                                      const base::HttpBodySink& on_body) {
  base::HttpResponse response;
  response.status = recording.status;
  response.headers = recording.headers;
  if (recording.status != 0 && on_head) on_head(response);
  for (const Chunk& chunk : recording.chunks) {
    if (options.keep_delays && chunk.delay_ms > 0) {
      base::system_clock().sleep_us(chunk.delay_ms * 1'000);
    }
    if (on_body && !on_body(chunk.text)) {
      return Error(ErrorCode::kCancelled, "cancelled by the caller");
    }
  }
  if (recording.end == "ok") return response;
  return Error(code_of_end(recording.end), "as recorded: the exchange ended early");
}

base::Result<base::HttpResponse> Cassette::Impl::record(const base::HttpRequest& request,
                                                        Recording recording,
                                                        const base::HttpHeadSink& on_head,
                                                        const base::HttpBodySink& on_body) {
  base::Clock& clock = base::system_clock();
  i64 last_us = clock.monotonic_us();
  const auto head = [&](const base::HttpResponse& response) {
    recording.status = response.status;
    for (const auto& [name, value] : response.headers) {
      if (matters(name)) recording.headers.emplace_back(name, value);
    }
    if (on_head) on_head(response);
  };
  const auto body = [&](std::string_view piece) {
    const i64 now_us = clock.monotonic_us();
    recording.chunks.push_back({(now_us - last_us) / 1'000, std::string(piece)});
    last_us = now_us;
    return !on_body || on_body(piece);
  };
  base::Result<base::HttpResponse> sent = live->send(request, head, body);
  if (!sent.ok()) {
    const ErrorCode code = sent.error().code();
    // What the caller broke off itself says nothing about the server.
    if (code == ErrorCode::kCancelled || code == ErrorCode::kInvalidArgument) return sent;
    recording.end = code == ErrorCode::kDeadline ? "deadline" : "broken";
  }
  TRY(store(recording));
  return sent;
}

Error Cassette::Impl::missing(const Recording& wanted) const {
  std::string text = "the cassette " + options.path + " has no recording of this request";
  if (options.mode != CassetteMode::kStrict) return Error(ErrorCode::kNotFound, text);
  // The nearest one: same path, the longest common beginning.
  const std::string asked_text = wanted.request.dump_canonical();
  const Recording* nearest = nullptr;
  size_t best = 0;
  for (const Recording& one : recordings) {
    if (one.path != wanted.path) continue;
    const std::string have = one.request.dump_canonical();
    const auto parted =
        std::mismatch(asked_text.begin(), asked_text.end(), have.begin(), have.end()).first;
    const auto common = static_cast<size_t>(parted - asked_text.begin());
    if (nearest == nullptr || common > best) nearest = &one, best = common;
  }
  if (nearest == nullptr) return Error(ErrorCode::kNotFound, text + "; it is for another API");
  const std::string difference = describe_difference(wanted.request, nearest->request);
  if (difference.empty()) {
    return Error(ErrorCode::kNotFound, text + " for the " + std::to_string(wanted.ordinal + 1) +
                                           ". time; it was recorded fewer times");
  }
  return Error(ErrorCode::kNotFound, text + "; the nearest one differs in " + difference);
}

Cassette::Cassette(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Cassette::~Cassette() = default;

base::Result<std::unique_ptr<Cassette>> Cassette::open(Options options, Transport* live) {
  const bool needs_live =
      options.mode == CassetteMode::kRecord || options.mode == CassetteMode::kAuto;
  if (needs_live && live == nullptr) {
    return Error(ErrorCode::kInvalidArgument, "recording a cassette needs a live model");
  }
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  impl->live = live;
  TRY(impl->load());
  return std::unique_ptr<Cassette>(new Cassette(std::move(impl)));
}

base::Result<base::HttpResponse> Cassette::send(const base::HttpRequest& request,
                                                const base::HttpHeadSink& on_head,
                                                const base::HttpBodySink& on_body) {
  Recording wanted;
  wanted.path = path_of(request.url);
  // Redacted before it is hashed, so that a key planted in a prompt does not change what is found.
  wanted.request = TRY(Json::parse(redact(request.body, impl_->options.secrets)));
  wanted.key = key_of(wanted.path, wanted.request);
  const Recording* found = nullptr;
  {
    std::lock_guard lock(impl_->mutex);
    wanted.ordinal = impl_->asked[wanted.key]++;
    if (impl_->options.mode != CassetteMode::kRecord) {
      for (Recording& one : impl_->recordings) {
        if (one.used || one.key != wanted.key) continue;
        one.used = true;
        found = &one;
        break;
      }
    }
    if (found != nullptr) wanted = *found;  // recordings may move while we play
  }
  if (found != nullptr) return impl_->play(wanted, on_head, on_body);
  if (impl_->options.mode == CassetteMode::kReplay ||
      impl_->options.mode == CassetteMode::kStrict) {
    std::lock_guard lock(impl_->mutex);
    return impl_->missing(wanted);
  }
  return impl_->record(request, std::move(wanted), on_head, on_body);
}

base::Result<Json> Cassette::look_at(const std::string& path) {
  if (!base::file_exists(path)) {
    return Error(ErrorCode::kNotFound, "there is no cassette at " + path +
                                           "; record one with fleet run --record, or name another");
  }
  const std::string text = TRY(base::read_file(path));
  Json out = Json::object();
  size_t number = 0;
  for (size_t at = 0; at < text.size() && !out.has("request");) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (++number == 1 && is_about(line)) {
      out.set("about", (*Json::parse(line))["about"]);
    } else if (!line.empty()) {
      auto first = parse_line(line, path + ", line " + std::to_string(number));
      if (!first.ok()) return Error(ErrorCode::kInvalidArgument, first.error().message());
      out.set("path", first->path).set("request", first->request);
    }
  }
  if (!out.has("request")) {
    return Error(ErrorCode::kInvalidArgument, "the cassette " + path + " holds no exchange");
  }
  return out;
}

size_t Cassette::size() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->recordings.size();
}

size_t Cassette::unused() const {
  std::lock_guard lock(impl_->mutex);
  return static_cast<size_t>(std::count_if(impl_->recordings.begin(), impl_->recordings.end(),
                                           [](const Recording& one) { return !one.used; }));
}

}  // namespace team
