#include "team/report/page.h"

#include "team/core/run_state.h"
#include "team/report/charts.h"
#include "team/report/html.h"
#include "team/report/report.h"
#include "team/report/sections.h"
#include "team/report/story.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace team {
namespace {

using base::Json;

std::string card(const std::string& big, const std::string& small) {
  return "<div class=card><b>" + big + "</b><small>" + small + "</small></div>";
}

class Page {
 public:
  Page(const std::string& run, const std::vector<Event>& events) : run_(run), events_(events) {
    for (const Event& event : events) (void)state_.apply(event);
    for (const Entity* m : state_.all("mutant")) {
      const Entity* by = state_.find("evidence", m->facts["evidence"].as_string());
      if (by != nullptr) mutants_.insert(by->facts["tree"].as_string());
    }
  }

  std::string render() {
    std::string body = head() + stages() + acceptance() + tasks() + gates() + cost() +
                       experiments_section(state_) + operation_section(state_) +
                       decisions_section(state_) + story();
    return "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
           "content=\"width=device-width,initial-scale=1\"><title>fleet: " +
           escape_html(run_) + "</title><style>" + std::string(page_style()) + "</style><main>" +
           body + "</main></html>\n";
  }

 private:
  std::string head() {
    const Entity* intent = state_.find("intent", "intent");
    auto runs = state_.all("run");
    std::string how = runs.empty() ? "not started" : runs[0]->state;
    bool recorded = !runs.empty() && runs[0]->facts["recorded"].as_bool();
    std::string out = "<small>fleet run " + escape_html(run_) + "</small><h1>" +
                      (intent ? esc(intent->facts["text"]) : "no intent") + "</h1><p>";
    out += "<span class=label>" + state_mark(how) + "</span>";
    out +=
        recorded
            ? "<span class=label>the model's words are <b>recorded</b>; files, builds, sandboxes, "
              "tests, measurements and crashes are real</span>"
            : "<span class=label>model: " +
                  (runs.empty() ? std::string() : esc(runs[0]->facts["model"])) + "</span>";
    i64 start = events_.empty() ? 0 : events_.front().at_us;
    i64 passing = 0;
    auto criteria = state_.all("criterion");
    for (const Entity* c : criteria) passing += c->state == "passing";
    out += "</p><div class=cards>" +
           card(std::to_string(passing) + "/" + std::to_string(criteria.size()), "criteria met") +
           card(std::to_string(state_.all("evidence").size()), "gate runs") +
           card(std::to_string(state_.usage().size()), "model calls") +
           card(format_usd(state_.spent_nusd()), "spent") +
           card(minutes_text(state_.last_us() - start), "minutes") +
           card(std::to_string(state_.last_seq()), "ledger events") + "</div>";
    return out;
  }

  std::string stages() {
    std::string out = "<div class=stages>";
    for (const char* name : {"converge", "design", "plan", "build", "verify", "operate"}) {
      const Entity* s = state_.find("stage", name);
      out += std::string("<div><b>") + name + "</b>" +
             (s == nullptr ? "<small>not reached</small>"
                           : state_mark(s->state) + " <small>" +
                                 minutes_text(s->last_us - s->first_us) + "</small>") +
             "</div>";
    }
    return out + "</div>";
  }

  // The last evidence of a gate, as a small chip with both numbers.
  std::string chip(const std::string& gate) {
    const Entity* last = nullptr;
    for (const Entity* e : state_.all("evidence")) {
      if (e->facts["gate"].as_string() == gate && mutants_.count(e->facts["tree"].as_string()) == 0)
        last = e;
    }
    if (last == nullptr) return "<span class=chip>" + escape_html(gate) + "</span> ";
    const Json& f = last->facts;
    const bool held = f["visibility"].as_string() == "held_out";
    return "<span class='chip " + tone_of(f["verdict"].as_string()) + (held ? " held" : "") +
           "' title='" + escape_html(last->id) + ", " + esc(f["kind"]) + "'>" + escape_html(gate) +
           " " + std::to_string(f["num"].as_int()) + "/" + std::to_string(f["denom"].as_int()) +
           "</span> ";
  }

  std::string acceptance() {
    std::string out =
        "<h2>Acceptance</h2><table class=wide><tr><th>criterion<th>gates, last evidence<th>";
    for (const Entity* c : state_.all("criterion")) {
      std::string checks, chips;
      for (const Json& check : c->facts["checks"].items()) {
        std::string on = esc(check["on"]);
        if (checks.find(on) == std::string::npos) checks += (checks.empty() ? "" : " and ") + on;
      }
      for (const Json& gate : c->facts["gates"].items()) chips += chip(gate.as_string());
      if (!checks.empty()) chips += "<br><small>seen to fail on " + checks + "</small>";
      out += "<tr>" +
             cell("", "<b>" + escape_html(c->id) + "</b> " + esc(c->facts["text"]), "lead") +
             cell("", chips) + cell("", state_mark(c->state));
    }
    return out + "</table><div class=two><div><h2>Acceptance over time</h2>" +
           acceptance_curve(events_) + "</div><div><h2>Honesty</h2>" + honesty() + "</div></div>" +
           mutants();
  }

  // Visible and held-out pass rates of every tree that was judged, and mutants.
  std::string honesty() {
    std::string out = "<table><tr><th>tree<th class=n>visible<th class=n>held out";
    for (const Event& e : events_) {
      if (e.type != "note.acceptance") continue;
      const Json& b = e.body;
      auto rate = [&](const char* num, const char* denom) {
        return std::to_string(b[num].as_int()) + "/" + std::to_string(b[denom].as_int());
      };
      out += "<tr><td class=mono>" + escape_html(b["tree"].as_string().substr(0, 8)) +
             "<td class=n>" + rate("visible_num", "visible_denom") + "<td class=n>" +
             rate("held_out_num", "held_out_denom");
    }
    return out +
           "</table><p><small>Two numbers far apart would mean that the visible tests were "
           "learned by heart.</small></p>";
  }

  // Wrong versions on purpose: gates that do not notice them are worth nothing.
  std::string mutants() {
    auto all = state_.all("mutant");
    if (all.empty()) return "";
    std::string out = "<h2>Seeded mutants</h2><table class=wide><tr><th>mutant<th>criterion<th>";
    for (const Entity* m : all) {
      out += "<tr>" +
             cell("", "<b>" + escape_html(m->id) + "</b> " + esc(m->facts["why"]), "lead") +
             cell("criterion", esc(m->facts["criterion"])) + cell("", state_mark(m->state));
    }
    return out + "</table>";
  }

  std::string tasks() {
    if (state_.all("task").empty()) return "";
    std::string out =
        "<h2>Tasks</h2><div class=scroll>" + task_graph(state_) +
        "</div><table class=wide><tr><th>task<th>touches<th>covers<th class=n>attempts<th>";
    for (const Entity* t : state_.all("task")) {
      int attempts = 0;
      for (const Entity* a : state_.all("attempt"))
        attempts += a->facts["task"].as_string() == t->id;
      out += "<tr><td data-l='' class=lead><b>" + escape_html(t->id) + "</b> " +
             esc(t->facts["title"]);
      if (t->facts.has("reason")) {
        out += "<div class='claim warn'>bounced: " +
               escape_html(t->facts["reason"].as_string().substr(0, 160)) + "</div>";
      }
      if (t->facts.has("claim")) {
        out += "<div class=claim>the coder says: " + esc(t->facts["claim"]) + "</div>";
      }
      out += cell("touches", join_html(t->facts["touches"]), "mono") +
             cell("covers", join_html(t->facts["covers"])) +
             cell("attempts", std::to_string(attempts), "n") + cell("", state_mark(t->state));
    }
    return out + "</table>";
  }

  // One row a gate, one column a tree, in the order they were run.
  std::string gates() {
    std::vector<std::string> trees, names;
    auto evidence = state_.all("evidence");
    auto note = [](std::vector<std::string>& list, const std::string& name) {
      if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
    };
    for (const Entity* e : evidence) {
      note(trees, e->facts["tree"].as_string());
      note(names, e->facts["gate"].as_string());
    }
    std::string out = "<h2>Gates by tree</h2><div class=scroll><table class=grid>";
    for (const std::string& name : names) {
      out += "<tr><td class=h>" + escape_html(name);
      for (const std::string& tree : trees) {
        const Entity* last = nullptr;
        for (const Entity* e : evidence) {
          if (e->facts["gate"].as_string() == name && e->facts["tree"].as_string() == tree)
            last = e;
        }
        if (last == nullptr) {
          out += "<td><span class=cell style='opacity:.35'></span>";
          continue;
        }
        const Json& f = last->facts;
        bool held = f["visibility"].as_string() == "held_out";
        out += std::string("<td><span class='cell ") +
               (f["verdict"].as_string() == "pass" ? "pass" : "fail") + (held ? " held" : "") +
               "' title='" + escape_html(last->id) + ": " + std::to_string(f["num"].as_int()) +
               "/" + std::to_string(f["denom"].as_int()) + " on " + escape_html(tree.substr(0, 8)) +
               "'></span>";
      }
    }
    return out +
           "</table></div><p><small>Red columns on the way are mutants, and the failures that were "
           "bounced. Outlined: held out. Hover for the evidence.</small></p>";
  }

  std::string cost() {
    std::string out = "<h2>Tokens and cost</h2><div class=two><div>";
    auto by_role = cost_table(state_, "role");
    auto by_stage = cost_table(state_, "stage");
    if (!by_role.ok() || !by_stage.ok()) return "";
    out += share_bar(*by_role) + table_of(*by_role, "role") + "</div><div>" + share_bar(*by_stage) +
           table_of(*by_stage, "stage") + "</div></div>";
    return out;
  }

  static std::string table_of(const CostTable& table, const char* by) {
    std::string out = std::string("<table><tr><th>") + by +
                      "<th class='n opt'>calls<th class='n opt'>input<th class='n opt'>cached<th "
                      "class=n>output<th "
                      "class=n>share<th class=n>cost";
    for (const CostRow& row : table.rows) {
      char text[200];
      std::snprintf(text, sizeof text,
                    "<td class='n opt'>%lld<td class='n opt'>%lld<td class='n opt'>%.0f %%<td "
                    "class=n>%lld<td "
                    "class=n>%.1f %%<td class=n>%s",
                    static_cast<long long>(row.calls), static_cast<long long>(row.usage.input()),
                    100 * row.cached_share(), static_cast<long long>(row.usage.output()),
                    100 * row.output_share, format_usd(row.cost_nusd).c_str());
      out += "<tr><td>" + escape_html(row.name) + text;
    }
    return out + "</table>";
  }

  std::string story() {
    std::string out = "<h2>The whole story</h2><div class=story>";
    RunState state;
    i64 start = events_.empty() ? 0 : events_.front().at_us;
    for (const Event& event : events_) {
      (void)state.apply(event);
      auto line = tell(event, state);
      if (!line) continue;
      const char* style = line->tone == Tone::kGood    ? "good"
                          : line->tone == Tone::kBad   ? "bad"
                          : line->tone == Tone::kWarn  ? "warn"
                          : line->tone == Tone::kStage ? "name"
                                                       : "soft";
      out += "<div class=" + std::string(line->tone == Tone::kStage ? "stage" : "line") +
             "><small>" + minutes_text(event.at_us - start) + "</small><span class=" + style + ">" +
             escape_html(line->who) + "</span><span>" + escape_html(line->text) + "</span></div>";
    }
    return out + "</div>";
  }

  const std::string& run_;
  const std::vector<Event>& events_;
  RunState state_;
  std::set<std::string> mutants_;  // trees of seeded mutants, which shall fail
};

}  // namespace

std::string render_page(const std::string& run, const std::vector<Event>& events) {
  return Page(run, events).render();
}

}  // namespace team
