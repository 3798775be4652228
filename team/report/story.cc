#include "team/report/story.h"

#include <cmath>
#include <cstdio>

namespace team {
namespace {

using base::Json;

std::string fraction(const Json& body) {
  return std::to_string(body["num"].as_int()) + "/" + std::to_string(body["denom"].as_int());
}

std::string first_line(const std::string& text, size_t length_max = 110) {
  std::string line = text.substr(0, text.find('\n'));
  return line.size() <= length_max ? line : line.substr(0, length_max - 3) + "...";
}

std::string seconds(i64 us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", static_cast<f64>(us) / 1e6);
  return text;
}

std::string list(const Json& items) {
  std::string out;
  for (const Json& item : items.items()) out += (out.empty() ? "" : ", ") + item.as_string();
  return out;
}

StoryLine line(Tone tone, std::string who, std::string text) {
  return {tone, std::move(who), std::move(text)};
}

std::optional<StoryLine> tell_stage(const Event& event) {
  const std::string& id = event.body["id"].as_string();
  if (event.type == "stage.started") return line(Tone::kStage, id, "");
  if (event.type == "stage.failed") return line(Tone::kBad, id, "stopped here");
  return std::nullopt;
}

std::optional<StoryLine> tell_criterion(const Event& event, const RunState& state) {
  const Json& body = event.body;
  const std::string& id = body["id"].as_string();
  if (event.type == "criterion.unbound") {
    return line(Tone::kPlain, id, body["text"].as_string());
  }
  if (event.type == "criterion.validated") {
    return line(Tone::kGood, id,
                "counts: its gates fail on the empty and on the do-nothing program");
  }
  const Entity* entity = state.find("criterion", id);
  bool held_out = entity != nullptr && entity->facts["visibility"].as_string() == "held_out";
  if (event.type == "criterion.failing" || event.type == "criterion.regressed") {
    std::string why = body.has("why") ? body["why"].as_string()
                                      : "gate " + body["gate"].as_string() + " " + fraction(body) +
                                            " (" + body["evidence"].as_string() + ")";
    return line(Tone::kBad, id, (held_out ? "held-out, not met: " : "not met: ") + why);
  }
  return std::nullopt;
}

std::optional<StoryLine> tell_task(const Event& event, const RunState& state) {
  const Json& body = event.body;
  const std::string& id = body["id"].as_string();
  if (event.type == "task.proposed") {
    std::string needs = list(body["needs"]);
    return line(Tone::kPlain, id,
                body["title"].as_string() + (needs.empty() ? "" : "  after " + needs));
  }
  if (event.type == "task.bounced") {
    return line(Tone::kWarn, id,
                "bounced back, rung " + std::to_string(body["rung"].as_int()) + ": " +
                    first_line(body["reason"].as_string(), 90));
  }
  if (event.type == "task.submitted" && body["refused"].size() > 0) {
    return line(Tone::kWarn, id,
                "changes outside its files were refused: " + list(body["refused"]));
  }
  if (event.type == "task.merged") {
    const Entity* task = state.find("task", id);
    std::string title = task == nullptr ? "" : task->facts["title"].as_string();
    return line(Tone::kGood, id,
                "merged as " + body["commit"].as_string().substr(0, 10) + "  " + title);
  }
  if (event.type == "task.split") {
    return line(Tone::kWarn, id, "cut into smaller tasks: " + list(body["into"]));
  }
  if (event.type == "task.escalated") {
    return line(Tone::kWarn, id, "the ladder ended: the decider must say what becomes of it");
  }
  if (event.type == "task.abandoned") {
    return line(Tone::kBad, id, "given up: the run goes on without it");
  }
  return std::nullopt;
}

std::optional<StoryLine> tell_evidence(const Event& event) {
  const Json& body = event.body;
  bool pass = body["verdict"].as_string() == "pass";
  std::string who = body["gate"].as_string();
  std::string text = body["verdict"].as_string() + " " + fraction(body) + "  " +
                     seconds(body["wall_us"].as_int()) + "  " + body["id"].as_string() + " on " +
                     body["tree"].as_string().substr(0, 8);
  bool held_out = body["visibility"].as_string() == "held_out";
  if (held_out) text += "  held-out";
  if (!pass && !held_out && !body["why"].as_string().empty()) {
    text += "  " + first_line(body["why"].as_string(), 60);
  }
  return line(pass ? Tone::kGood : Tone::kBad, who, text);
}

std::optional<StoryLine> tell_experiment(const Event& event) {
  const Json& body = event.body;
  const std::string& id = body["id"].as_string();
  if (event.type == "experiment.hypothesis") {
    const Json& top = body["profile"]["entries"][0];
    std::string where;
    if (!top["function"].as_string().empty()) {
      char share[32];
      std::snprintf(share, sizeof share, "%.0f %% of the time in ", top["self"].as_double() * 100);
      where = share + top["function"].as_string() + "; ";
    }
    return line(Tone::kPlain, id, where + "hypothesis: " + body["idea"].as_string());
  }
  bool kept = event.type == "experiment.kept";
  if (!kept && event.type != "experiment.rejected") return std::nullopt;
  if (!body.has("gain")) return line(Tone::kWarn, id, "rejected: " + body["why"].as_string());
  char text[200];
  std::snprintf(text, sizeof text, "%s: %s, 95 %% interval %s to %s, %s",
                kept ? "kept" : "rejected", format_percent(body["gain"].as_double()).c_str(),
                format_percent(body["low"].as_double()).c_str(),
                format_percent(body["high"].as_double()).c_str(), body["why"].as_string().c_str());
  return line(kept ? Tone::kGood : Tone::kWarn, id, text);
}

std::optional<StoryLine> tell_operation(const Event& event, const RunState& state) {
  const Json& body = event.body;
  const std::string& id = body["id"].as_string();
  if (event.type == "deployment.probing") {
    std::string text = "canary serves after " + std::to_string(body["ready_ms"].as_int()) + " ms";
    const Json& verdict = body["canary_verdict"];
    if (verdict["promote"].as_bool()) {
      text += "; beside " + verdict["against"].as_string() + " " + verdict["why"].as_string();
    }
    return line(Tone::kGood, id, text);
  }
  if (event.type == "deployment.serving" && body.has("operation")) {
    return line(Tone::kGood, id, "serves: " + format_operation(body["operation"]));
  }
  if (event.type == "deployment.rolled_back") {
    std::string why = body["why"].as_string();
    return line(Tone::kWarn, id, why.empty() ? "rolled back" : "rolled back: " + first_line(why));
  }
  if (event.type == "fault.survived" || event.type == "fault.broke") {
    const Entity* fault = state.find("fault", id);
    std::string title = fault == nullptr ? "" : fault->facts["title"].as_string();
    if (event.type == "fault.broke") {
      return line(Tone::kBad, id, title + ": " + first_line(body["broke"].as_string()));
    }
    std::string back = body["back_ms"].as_int() > 0
                           ? "  back after " + std::to_string(body["back_ms"].as_int()) + " ms"
                           : "";
    return line(Tone::kGood, id, title + back);
  }
  if (event.type == "incident.open") {
    return line(Tone::kBad, id, "incident: " + first_line(body["text"].as_string()));
  }
  if (event.type == "incident.task_filed") {
    return line(Tone::kWarn, id,
                "reproduced by gate " + body["gate"].as_string() + ", task " +
                    body["task"].as_string() + " filed");
  }
  if (event.type == "incident.resolved") return line(Tone::kGood, id, "resolved");
  if (event.type == "artifact.sealed") {
    return line(Tone::kGood, id,
                "sealed as " + body["hash"].as_string().substr(0, 12) +
                    (body["reproducible"].as_bool() ? ", built twice to the same bytes"
                                                    : ", two builds differ"));
  }
  if (event.type == "artifact.released") {
    return line(Tone::kGood, id, "released: " + body["deployment"].as_string() + " serves it");
  }
  return std::nullopt;
}

std::optional<StoryLine> tell_rest(const Event& event) {
  const Json& body = event.body;
  const std::string& id = body["id"].as_string();
  if (event.type == "intent.received")
    return line(Tone::kPlain, "intent", body["text"].as_string());
  if (event.type == "assumption.made") {
    return line(Tone::kPlain, id,
                body["question"].as_string() + "  -> " + body["choice"].as_string());
  }
  if (event.type == "spec.critiqued") {
    i64 blocking = body["blocking"].as_int();
    return line(
        blocking ? Tone::kWarn : Tone::kGood, "critique",
        std::to_string(body["findings"].size()) + " findings, " + std::to_string(blocking) +
            " blocking" +
            (blocking ? ": " + first_line(body["findings"][0]["text"].as_string(), 80) : ""));
  }
  if (event.type == "spec.frozen") {
    return line(Tone::kGood, "spec",
                "frozen, " + std::to_string(body["gates"].as_int()) + " gates sealed");
  }
  if (event.type == "decision.decided") {
    const std::string& choice = body["choice"].as_string();
    const std::string& was = body["was"].as_string();
    const std::string again = was.empty() ? "" : was == choice ? "kept: " : "changed: ";
    return line(again == "changed: " ? Tone::kWarn : Tone::kPlain, id,
                again + choice + "  (reopens when " + body["trigger"].as_string() + ")");
  }
  if (event.type == "decision.open" && body.has("task")) {
    return line(Tone::kWarn, id, "asks: " + first_line(body["question"].as_string()));
  }
  if (event.type == "answer.given") {
    const std::string& said = body["text"].as_string();
    std::string text = "a person answered";
    if (!said.empty()) text += ": " + first_line(said);
    if (body["without"].as_bool()) text += said.empty() ? ": go on without it" : " (without it)";
    return line(Tone::kPlain, id, text);
  }
  if (event.type == "decision.revisited") {
    return line(Tone::kWarn, id, "open again: " + body["because"].as_string());
  }
  if (event.type == "design.frozen") {
    return line(Tone::kGood, "design",
                std::to_string(body["files"].size()) + " contract files frozen");
  }
  if (event.type == "review.vetoed") {
    return line(Tone::kWarn, id, "vetoed: " + first_line(body["findings"][0]["text"].as_string()));
  }
  if (event.type == "mutant.killed" || event.type == "mutant.survived") {
    bool killed = event.type == "mutant.killed";
    return line(killed ? Tone::kGood : Tone::kBad, id,
                killed ? "mutant caught (" + body["evidence"].as_string() + ")"
                       : "mutant not noticed by any gate");
  }
  if (event.type == "note.aa") {
    return line(body["fit"].as_bool() ? Tone::kGood : Tone::kWarn, "A/A",
                body["fit"].as_bool() ? "no difference of the program to itself: fit to measure"
                                      : "the machine is too noisy to measure on: no experiments");
  }
  return std::nullopt;
}

std::optional<StoryLine> tell_end(const Event& event) {
  if (event.type == "run.met") {
    return line(Tone::kGood, "done", "every criterion is met, the product serves");
  }
  if (event.type == "run.unmet") {
    std::string unmet = list(event.body["unmet"]);
    return line(Tone::kBad, "unmet", unmet.empty() ? "the product does not serve" : unmet);
  }
  return std::nullopt;
}

}  // namespace

std::string format_percent(f64 ratio) {
  char text[32];
  std::snprintf(text, sizeof text, std::fabs(ratio) < 0.1 ? "%+.1f %%" : "%+.0f %%", ratio * 100);
  return text;
}

std::string revisited_as(const Entity& decision) {
  if (!decision.facts.has("because")) return "";
  if (decision.state == "revisited") return "open again";
  return decision.facts["was"] == decision.facts["choice"] ? "kept" : "changed";
}

std::string format_operation(const Json& operation) {
  char text[200];
  std::snprintf(text, sizeof text,
                "%lld answers, %lld errors, p50 %.2f ms, p99 %.2f ms, %.1f MB, %lld restarts",
                static_cast<long long>(operation["answers"].as_int()),
                static_cast<long long>(operation["errors"].as_int()),
                static_cast<f64>(operation["p50_us"].as_int()) / 1e3,
                static_cast<f64>(operation["p99_us"].as_int()) / 1e3,
                static_cast<f64>(operation["rss_max"].as_int()) / 1e6,
                static_cast<long long>(operation["restarts"].as_int()));
  return text;
}

std::optional<StoryLine> tell(const Event& event, const RunState& state) {
  std::string_view kind = kind_of(event);
  if (kind == "stage") return tell_stage(event);
  if (kind == "criterion") return tell_criterion(event, state);
  if (kind == "task") return tell_task(event, state);
  if (kind == "evidence") return tell_evidence(event);
  if (kind == "experiment") return tell_experiment(event);
  if (kind == "deployment" || kind == "fault" || kind == "incident" || kind == "artifact") {
    return tell_operation(event, state);
  }
  if (kind == "run") return tell_end(event);
  return tell_rest(event);
}

}  // namespace team
