#include "team/report/report.h"

#include "team/report/page.h"
#include "team/report/story.h"

#include <gtest/gtest.h>

namespace team {
namespace {

using base::Json;

Event event(i64 seq, std::string type, Json body) {
  Event e;
  e.seq = seq;
  e.stream = "main";
  e.ver = seq;
  e.type = std::move(type);
  e.at_us = seq * 1'000'000;
  e.body = std::move(body);
  return e;
}

Event booked(i64 seq, const char* role, i64 output, i64 cost) {
  Usage usage;
  usage.in_fresh = 100;
  usage.out_text = output;
  return event(seq, "usage.booked",
               Json::object({{"call", std::to_string(seq)},
                             {"role", role},
                             {"usage", to_json(usage)},
                             {"cost_nusd", cost},
                             {"outcome", "ok"}}));
}

TEST(Cost, SharesAddUpToTheWholeAndTheDearestComesFirst) {
  RunState state;
  ASSERT_TRUE(state.apply(booked(1, "tester", 300, 30)).ok());
  ASSERT_TRUE(state.apply(booked(2, "coder", 600, 60)).ok());
  ASSERT_TRUE(state.apply(booked(3, "coder", 100, 10)).ok());
  auto table = cost_table(state, "role");
  ASSERT_TRUE(table.ok());
  ASSERT_EQ(table->rows.size(), 3u);
  EXPECT_EQ(table->rows[0].name, "coder");
  EXPECT_DOUBLE_EQ(table->rows[0].output_share, 0.7);
  EXPECT_EQ(table->rows[2].name, "total");
  EXPECT_EQ(table->rows[2].cost_nusd, 100);
  EXPECT_FALSE(cost_table(state, "colour").ok());
}

// What a model says ends up in the report; it must never become markup.
TEST(Page, WhatAModelSaysStaysText) {
  std::string evil = "<script>alert('x')</script><img src=x onerror=\"a\">";
  Json evil_profile = Json::object({{"samples", 3}});
  evil_profile.set("entries", Json::array({Json::object({{"function", evil}, {"self", 0.5}})}));
  std::vector<Event> events = {
      event(1, "run.started", Json::object({{"id", "r"}, {"recorded", true}})),
      event(2, "intent.received", Json::object({{"id", "intent"}, {"text", evil}})),
      event(3, "task.proposed", Json::object({{"id", "T1"}, {"title", evil}})),
      event(4, "criterion.unbound", Json::object({{"id", "C1"}, {"text", evil}})),
      event(5, "decision.open", Json::object({{"id", "D1"}, {"question", evil}})),
      event(6, "assumption.made", Json::object({{"id", "A1"}, {"choice", evil}})),
      event(7, "experiment.hypothesis",
            Json::object({{"id", "X1"}, {"idea", evil}, {"profile", evil_profile}})),
      event(8, "deployment.planned", Json::object({{"id", "D1"}, {"artifact", evil}})),
      event(9, "fault.injected", Json::object({{"id", evil}, {"title", evil}})),
      event(10, "fault.broke",
            Json::object({{"id", evil}, {"broke", evil}, {"stack", Json::array({evil})}})),
      event(11, "incident.open", Json::object({{"id", "I1"}, {"text", evil}, {"signature", evil}})),
  };
  std::string page = render_page(evil, events);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
}

TEST(Page, SaysThatTheModelsWordsWereRecordedAndLoadsNothingFromElsewhere) {
  std::string page =
      render_page("r", {event(1, "run.started", Json::object({{"id", "r"}, {"recorded", true}}))});
  EXPECT_NE(page.find("words are <b>recorded</b>"), std::string::npos);
  EXPECT_EQ(page.find("http://"), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
  EXPECT_EQ(page.find("<link"), std::string::npos);
}

// In HTML an unquoted value swallows the slash of "/>", and what follows becomes a child nobody
// sees.
TEST(Page, NoSelfClosingTagEndsInAnUnquotedValue) {
  std::vector<Event> events = {
      event(1, "run.started", Json::object({{"id", "r"}})),
      event(2, "task.proposed", Json::object({{"id", "T1"}, {"title", "a"}})),
      event(3, "task.proposed",
            Json::object({{"id", "T2"}, {"title", "b"}, {"needs", Json::array({"T1"})}})),
      event(4, "criterion.unbound", Json::object({{"id", "C1"}})),
      event(5, "experiment.hypothesis", Json::object({{"id", "X1"}, {"gain", 0.5}})),
      booked(6, "coder", 600, 60),
  };
  std::string page = render_page("r", events);
  size_t seen = 0;
  for (size_t at = page.find("/>"); at != std::string::npos; at = page.find("/>", at + 1), ++seen) {
    EXPECT_EQ(page[at - 1], '\'') << page.substr(at > 60 ? at - 60 : 0, 62);
  }
  EXPECT_GT(seen, 5u);
}

// A deployment as its monitor tells it: numbers in the table, points in both charts.
TEST(Page, ShowsHowAVersionServedAndWhatItWasComparedWith) {
  Json points = Json::array();
  for (i64 i = 0; i < 4; ++i) {
    points.push(Json::object({{"at_ms", i * 250},
                              {"answers", 9},
                              {"errors", i == 2 ? 1 : 0},
                              {"p50_us", 300 + i},
                              {"p99_us", 2'000},
                              {"rss", 4'000'000},
                              {"restarts", i == 2 ? 1 : 0}}));
  }
  Json operation = Json::object({{"answers", 36},
                                 {"errors", 1},
                                 {"p50_us", 301},
                                 {"p99_us", 2'000},
                                 {"rss_max", 4'000'000},
                                 {"restarts", 1}});
  operation.set("series", Json::object({{"stretch_ms", 250}, {"points", std::move(points)}}));
  Json verdict =
      Json::object({{"promote", true}, {"why", "not shown to be worse"}, {"against", "A1"}});
  std::vector<Event> events = {
      event(1, "deployment.planned", Json::object({{"id", "D2"}, {"artifact", "A2"}})),
      event(2, "deployment.starting", Json::object({{"id", "D2"}})),
      event(3, "deployment.probing", Json::object({{"id", "D2"}, {"canary_verdict", verdict}})),
      event(4, "deployment.serving", Json::object({{"id", "D2"}, {"operation", operation}})),
  };
  std::string page = render_page("r", events);
  EXPECT_NE(page.find("36 answers, 1 errors, p50 0.30 ms, p99 2.00 ms, 4.0 MB, 1 restarts"),
            std::string::npos);
  EXPECT_NE(page.find("promoted beside A1: not shown to be worse"), std::string::npos);
  EXPECT_NE(page.find("1 requests without a good answer"), std::string::npos);
  size_t restarts = 0;
  for (size_t at = page.find("<title>restarted"); at != std::string::npos;
       at = page.find("<title>restarted", at + 1)) {
    ++restarts;
  }
  EXPECT_EQ(restarts, 2u);  // one in each chart
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

TEST(Story, TellsWhatBecomesOfATaskThatTheLadderGaveUp) {
  const auto told = [](const char* type, const Json& body) {
    Event event;
    event.type = type;
    event.body = body;
    const auto line = tell(event, RunState());
    return line ? line->who + ": " + line->text : std::string("nothing");
  };
  EXPECT_EQ(told("task.split", Json::object({{"id", "T2"}, {"into", Json::array({"T2a", "T2b"})}})),
            "T2: cut into smaller tasks: T2a, T2b");
  EXPECT_EQ(told("task.abandoned", Json::object({{"id", "T2"}})),
            "T2: given up: the run goes on without it");
  EXPECT_EQ(told("decision.open",
                 Json::object({{"id", "T2.e1"}, {"task", "T2"}, {"question", "Which port?"}})),
            "T2.e1: asks: Which port?");
  EXPECT_EQ(told("decision.open", Json::object({{"id", "D1"}, {"question", "Which store?"}})),
            "nothing");
  EXPECT_EQ(
      told("answer.given", Json::object({{"id", "T2.e1"}, {"text", "7379"}, {"without", false}})),
      "T2.e1: a person answered: 7379");
  EXPECT_EQ(told("answer.given", Json::object({{"id", "T2.e1"}, {"text", ""}, {"without", true}})),
            "T2.e1: a person answered: go on without it");
}

TEST(Story, OfHeldOutFailuresTheCasesAreNotTold) {
  Json body = Json::object({{"id", "E1"},
                            {"gate", "composed"},
                            {"verdict", "fail"},
                            {"visibility", "held_out"},
                            {"why", "newline failed"},
                            {"num", 1},
                            {"denom", 2}});
  auto line = tell(event(1, "evidence.recorded", std::move(body)), RunState());
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->text.find("newline"), std::string::npos);
}

}  // namespace
}  // namespace team
