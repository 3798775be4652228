// Small pieces of HTML that the report's sections share. What comes from a model or a product is
// always escaped here or by the caller. Thread-safe: pure functions.
#pragma once

#include "base/json.h"

#include <string>
#include <string_view>

namespace team {

std::string escape_html(std::string_view text);
std::string esc(const base::Json& value);        // its text, escaped
std::string join_html(const base::Json& items);  // "a, b", each escaped
// good | bad | warn: how a state of any entity is shown.
std::string tone_of(std::string_view state);
std::string state_mark(std::string_view state);  // a coloured pill
std::string minutes_text(i64 us);                // "1:05"
// A cell of a table that becomes a labelled line on narrow screens.
std::string cell(std::string_view label, const std::string& html, std::string_view classes = "");

}  // namespace team
