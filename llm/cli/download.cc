#include "llm/cli/download.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/http_client.h"
#include "base/json.h"
#include "llm/formats/mapped_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::HttpRequest;
using base::HttpResponse;
using base::Result;
using base::Status;

namespace {

constexpr int kRedirectsMax = 8;

std::optional<u64> number_of(std::string_view text) {
  u64 value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "bytes 5-9/10" as (5, 10).
std::optional<std::pair<u64, u64>> range_of(std::string_view text) {
  const size_t dash = text.find('-');
  const size_t slash = text.find('/');
  if (!text.starts_with("bytes ") || dash == text.npos || slash == text.npos) return std::nullopt;
  const auto begin = number_of(text.substr(6, dash - 6));
  const auto total = number_of(text.substr(slash + 1));
  if (!begin || !total) return std::nullopt;
  return std::pair(*begin, *total);
}

std::string lower_hex(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const bool hex = out.size() == 64 && out.find_first_not_of("0123456789abcdef") == out.npos;
  return hex ? out : "";
}

// Model hubs send a large file's SHA-256 as an entity tag.
std::string sent_checksum(const HttpResponse& head) {
  for (const char* name : {"x-linked-etag", "etag"}) {
    std::string_view tag = head.header(name);
    if (tag.size() == 66 && tag.front() == '"') tag = tag.substr(1, 64);
    if (const std::string hex = lower_hex(tag); !hex.empty()) return hex;
  }
  return "";
}

std::string resolve(const std::string& url, std::string_view location) {
  if (location.find("://") != location.npos) return std::string(location);
  const size_t host = url.find("://");
  const size_t path = host == url.npos ? url.npos : url.find('/', host + 3);
  if (location.starts_with('/')) return url.substr(0, path) + std::string(location);
  return url.substr(0, url.rfind('/') + 1) + std::string(location);
}

class Download {
 public:
  Download(const std::string& url, const std::string& path, const DownloadOptions& options)
      : url_(url),
        path_(path),
        partial_(path + ".partial"),
        note_(path + ".partial.json"),
        options_(options),
        checksum_(lower_hex(options.sha256)) {}
  ~Download() {
    if (file_ >= 0) ::close(file_);
  }

  Result<Downloaded> run() {
    if (!options_.sha256.empty() && checksum_.empty()) {
      return Error(ErrorCode::kInvalidArgument, "a SHA-256 has 64 hexadecimal digits");
    }
    TRY(open_partial());
    const u64 resumed_at = done_;
    int fruitless = 0;
    u64 furthest = done_;  // so that starting over does not count as getting on
    while (!complete()) {
      auto tried = attempt();
      if (!tried.ok() && !worth_again(tried.error().code())) return std::move(tried).error();
      if (complete()) break;
      fruitless = done_ > furthest ? 0 : fruitless + 1;
      furthest = std::max(furthest, done_);
      if (fruitless >= options_.attempts) {
        const std::string why = tried.ok() ? "the transfer ended early" : tried.error().message();
        return Error(ErrorCode::kUnavailable, "gave up after " + std::to_string(fruitless) +
                                                  " attempts; run it again to go on (" + why + ")");
      }
      if (fruitless > 0) options_.clock->sleep_us(i64{250'000} << std::min(fruitless, 6));
    }
    return finish(resumed_at);
  }

 private:
  static bool worth_again(ErrorCode code) {
    return code == ErrorCode::kUnavailable || code == ErrorCode::kDeadline;
  }
  bool complete() const { return total_ && done_ == *total_; }

  Status open_partial() {
    file_ = ::open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file_ < 0) return base::errno_error(errno, "creating " + partial_);
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      return Error(ErrorCode::kBusy, partial_ + " is being written by another download");
    }
    struct stat status{};
    if (::fstat(file_, &status) != 0) return base::errno_error(errno, "reading " + partial_);
    const auto note = base::read_file(note_);
    const auto parsed = base::Json::parse(note.ok() ? *note : "");
    if (parsed.ok() && (*parsed)["url"].as_string() == url_) {
      tag_ = (*parsed)["etag"].as_string();
      done_ = static_cast<u64>(status.st_size);
    }
    return truncate();
  }

  Status truncate() {
    if (::ftruncate(file_, static_cast<off_t>(done_)) != 0) {
      return base::errno_error(errno, "shortening " + partial_);
    }
    return {};
  }

  // One request and its redirects. Keeps whatever came before an error.
  Status attempt() {
    // Nothing would tell a changed file from the old one: begin anew.
    if (tag_.empty() && checksum_.empty()) TRY(start_over());
    std::string url = url_;
    for (int hop = 0; hop < kRedirectsMax; ++hop) {
      HttpRequest request;
      request.url = url;
      request.timeout_ms = 0;
      request.stall_timeout_ms = 60'000;
      request.headers.emplace_back("accept-encoding", "identity");
      if (done_ > 0) {
        request.headers.emplace_back("range", "bytes=" + std::to_string(done_) + "-");
        if (!tag_.empty()) request.headers.emplace_back("if-range", tag_);
      }
      head_status_ = {};
      body_wanted_ = false;
      std::string location;
      const auto response = base::http_stream(
          request, [&](const HttpResponse& head) { head_status_ = take_head(head, &location); },
          [&](std::string_view piece) { return !body_wanted_ || take_body(piece); });
      if (!head_status_.ok()) return head_status_;
      if (!response.ok()) return response.error();
      if (body_wanted_ && !total_) total_ = done_;  // a length that only its end told
      if (location.empty()) return {};
      url = resolve(url, location);
    }
    return Error(ErrorCode::kUnsupported, url_ + " redirects in circles");
  }

  Status take_head(const HttpResponse& head, std::string* location) {
    if (checksum_.empty() || options_.sha256.empty()) {
      if (const std::string sent = sent_checksum(head); !sent.empty()) sent_ = sent;
    }
    const int status = head.status;
    if (status >= 300 && status < 400 && !head.header("location").empty()) {
      *location = head.header("location");
      return {};
    }
    if (status == 416) {  // the file is not as long as what we have
      return start_over();
    }
    if (status == 206) return take_partial_head(head);
    if (status == 200) {  // the whole file, asked for or because it has changed
      if (done_ > 0) TRY(start_over());
      tag_ = strong_tag(head);
      total_ = number_of(head.header("content-length"));
      body_wanted_ = true;
      return write_note();
    }
    if (status == 404 || status == 401 || status == 403 || status == 410) {
      return Error(status == 404 || status == 410 ? ErrorCode::kNotFound : ErrorCode::kPermission,
                   url_ + " answers " + std::to_string(status));
    }
    if (status == 408 || status == 429 || status >= 500) {
      return Error(ErrorCode::kUnavailable, url_ + " answers " + std::to_string(status));
    }
    return Error(ErrorCode::kUnsupported, url_ + " answers " + std::to_string(status));
  }

  Status take_partial_head(const HttpResponse& head) {
    const auto range = range_of(head.header("content-range"));
    const std::string tag = strong_tag(head);
    if (!range || range->first != done_ || range->second < done_ ||
        (!tag_.empty() && !tag.empty() && tag != tag_)) {
      // Another range than the one asked for, or of another file: nothing here can be trusted.
      TRY(start_over());
      return Error(ErrorCode::kUnavailable, url_ + " sends another part than was asked for");
    }
    total_ = range->second;
    body_wanted_ = true;
    return {};
  }

  static std::string strong_tag(const HttpResponse& head) {
    const std::string_view tag = head.header("etag");
    return tag.starts_with('"') ? std::string(tag) : "";
  }

  Status start_over() {
    done_ = 0;
    tag_.clear();
    total_.reset();
    return truncate();
  }

  Status write_note() {
    return base::write_file(note_, base::Json::object({{"url", url_}, {"etag", tag_}}).dump());
  }

  bool take_body(std::string_view piece) {
    if (total_ && piece.size() > *total_ - done_) {
      head_status_ = Error(ErrorCode::kUnavailable, url_ + " sends more than it said");
      return false;
    }
    for (size_t at = 0; at < piece.size();) {
      const ssize_t n =
          ::pwrite(file_, piece.data() + at, piece.size() - at, static_cast<off_t>(done_));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        head_status_ = base::errno_error(errno, "writing " + partial_);
        return false;
      }
      at += static_cast<size_t>(n);
      done_ += static_cast<u64>(n);
    }
    if (options_.progress) options_.progress(done_, total_.value_or(0));
    return true;
  }

  Result<Downloaded> finish(u64 resumed_at) {
    Downloaded result;
    result.bytes = done_;
    result.resumed_at = std::min(resumed_at, done_);
    std::shared_ptr<const MappedFile> mapped;
    if (done_ > 0) mapped = TRY(MappedFile::open(partial_));
    result.sha256 = base::to_hex(base::sha256(mapped ? mapped->bytes() : base::ByteView()));
    const std::string& expected = checksum_.empty() ? sent_ : checksum_;
    result.checked = !expected.empty();
    if (result.checked && result.sha256 != expected) {
      ::unlink(partial_.c_str());
      ::unlink(note_.c_str());
      return Error(ErrorCode::kCorruption, "what came from " + url_ + " has the SHA-256 " +
                                               result.sha256 + " instead of " + expected +
                                               "; it was removed, fetch it again");
    }
    if (::fsync(file_) != 0) return base::errno_error(errno, "syncing " + partial_);
    if (::rename(partial_.c_str(), path_.c_str()) != 0) {
      return base::errno_error(errno, "renaming " + partial_);
    }
    ::unlink(note_.c_str());
    return result;
  }

  const std::string url_, path_, partial_, note_;
  const DownloadOptions& options_;
  std::string checksum_, sent_, tag_;
  int file_ = -1;
  u64 done_ = 0;
  std::optional<u64> total_;
  Status head_status_;
  bool body_wanted_ = false;
};

}  // namespace

Result<Downloaded> download(const std::string& url, const std::string& path,
                            const DownloadOptions& options) {
  return Download(url, path, options).run();
}

}  // namespace llm
