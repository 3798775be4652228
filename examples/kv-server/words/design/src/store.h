// The data and the commands on it. No I/O: a change is also appended to `changes`, and the caller
// logs it before the reply is sent.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "resp.h"

namespace kv {

class Store {
 public:
  // Runs one command, writes its reply to `out`. Changes are added to `changes` in the form that
  // apply() takes: {"SET", key, value} or {"DEL", key}.
  void run(const Command& command, std::string& out, std::vector<Command>& changes);
  // Applies a change from the log.
  void apply(const Command& change);
  std::size_t size() const { return data_.size(); }

 private:
  std::unordered_map<std::string, std::string> data_;
};

}  // namespace kv
