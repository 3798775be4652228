// What broke, once each: incidents are told apart by a signature that is the same for the same
// fault on another day. A crash is known by the functions on top of its stack; what left no stack,
// by its words without numbers and addresses. A signature that comes again after its incident was
// resolved opens that incident again. Thread-safe: plain values.
#pragma once

#include "base/json.h"
#include "team/sandbox/unwind.h"

#include <string>
#include <vector>

namespace team {

struct Incident {
  std::string id, signature, text;
  int seen = 1;
  int opened = 1;  // times; more than one when it came back after it was resolved
  bool resolved = false;
};

// `kind`: "input", "kill", "start", "canary" ...
std::string incident_signature(const std::string& kind, const CallStack& stack,
                               const std::string& words);

class IncidentBook {
 public:
  // The incident to work on, or nullptr when it is known and not resolved.
  Incident* note(const std::string& signature, const std::string& text);
  void resolve(const std::string& id);
  const std::vector<Incident>& all() const { return incidents_; }

 private:
  std::vector<Incident> incidents_;
};

}  // namespace team
