#include "fs/blob/s3_url.h"

#include "base/files.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

constexpr std::string_view kScheme = "s3://";

Error bad(const std::string& text, const std::string& why) {
  return Error(
      ErrorCode::kInvalidArgument,
      text + ": " + why + "; write s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION");
}

Result<std::string> decode(const std::string& text, std::string_view value) {
  std::string plain;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '%') {
      plain += value[i];
      continue;
    }
    bool good = i + 2 < value.size() && std::isxdigit(static_cast<unsigned char>(value[i + 1])) &&
                std::isxdigit(static_cast<unsigned char>(value[i + 2]));
    if (!good) return bad(text, "a '%' needs two digits after it");
    plain += static_cast<char>(std::stoi(std::string(value.substr(i + 1, 2)), nullptr, 16));
    i += 2;
  }
  return plain;
}

Status set(S3Url& url, const std::string& text, const std::string& name, const std::string& value) {
  if (name == "endpoint") {
    if (!value.starts_with("http://") && !value.starts_with("https://")) {
      return bad(text, "an endpoint begins with http:// or https://");
    }
    if (value.find('@') != value.npos) return bad(text, "an endpoint holds no credentials");
    url.endpoint = value;
    while (url.endpoint.ends_with('/')) url.endpoint.pop_back();
  } else if (name == "region") {
    url.region = value;
  } else if (name == "credentials") {
    url.credentials = value;
  } else if (name == "path_style" && (value == "0" || value == "1")) {
    url.path_style = value == "1";
  } else if (name == "cache_mb" && !value.empty() && value.size() < 10 &&
             std::all_of(value.begin(), value.end(), [](unsigned char c) { return isdigit(c); })) {
    url.cache_bytes = std::stoull(value) << 20;
  } else {
    return bad(text, "'" + name + "' is no option or has a wrong value");
  }
  return {};
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The value of `name = value` in a file of AWS's tools; of the first profile that has it.
std::string value_in(const std::string& content, std::string_view name) {
  size_t at = 0;
  while (at < content.size()) {
    size_t end = std::min(content.find('\n', at), content.size());
    std::string line = content.substr(at, end - at);
    at = end + 1;
    std::erase_if(line, [](unsigned char c) { return std::isspace(c); });
    if (line.starts_with(std::string(name) + "=")) return line.substr(name.size() + 1);
  }
  return "";
}

}  // namespace

bool is_s3_url(const std::string& text) {
  return text.starts_with(kScheme);
}

std::string S3Url::base() const {
  if (path_style) return endpoint + "/" + bucket;
  size_t host = endpoint.find("://") + 3;
  return endpoint.substr(0, host) + bucket + "." + endpoint.substr(host);
}

Result<S3Url> parse_s3_url(const std::string& text) {
  if (!is_s3_url(text)) return bad(text, "it does not begin with s3://");
  S3Url url;
  constexpr u64 cache_bytes_default = 1u << 30;
  url.cache_bytes = cache_bytes_default;
  std::string_view rest = std::string_view(text).substr(kScheme.size());
  size_t question = rest.find('?');
  std::string_view options = question == rest.npos ? "" : rest.substr(question + 1);
  rest = rest.substr(0, question);
  size_t slash = rest.find('/');
  url.bucket = rest.substr(0, slash);
  if (slash != rest.npos) url.prefix = rest.substr(slash + 1);
  while (url.prefix.ends_with('/')) url.prefix.pop_back();
  auto plain = [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '-' || c == '_'; };
  bool named = !url.bucket.empty() && std::all_of(url.bucket.begin(), url.bucket.end(), plain) &&
               std::all_of(url.prefix.begin(), url.prefix.end(),
                           [&](unsigned char c) { return plain(c) || c == '/'; }) &&
               url.prefix.find("//") == url.prefix.npos && !url.prefix.starts_with('/');
  if (!named) return bad(text, "a bucket and a prefix are letters, digits, '.', '-', '_' and '/'");
  if (!url.prefix.empty()) url.prefix += '/';
  bool style_given = false;
  while (!options.empty()) {
    size_t end = std::min(options.find('&'), options.size());
    std::string_view one = options.substr(0, end);
    options.remove_prefix(std::min(end + 1, options.size()));
    size_t equals = std::min(one.find('='), one.size());
    std::string name(one.substr(0, equals));
    std::string value = TRY(decode(text, one.substr(std::min(equals + 1, one.size()))));
    style_given = style_given || name == "path_style";
    TRY(set(url, text, name, value));
  }
  if (url.region.empty()) url.region = environment("AWS_REGION");
  if (url.region.empty()) url.region = environment("AWS_DEFAULT_REGION");
  if (url.region.empty()) url.region = "us-east-1";
  if (!style_given) url.path_style = !url.endpoint.empty();
  if (url.endpoint.empty()) url.endpoint = "https://s3." + url.region + ".amazonaws.com";
  return url;
}

Result<S3Credentials> find_s3_credentials(const S3Url& url) {
  S3Credentials found;
  if (!url.credentials.empty()) {
    std::string content = TRY(base::read_file(url.credentials));
    found = {value_in(content, "aws_access_key_id"), value_in(content, "aws_secret_access_key"),
             value_in(content, "aws_session_token")};
  } else {
    found = {environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY"),
             environment("AWS_SESSION_TOKEN")};
  }
  if (!found.key_id.empty() && !found.secret.empty()) return found;
  return Error(ErrorCode::kPermission,
               "there are no credentials for bucket " + url.bucket +
                   "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a file with them by "
                   "credentials=FILE in the URL");
}

}  // namespace fs
