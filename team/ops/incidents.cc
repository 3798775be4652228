#include "team/ops/incidents.h"

#include <algorithm>
#include <cctype>

namespace team {
namespace {

constexpr size_t kFramesInSignature = 3;
constexpr size_t kWordsInSignature = 120;

// Numbers, addresses and quoted values change from one time to the next.
std::string without_values(const std::string& words) {
  std::string out;
  bool in_number = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto c = static_cast<unsigned char>(words[i]);
    const bool digit = std::isdigit(c) != 0;
    const bool hex = in_number && (std::isxdigit(c) != 0 || c == 'x');
    if (digit || hex) {
      if (!in_number) out += '#';
      in_number = true;
      continue;
    }
    in_number = false;
    if (c == '\n') break;
    out += static_cast<char>(c);
  }
  return out.substr(0, kWordsInSignature);
}

}  // namespace

std::string incident_signature(const std::string& kind, const CallStack& stack,
                               const std::string& words) {
  if (stack.empty()) return kind + "/" + without_values(words);
  std::string out = kind + "/crash";
  for (size_t i = 0; i < std::min(kFramesInSignature, stack.size()); ++i) {
    out += (i == 0 ? " in " : " < ") + stack[i];
  }
  return out;
}

Incident* IncidentBook::note(const std::string& signature, const std::string& text) {
  for (Incident& incident : incidents_) {
    if (incident.signature != signature) continue;
    ++incident.seen;
    if (!incident.resolved) return nullptr;
    incident.resolved = false;
    ++incident.opened;
    incident.text = text;
    return &incident;
  }
  incidents_.push_back({"I" + std::to_string(incidents_.size() + 1), signature, text});
  return &incidents_.back();
}

void IncidentBook::resolve(const std::string& id) {
  for (Incident& incident : incidents_) {
    if (incident.id == id) incident.resolved = true;
  }
}

}  // namespace team
