#include "db/capi/uri.h"

namespace db::capi {
namespace {

int hex_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_of(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_of(text[i + 2]) : -1;
    if (low >= 0) {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

int apply_mode(sqlite3* db, std::string_view mode, OpenOptions& options) {
  if (mode == "ro") {
    options.read_only = true;
    options.create = false;
  } else if (mode == "rw" || mode == "rwc") {
    if (options.read_only)
      return fail(db, SQLITE_PERM, "access mode not allowed: " + std::string(mode));
    options.create = mode == "rwc";
  } else if (mode == "memory") {
    options.memory = true;
  } else {
    return fail(db, SQLITE_ERROR, "no such access mode: " + std::string(mode));
  }
  return SQLITE_OK;
}

int apply_parameter(sqlite3* db, const std::string& key, const std::string& value,
                    OpenOptions& options) {
  if (key == "mode") return apply_mode(db, value, options);
  if (key == "cache" && value != "shared" && value != "private") {
    return fail(db, SQLITE_ERROR, "no such cache mode: " + value);
  }
  if (key == "vfs" && value != "unix") return fail(db, SQLITE_ERROR, "no such vfs: " + value);
  return SQLITE_OK;  // others are for the application
}

}  // namespace

int apply_uri(sqlite3* db, std::string& name, OpenOptions& options) {
  std::string_view rest = std::string_view(name).substr(5);
  rest = rest.substr(0, rest.find('#'));
  std::string_view query;
  if (const size_t mark = rest.find('?'); mark != std::string_view::npos) {
    query = rest.substr(mark + 1);
    rest = rest.substr(0, mark);
  }
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    const size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view authority = rest.substr(0, slash);
    if (!authority.empty() && authority != "localhost") {
      return fail(db, SQLITE_ERROR, "invalid uri authority: " + std::string(authority));
    }
    rest.remove_prefix(slash);
  }
  std::string path = decode(rest);
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string value = equals < pair.size() ? decode(pair.substr(equals + 1)) : "";
    const int code = apply_parameter(db, decode(pair.substr(0, equals)), value, options);
    if (code != SQLITE_OK) return code;
  }
  name = std::move(path);
  return SQLITE_OK;
}

}  // namespace db::capi
