// The log of a workspace read as an audit trail: one event a change, with the path it was about as
// far as the kept log tells it. Single-threaded.
#pragma once

#include "base/result.h"
#include "fs/log/record.h"

#include <string>
#include <unordered_map>

namespace fs::cli {

struct Event {
  RecordHeader header;
  std::string path;      // "" when the log does not go back to the naming
  std::string old_path;  // rename
};

class AuditTrail {
 public:
  // Records in order, each once.
  base::Result<Event> read(const RecordHeader& header, std::string_view record);

 private:
  struct Place {
    Ino parent = 0;
    std::string name;
  };
  std::string path_of(Ino ino) const;
  std::string path_of(const Place& place) const;
  std::unordered_map<Ino, Place> places_;
};

}  // namespace fs::cli
