#include "team/report/sections.h"

#include "team/report/charts.h"
#include "team/report/html.h"
#include "team/report/story.h"

#include <algorithm>
#include <cstdio>

namespace team {
namespace {

using base::Json;

constexpr size_t kProfileBars = 6;

// Where the time went: one bar a function, self time dark, what it calls light.
std::string profile_bars(const Json& profile) {
  if (profile["entries"].size() == 0) {
    const std::string& why = profile["missing"].as_string();
    return why.empty() ? "" : "<p><small>no profile: " + escape_html(why) + "</small></p>";
  }
  std::string out = "<div class=bars>";
  for (size_t i = 0; i < std::min(kProfileBars, profile["entries"].size()); ++i) {
    const Json& e = profile["entries"][i];
    char text[220];
    std::snprintf(text, sizeof text,
                  "<span class=n>%.0f&thinsp;%%</span><span class=track><i style='width:%.1f%%' "
                  "class=total></i><i style='width:%.1f%%'></i></span>",
                  e["total"].as_double() * 100, e["total"].as_double() * 100,
                  e["self"].as_double() * 100);
    out += "<div><code>" + esc(e["function"]) + "</code>" + text + "</div>";
  }
  char text[120];
  std::snprintf(text, sizeof text,
                "</div><p><small>%lld samples of wall-clock time, %.0f %% waiting "
                "for work; dark: in the function itself</small></p>",
                static_cast<long long>(profile["samples"].as_int()),
                100.0 * static_cast<f64>(profile["waiting"].as_int()) /
                    static_cast<f64>(std::max<i64>(1, profile["samples"].as_int())));
  return out + text;
}

std::string deployment_row(const Entity& d) {
  const Json& f = d.facts;
  std::string beside = "nothing to compare with";
  const Json& verdict = f["canary_verdict"];
  if (verdict.is_object()) {
    beside =
        std::string(verdict["promote"].as_bool() ? "promoted beside " : "rolled back beside ") +
        esc(verdict["against"]) + ": " + esc(verdict["why"]);
  } else if (f.has("why")) {
    const std::string& why = f["why"].as_string();
    beside = escape_html(why.substr(0, why.find('\n')));
  }
  return "<tr>" + cell("", "<b>" + escape_html(d.id) + "</b> " + esc(f["artifact"]), "lead") +
         cell("canary", beside) +
         cell("served", f.has("operation") ? format_operation(f["operation"]) : "") +
         cell("", state_mark(d.state));
}

std::string faults_table(const RunState& state) {
  std::string out = "<table class=wide><tr><th>fault<th>what was seen<th class=n>back after<th>";
  for (const Entity* f : state.all("fault")) {
    std::string seen =
        f->facts.has("broke") ? f->facts["broke"].as_string() : f->facts["seen"].as_string();
    // Progress that a client redraws on one line: what stands at its end counts.
    while (!seen.empty() && (seen.back() == '\n' || seen.back() == '\r')) seen.pop_back();
    if (const size_t redrawn = seen.rfind('\r'); redrawn != std::string::npos) {
      seen.erase(0, redrawn + 1);
    }
    std::string html = escape_html(seen.substr(0, 200));
    if (f->facts["stack"].size() > 0) {
      std::string stack;
      for (const Json& frame : f->facts["stack"].items()) {
        stack += (stack.empty() ? "" : "\n") + frame.as_string();
      }
      html += "<details><summary>stack</summary><pre>" + escape_html(stack) + "</pre></details>";
    }
    const i64 back = f->facts["back_ms"].as_int();
    out += "<tr>" +
           cell("", "<b>" + escape_html(f->id) + "</b> " + esc(f->facts["title"]), "lead") +
           cell("seen", html, "mono") +
           cell("back after", back > 0 ? std::to_string(back) + " ms" : "", "n") +
           cell("", state_mark(f->state));
  }
  return out + "</table>";
}

std::string incidents(const RunState& state) {
  std::string out;
  for (const Entity* i : state.all("incident")) {
    out += "<div class=note><b>" + escape_html(i->id) + "</b> " + state_mark(i->state) + " " +
           escape_html(i->facts["text"].as_string().substr(0, 300)) +
           "<br><small>reproduced by gate <code>" + esc(i->facts["gate"]) +
           "</code>, which failed before the fix; mended by task " + esc(i->facts["task"]) +
           "; known by <code>" + esc(i->facts["signature"]) + "</code></small></div>";
  }
  return out;
}

}  // namespace

std::string experiments_section(const RunState& state) {
  auto all = state.all("experiment");
  if (all.empty()) return "";
  std::string out = "<h2>Performance experiments</h2><div class=scroll>" + interval_chart(all) +
                    "</div><div class=two>";
  for (const Entity* x : all) {
    const Json& f = x->facts;
    out += "<div class=note><b>" + escape_html(x->id) + "</b> " + state_mark(x->state) + " " +
           esc(f["idea"]) + "<div class=claim>bottleneck, says the coder: " + esc(f["bottleneck"]) +
           "</div>" + profile_bars(f["profile"]) + "<small>" + esc(f["why"]) + "</small></div>";
  }
  return out + "</div>";
}

std::string operation_section(const RunState& state) {
  auto deployments = state.all("deployment");
  if (deployments.empty()) return "";
  std::string out =
      "<h2>Operation</h2><table class=wide><tr><th>deployment<th>canary<th>served<th>";
  const Json* last = nullptr;
  for (const Entity* d : deployments) {
    out += deployment_row(*d);
    if (d->facts["operation"]["series"]["points"].size() > 1) last = &d->facts["operation"];
  }
  out += "</table>";
  if (last != nullptr) {
    out += "<div class=two><div><h3>Latency while faults were played</h3>" + latency_chart(*last) +
           "</div><div><h3>Memory and errors</h3>" + memory_chart(*last) + "</div></div>";
  }
  out += "<h3>Planned faults</h3>" + faults_table(state);
  std::string broke = incidents(state);
  if (!broke.empty()) out += "<h3>Incidents</h3>" + broke;
  out += "<h3>Artefacts</h3>";
  for (const Entity* a : state.all("artifact")) {
    out += "<p><b>" + escape_html(a->id) + "</b> " + state_mark(a->state) + " <code>" +
           escape_html(a->facts["hash"].as_string().substr(0, 24)) + "</code> <small>" +
           (a->facts["reproducible"].as_bool() ? "two clean builds gave the same bytes"
                                               : "two clean builds differ") +
           "</small></p>";
  }
  return out;
}

std::string decisions_section(const RunState& state) {
  if (state.all("decision").empty() && state.all("assumption").empty()) return "";
  std::string out = "<div class=two><div><h2>Decisions</h2>";
  for (const Entity* d : state.all("decision")) {
    out += "<p><b>" + escape_html(d->id) + "</b> " + esc(d->facts["question"]);
    if (const std::string now = revisited_as(*d); !now.empty()) {
      out += " <span class='pill warn'>" + (now == "open again" ? now : "reopened and " + now) +
             ": " + esc(d->facts["because"]) + "</span>";
      if (now == "changed") out += "<br><del>" + esc(d->facts["was"]) + "</del>";
    }
    out += "<br>" + esc(d->facts["choice"]) + " <small>of " + join_html(d->facts["options"]) +
           "; " + esc(d->facts["why"]) + "; reopens when " + esc(d->facts["trigger"]) +
           "</small></p>";
  }
  out += "</div><div><h2>Assumptions</h2>";
  for (const Entity* a : state.all("assumption")) {
    out += "<p><b>" + escape_html(a->id) + "</b> " + esc(a->facts["question"]) + "<br><small>" +
           esc(a->facts["choice"]) + "</small></p>";
  }
  return out + "</div></div>";
}

}  // namespace team
