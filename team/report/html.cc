#include "team/report/html.h"

#include <cstdio>

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
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string esc(const base::Json& value) {
  return escape_html(value.as_string());
}

std::string join_html(const base::Json& items) {
  std::string out;
  for (const base::Json& item : items.items()) out += (out.empty() ? "" : ", ") + esc(item);
  return out;
}

std::string tone_of(std::string_view state) {
  for (std::string_view good :
       {"passing", "done", "merged", "kept", "killed", "survived", "resolved", "released", "met",
        "pass", "validated", "serving", "promoted"}) {
    if (state == good) return "good";
  }
  for (std::string_view bad :
       {"failing", "regressed", "escalated", "broke", "unmet", "failed", "fail"}) {
    if (state == bad) return "bad";
  }
  return "warn";
}

std::string state_mark(std::string_view state) {
  return "<span class='pill " + tone_of(state) + "'>" + escape_html(state) + "</span>";
}

std::string minutes_text(i64 us) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld:%02lld", static_cast<long long>(us / 60'000'000),
                static_cast<long long>(us / 1'000'000 % 60));
  return text;
}

std::string cell(std::string_view label, const std::string& html, std::string_view classes) {
  std::string out = "<td data-l='" + escape_html(label) + "'";
  if (!classes.empty()) out += " class='" + std::string(classes) + "'";
  return out + ">" + html;
}

}  // namespace team
