#include "team/model/cassette.h"

#include <algorithm>

namespace team {
namespace {

constexpr std::string_view kMark = "[redacted]";
constexpr size_t kKeyBytesMin = 16;

bool is_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.' || c == '+' || c == '/' || c == '=';
}

// Replaces what follows `prefix` as far as it looks like a key, when it is long enough to be one.
std::string redact_after(std::string text, std::string_view prefix, bool keep_prefix) {
  for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
    const bool inside_word = at > 0 && is_key_character(text[at - 1]) && !keep_prefix;
    size_t end = at + prefix.size();
    while (end < text.size() && is_key_character(text[end])) ++end;
    const size_t length = end - at - prefix.size();
    if (inside_word || length < kKeyBytesMin) {
      at = std::max(end, at + 1);
      continue;
    }
    const size_t from = keep_prefix ? at + prefix.size() : at;
    text.replace(from, end - from, kMark);
    at = from + kMark.size();
  }
  return text;
}

}  // namespace

std::string redact(std::string text, const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) {
    if (secret.empty()) continue;
    for (size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
      text.replace(at, secret.size(), kMark);
      at += kMark.size();
    }
  }
  text = redact_after(std::move(text), "Bearer ", true);
  for (const std::string_view prefix : {"sk-", "ghp_", "github_pat_", "xoxb-", "AKIA", "glpat-"}) {
    text = redact_after(std::move(text), prefix, false);
  }
  return text;
}

namespace {

std::string shown(const base::Json& json) {
  constexpr size_t kShownMax = 160;
  std::string text = json.dump();
  if (text.size() > kShownMax) {
    text.resize(kShownMax);
    text += "...";
  }
  return text;
}

// Two long strings: where they part, with a little of what comes before.
std::string text_difference(const std::string& wanted, const std::string& found) {
  constexpr size_t kContext = 40;
  constexpr size_t kShown = 120;
  const auto [w, f] = std::mismatch(wanted.begin(), wanted.end(), found.begin(), found.end());
  const auto at = static_cast<size_t>(w - wanted.begin());
  const size_t from = at > kContext ? at - kContext : 0;
  return "at byte " + std::to_string(at) + ": asked " +
         base::json_quote(wanted.substr(from, kShown)) + " | recorded " +
         base::json_quote(found.substr(from, kShown));
}

// The first difference as "path: what", or "".
std::string difference_at(const std::string& path, const base::Json& wanted,
                          const base::Json& found) {
  const std::string lead = path + (path.empty() ? "" : ": ");
  if (wanted == found) return "";
  if (wanted.is_string() && found.is_string()) {
    return path + " " + text_difference(wanted.as_string(), found.as_string());
  }
  if (wanted.is_object() && found.is_object()) {
    const std::string stem = path + (path.empty() ? "" : ".");
    for (const auto& [key, value] : wanted.members()) {
      if (!found.has(key)) return stem + key + ": asked " + shown(value) + " | not recorded";
      std::string inner = difference_at(stem + key, value, found[key]);
      if (!inner.empty()) return inner;
    }
    for (const auto& [key, value] : found.members()) {
      if (!wanted.has(key)) return stem + key + ": not asked | recorded " + shown(value);
    }
    return "";  // the order of members only
  }
  if (wanted.is_array() && found.is_array()) {
    const size_t common = std::min(wanted.size(), found.size());
    for (size_t i = 0; i < common; ++i) {
      std::string inner = difference_at(path + "[" + std::to_string(i) + "]", wanted[i], found[i]);
      if (!inner.empty()) return inner;
    }
    if (wanted.size() == found.size()) return "";
    return lead + "asked " + std::to_string(wanted.size()) + " items | recorded " +
           std::to_string(found.size()) + "; the first extra one is " +
           shown(wanted.size() > common ? wanted[common] : found[common]);
  }
  return lead + "asked " + shown(wanted) + " | recorded " + shown(found);
}

}  // namespace

std::string describe_difference(const base::Json& wanted, const base::Json& found) {
  return difference_at("", wanted, found);
}

}  // namespace team
