#include "team/report/page.h"

namespace team {

std::string escape_html(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string render_page(const std::string& run, const std::vector<Event>& events) {
  return "<!doctype html><title>" + escape_html(run) + "</title>" + std::to_string(events.size());
}

}  // namespace team
