#include "fs/blob/s3_blobs.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/random.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::HttpRequest;
using base::HttpResponse;
using base::Result;
using base::Status;

namespace {

constexpr i64 kPauseMaxMs = 1'000;

bool worth_another_try(const HttpResponse& response) {
  int status = response.status;
  bool slow = status == 400 && response.body.find("RequestTimeout") != response.body.npos;
  return status >= 500 || status == 429 || status == 408 || slow;
}

std::string encode(std::string_view value) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (unsigned char c : value) {
    if (std::isalnum(c) || std::strchr("-._~", c) != nullptr) {
      out += static_cast<char>(c);
    } else {
      out += {'%', digits[c >> 4], digits[c & 15]};
    }
  }
  return out;
}

// What stands between <tag> and </tag> from `at` on, which moves behind it; false at the end. Our
// names and S3's tokens hold nothing that XML writes otherwise.
bool next_element(std::string_view xml, const std::string& tag, size_t& at, std::string& value) {
  size_t begin = xml.find("<" + tag + ">", at);
  if (begin == xml.npos) return false;
  begin += tag.size() + 2;
  size_t end = xml.find("</" + tag + ">", begin);
  if (end == xml.npos) return false;
  value = xml.substr(begin, end - begin);
  at = end;
  return true;
}

std::string element(std::string_view xml, const std::string& tag) {
  size_t at = 0;
  std::string value;
  return next_element(xml, tag, at, value) ? value : "";
}

class S3Blob : public Blob {
 public:
  S3Blob(S3Blobs& store, std::string name, u64 size)
      : store_(store), name_(std::move(name)), size_(size) {}
  Result<u64> size() override { return size_; }
  Result<size_t> read_at(u64 offset, base::Bytes out) override {
    if (offset >= size_ || out.empty()) return size_t{0};
    std::string bytes = TRY(store_.range(name_, offset, std::min<u64>(out.size(), size_ - offset)));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return bytes.size();
  }

 private:
  S3Blobs& store_;
  std::string name_;
  u64 size_;
};

}  // namespace

HttpRequest S3Blobs::request_of(const Ask& ask) {
  HttpRequest request;
  request.method = ask.method;
  request.url = url_.base() + "/" + (ask.name.empty() ? "" : url_.prefix + ask.name);
  if (!ask.query.empty()) request.url += "?" + ask.query;
  request.body = ask.body;
  request.connect_timeout_ms = patience_.connect_timeout_ms;
  request.stall_timeout_ms = patience_.stall_timeout_ms;
  request.connections = &connections_;
  request.aws = {url_.region, credentials_.key_id, credentials_.secret};
  request.headers.emplace_back("x-amz-content-sha256",
                               base::to_hex(base::sha256(base::as_bytes(ask.body))));
  if (!credentials_.session_token.empty()) {
    request.headers.emplace_back("x-amz-security-token", credentials_.session_token);
  }
  if (!ask.range.empty()) request.headers.emplace_back("Range", ask.range);
  if (!ask.body.empty()) request.headers.emplace_back("Content-Type", "application/octet-stream");
  return request;
}

Error S3Blobs::refusal(const Ask& ask, const HttpResponse& response) const {
  std::string code = element(response.body, "Code");
  std::string said = "HTTP " + std::to_string(response.status) + (code.empty() ? "" : " " + code);
  std::string where = ask.name.empty() ? "bucket " + url_.bucket : address(ask.name);
  switch (response.status) {
    case 404:
      return Error(ErrorCode::kNotFound, where + " is not in the object store (" + said + ")");
    case 401:
    case 403:
      return Error(ErrorCode::kPermission, "the object store refuses " + ask.method + " of " +
                                               where + " (" + said +
                                               "); check the credentials and what they may do");
    default:
      return Error(ErrorCode::kIo, "the object store answered " + ask.method + " of " + where +
                                       " with " + said + "; check the URL of the blobs");
  }
}

Result<HttpResponse> S3Blobs::exchange(const Ask& ask) {
  base::Clock& clock = base::system_clock();
  i64 give_up_us = clock.monotonic_us() + patience_.give_up_ms * 1'000;
  i64 pause_ms = patience_.first_pause_ms;
  std::string last;
  for (int tries = 1;; ++tries) {
    auto response = base::http_request(request_of(ask));
    if (response.ok() && !worth_another_try(*response)) {
      if (response->status / 100 == 2) return response;
      return refusal(ask, *response);
    }
    if (!response.ok() && response.error().code() == ErrorCode::kInvalidArgument) return response;
    last = response.ok() ? "HTTP " + std::to_string(response->status) : response.error().message();
    u8 chance = 0;
    base::secure_random_bytes({&chance, 1});
    i64 pause_us = pause_ms * 500 + pause_ms * 500 * chance / 255;
    if (clock.monotonic_us() + pause_us >= give_up_us) {
      return Error(ErrorCode::kUnavailable, "the object store failed " + std::to_string(tries) +
                                                " times to " + ask.method + " " +
                                                address(ask.name) + " (last: " + last +
                                                "); check that it runs and can be reached");
    }
    clock.sleep_us(pause_us);
    pause_ms = std::min(pause_ms * 2, kPauseMaxMs);
  }
}

Status S3Blobs::put(const std::string& name, std::string_view bytes) {
  TRY(exchange({"PUT", name, "", "", std::string(bytes)}));
  return {};
}

Result<std::unique_ptr<Blob>> S3Blobs::open(const std::string& name) {
  auto head = TRY(exchange({"HEAD", name, "", ""}));
  u64 size = std::strtoull(std::string(head.header("content-length")).c_str(), nullptr, 10);
  return std::unique_ptr<Blob>(std::make_unique<S3Blob>(*this, name, size));
}

Result<std::string> S3Blobs::range(const std::string& name, u64 offset, u64 length) {
  if (length == 0) return std::string();
  std::string wanted =
      "bytes=" + std::to_string(offset) + "-" + std::to_string(offset + length - 1);
  auto response = TRY(exchange({"GET", name, "", wanted}));
  // A store may ignore the range and give all.
  if (response.status != 206) {
    response.body.erase(0, std::min<u64>(offset, response.body.size()));
  }
  if (response.body.size() > length) response.body.resize(length);
  if (response.body.size() == length) return std::move(response.body);
  return Error(ErrorCode::kIo, "the object store gave " + std::to_string(response.body.size()) +
                                   " of " + std::to_string(length) + " bytes of " + address(name) +
                                   "; check that the object is whole");
}

Status S3Blobs::remove(const std::string& name) {
  auto removed = exchange({"DELETE", name, "", ""});
  if (!removed.ok() && removed.error().code() != ErrorCode::kNotFound) return removed.error();
  return {};
}

Result<std::vector<std::string>> S3Blobs::list(const std::string& prefix) {
  std::vector<std::string> names;
  std::string token;
  do {
    std::string query = token.empty() ? "" : "continuation-token=" + encode(token) + "&";
    query += "list-type=2&prefix=" + encode(url_.prefix + prefix);
    auto page = TRY(exchange({"GET", "", query, ""}));
    if (page.body.find("</ListBucketResult>") == page.body.npos) {
      return Error(ErrorCode::kIo, url_.base() + " does not answer like S3; check the endpoint");
    }
    std::string key;
    for (size_t at = 0; next_element(page.body, "Key", at, key);) {
      if (key.starts_with(url_.prefix)) names.push_back(key.substr(url_.prefix.size()));
    }
    bool more = element(page.body, "IsTruncated") == "true";
    token = more ? element(page.body, "NextContinuationToken") : "";
  } while (!token.empty());
  return names;
}

}  // namespace fs
