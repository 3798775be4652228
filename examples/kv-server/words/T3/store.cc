#include "store.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace kv {
namespace {

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

bool to_integer(const std::string& text, long long& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  return std::to_string(value) == text;  // as Redis has it: no leading zeros, no "-0"
}

void wrong_arguments(std::string& out, const Command& command) {
  std::string name = command[0];
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  reply_error(out, "ERR wrong number of arguments for '" + name + "' command");
}

}  // namespace

void Store::run(const Command& command, std::string& out, std::vector<Command>& changes) {
  if (command.empty()) return;
  std::string name = upper(command[0]);
  std::size_t words = command.size();
  auto change = [&](Command c) {
    apply(c);
    changes.push_back(std::move(c));
  };
  if (name == "PING") {
    if (words == 1) reply_simple(out, "PONG");
    else if (words == 2) reply_bulk(out, command[1]);
    else wrong_arguments(out, command);
  } else if (name == "ECHO") {
    if (words == 2) reply_bulk(out, command[1]);
    else wrong_arguments(out, command);
  } else if (name == "SET") {
    if (words < 3) return wrong_arguments(out, command);
    if (words > 3) return reply_error(out, "ERR syntax error");
    change({"SET", command[1], command[2]});
    reply_simple(out, "OK");
  } else if (name == "GET") {
    if (words != 2) return wrong_arguments(out, command);
    auto at = data_.find(command[1]);
    if (at == data_.end()) reply_null(out);
    else reply_bulk(out, at->second);
  } else if (name == "DEL" || name == "EXISTS") {
    if (words < 2) return wrong_arguments(out, command);
    long long count = 0;
    for (std::size_t i = 1; i < words; ++i) {
      if (!data_.contains(command[i])) continue;
      ++count;
      if (name == "DEL") change({"DEL", command[i]});
    }
    reply_integer(out, count);
  } else if (name == "INCR") {
    if (words != 2) return wrong_arguments(out, command);
    long long value = 0;
    auto at = data_.find(command[1]);
    if (at != data_.end() && !to_integer(at->second, value)) {
      return reply_error(out, "ERR value is not an integer or out of range");
    }
    if (__builtin_add_overflow(value, 1, &value)) {
      return reply_error(out, "ERR increment or decrement would overflow");
    }
    change({"SET", command[1], std::to_string(value)});
    reply_integer(out, value);
  } else if (name == "DBSIZE") {
    if (words != 1) return wrong_arguments(out, command);
    reply_integer(out, static_cast<long long>(data_.size()));
  } else if (name == "CONFIG" || name == "COMMAND") {
    reply_empty_array(out);
  } else {
    std::string text =
        "ERR unknown command '" + command[0].substr(0, 128) + "', with args beginning with: ";
    for (std::size_t i = 1; i < words && text.size() < 128; ++i) {
      text += "'" + command[i].substr(0, 128) + "' ";
    }
    std::replace_if(text.begin(), text.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
    reply_error(out, text);
  }
}

void Store::apply(const Command& change) {
  if (change.size() == 3 && change[0] == "SET") data_[change[1]] = change[2];
  if (change.size() == 2 && change[0] == "DEL") data_.erase(change[1]);
}

}  // namespace kv
