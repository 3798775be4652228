// Splits a dot command into words: blanks separate, single quotes keep all, double quotes
// understand backslash escapes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace db::shell {

std::vector<std::string> words_of(std::string_view line);

// "\t" and kin in a separator given by the user.
std::string unescape(std::string_view text);

}  // namespace db::shell
