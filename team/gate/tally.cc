#include "team/gate/tally.h"

#include "base/hash.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace team {
namespace {

// The next word of `text`, which is cut off it.
std::string_view take_word(std::string_view& text) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  text.remove_prefix(begin);
  const size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return word;
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

void Tally::complain(const std::string& sentence) {
  if (why_.empty()) why_ = sentence;
}

void Tally::take_line(std::string_view line) {
  if (spec_.parser != GateParser::kTap) return;
  if (line.starts_with("ok ")) {
    take_case(line.substr(3), true);
  } else if (line.starts_with("not ok ")) {
    take_case(line.substr(7), false);
  } else if (line.starts_with("metric ")) {
    std::string_view rest = line.substr(7);
    const std::string name(take_word(rest));
    f64 value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (!name.empty() && error == std::errc()) metrics_.emplace_back(name, value);
  }
}

// "ID reason", and as TAP writes it: "3 - ID reason", "ID # SKIP why".
void Tally::take_case(std::string_view rest, bool pass) {
  std::string_view id = take_word(rest);
  if (is_number(id) && rest.starts_with("- ")) {
    rest.remove_prefix(2);
    id = take_word(rest);
  }
  if (id.empty()) return;
  CaseResult result{std::string(id), pass, pass ? "" : std::string(rest)};
  if (pass && rest.find("# SKIP") != std::string_view::npos) {
    result.pass = false;
    result.reason = "skipped";
  }
  if (const auto [at, fresh] = index_.emplace(result.id, cases_.size()); !fresh) {
    cases_[at->second].pass = false;
    cases_[at->second].reason = "reported twice";
    complain("the case " + result.id + " was reported twice");
    return;
  }
  cases_.push_back(std::move(result));
}

void Tally::finish(int exit_code, bool timed_out, const std::string& ended_badly) {
  timed_out_ = timed_out;
  if (spec_.parser == GateParser::kExit) {
    const bool pass = exit_code == 0 && !timed_out;
    cases_ = {{spec_.id, pass, pass ? "" : ended_badly}};
    index_ = {{spec_.id, 0}};
  }
  if (timed_out) {
    complain("it did not end within " + std::to_string(spec_.limits.wall_ms) + " ms");
  }
  std::set<std::string> known(spec_.manifest.begin(), spec_.manifest.end());
  if (spec_.parser == GateParser::kExit && known.empty()) known.insert(spec_.id);
  for (const std::string& id : known) {
    if (index_.find(id) == index_.end()) {
      complain("the case " + id + " is on the manifest but was not reported");
    }
  }
  for (const CaseResult& one : cases_) {
    if (!known.empty() && known.count(one.id) == 0) {
      complain("the case " + one.id + " was reported but is not on the manifest");
    }
  }
  for (const CaseResult& one : cases_) {
    if (!one.pass) {
      complain(one.id + " failed" + (one.reason.empty() ? "" : ": " + one.reason));
    }
  }
  if (cases_.empty()) complain("no case was reported");
  if (exit_code != 0 && !timed_out) complain(ended_badly);
}

void Tally::write_to(Evidence& evidence) const {
  const std::set<std::string> known(spec_.manifest.begin(), spec_.manifest.end());
  std::vector<std::string> ids;
  for (const CaseResult& one : cases_) {
    ids.push_back(one.id);
    evidence.numerator += one.pass && (known.empty() || known.count(one.id) > 0);
  }
  std::sort(ids.begin(), ids.end());
  std::string list;
  for (const std::string& id : ids) list += id + "\n";
  evidence.list_hash = base::sha256_hex(list);
  evidence.denominator =
      static_cast<i64>(known.empty() ? std::max<size_t>(cases_.size(), 1) : known.size());
  evidence.cases = cases_;
  evidence.metrics.insert(evidence.metrics.end(), metrics_.begin(), metrics_.end());
  evidence.why = why_;
  evidence.verdict = why_.empty() ? Verdict::kPass
                     : timed_out_ ? Verdict::kTimeout
                                  : Verdict::kFail;
}

}  // namespace team
