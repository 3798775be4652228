// The agent loop against the script server, with the machine thrown away after every step.
#include "team/agent/machine.h"

#include "base/files.h"
#include "team/agent/session.h"
#include "team/model/http_model.h"
#include "team/model/script_server.h"

#include <gtest/gtest.h>

namespace team {
namespace {

using base::Json;

AgentConfig config_of() {
  AgentConfig config;
  config.role = "coder";
  config.model = "scripted-1";
  config.system_text = "Role: coder";
  config.pinned_text = "Task: T1\nwrite a.c";
  for (const char* name : {"read", "write", "run", "note", "submit", "give_up"}) {
    config.tools.push_back({name, "", *Json::parse(R"({"type":"object"})")});
  }
  return config;
}

// Answers from a list, without a wire.
class ListModel : public Model {
 public:
  explicit ListModel(std::vector<CallResult> answers) : answers_(std::move(answers)) {}
  CallResult complete(const ModelRequest& request, const DeltaSink&) override {
    requests.push_back(request);
    if (next_ < answers_.size()) return answers_[next_++];
    CallResult out;
    out.outcome = CallOutcome::kServerError;
    out.error = "the list is empty";
    return out;
  }
  std::vector<ModelRequest> requests;

 private:
  std::vector<CallResult> answers_;
  size_t next_ = 0;
};

CallResult says(std::string text, std::vector<ToolCall> calls = {},
                StopReason stop = StopReason::kEnd) {
  CallResult result;
  result.reply.message.role = Message::Role::kAssistant;
  result.reply.message.text = std::move(text);
  result.reply.message.tool_calls = std::move(calls);
  result.reply.stop = stop;
  return result;
}

CallResult fails(CallOutcome outcome) {
  CallResult result;
  result.outcome = outcome;
  result.error = "no";
  return result;
}

// Runs the machine; tools answer `tool`. State goes through JSON after every step.
AgentState drive(const AgentConfig& config, std::vector<CallResult> answers,
                 const std::function<ToolResult(const ToolCall&)>& tool,
                 std::vector<ModelRequest>* requests = nullptr) {
  ListModel model(std::move(answers));
  AgentState state = first_state(config);
  for (int step = 0; step < 500 && !state.ended(); ++step) {
    const AgentAction action = next_action(config, state, {});
    AgentResult result;
    if (action.kind == ActionKind::kInfer) result.call = model.complete(action.request, {});
    if (action.kind == ActionKind::kTool) result.tool = tool(action.call);
    apply(config, state, action, result);
    base::Result<AgentState> again = AgentState::from_json(*Json::parse(state.to_json().dump()));
    EXPECT_TRUE(again.ok());
    EXPECT_EQ(again->to_json().dump(), state.to_json().dump());
    state = std::move(*again);
  }
  if (requests != nullptr) *requests = model.requests;
  return state;
}

ToolResult simple_tool(const ToolCall& call) {
  ToolResult result;
  result.text = "result of " + call.name;
  if (call.name == "submit") result.end = AttemptEnd::kSubmitted;
  return result;
}

ToolCall call_of(const std::string& id, const std::string& name,
                 const std::string& arguments = "{}") {
  return {id, name, arguments};
}

TEST(Machine, RunsToolsInOrderAndEndsAtSubmit) {
  std::vector<ModelRequest> requests;
  const AgentState state = drive(
      config_of(),
      {says("", {call_of("1", "read"), call_of("2", "run")}), says("", {call_of("3", "submit")})},
      simple_tool, &requests);
  EXPECT_EQ(state.end, AttemptEnd::kSubmitted);
  EXPECT_EQ(state.end_text, "result of submit");
  EXPECT_EQ(state.turn, 2);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[1].messages[3].tool_call_id, "1");
  EXPECT_EQ(requests[1].messages[4].tool_call_id, "2");
}

TEST(Machine, TheRequestsPrefixIsByteStable) {
  std::vector<ModelRequest> requests;
  drive(config_of(),
        {says("", {call_of("1", "read", "{\"path\":\"a\"}")}), says("", {call_of("2", "run")}),
         says("", {call_of("3", "submit")})},
        simple_tool, &requests);
  for (size_t i = 1; i < requests.size(); ++i) {
    for (size_t m = 0; m < requests[i - 1].messages.size(); ++m) {
      EXPECT_EQ(requests[i].messages[m], requests[i - 1].messages[m]);
    }
  }
}

TEST(Machine, ANarratedCallIsNoCallAndThreeInARowEndTheAttempt) {
  const CallResult claim = says("I called submit, all tests pass.");
  EXPECT_EQ(drive(config_of(), {claim, claim, claim}, simple_tool).end, AttemptEnd::kBadFormat);
  EXPECT_EQ(drive(config_of(), {claim, claim, says("", {call_of("1", "submit")})}, simple_tool).end,
            AttemptEnd::kSubmitted);
}

TEST(Machine, MalformedCallsCountAsFormatErrorsAndGoodOnesForgive) {
  const CallResult bad = says("", {call_of("1", "read", "{\"path\": ")});
  const CallResult good = says("", {call_of("2", "read")});
  EXPECT_EQ(drive(config_of(), {bad, bad, bad}, simple_tool).end, AttemptEnd::kBadFormat);
  EXPECT_EQ(drive(config_of(), {bad, bad, good, bad, bad, says("", {call_of("3", "submit")})},
                  simple_tool)
                .end,
            AttemptEnd::kSubmitted);
}

TEST(Machine, RefusalTurnLimitBudgetAndCancelHaveEachTheirEnd) {
  AgentConfig config = config_of();
  EXPECT_EQ(drive(config, {says("I cannot help", {}, StopReason::kRefusal)}, simple_tool).end,
            AttemptEnd::kRefused);
  EXPECT_EQ(drive(config, {fails(CallOutcome::kServerError)}, simple_tool).end,
            AttemptEnd::kModelFailed);
  config.turns_max = 1;
  EXPECT_EQ(drive(config, {says("", {call_of("1", "read")})}, simple_tool).end,
            AttemptEnd::kTurnLimit);
  AgentState state = first_state(config);
  EXPECT_EQ(next_action(config, state, {.cancelled = true}).end, AttemptEnd::kCancelled);
  EXPECT_EQ(next_action(config, state, {.budget_out = true}).end, AttemptEnd::kBudgetOut);
}

TEST(Machine, GoingInCirclesIsNudgedThenResetThenEnded) {
  std::vector<CallResult> answers;
  for (int i = 0; i < 40; ++i) answers.push_back(says("", {call_of(std::to_string(i), "run")}));
  std::vector<ModelRequest> requests;
  const AgentState state = drive(config_of(), answers, simple_tool, &requests);
  EXPECT_EQ(state.end, AttemptEnd::kStalled);
  EXPECT_EQ(state.nudges, 1);
  EXPECT_EQ(state.resets, 1);
  EXPECT_EQ(requests.size(), 12u);
  EXPECT_NE(requests[4].messages.back().text.find("going in circles"), std::string::npos);
  EXPECT_EQ(requests[8].messages.size(), 3u);
  EXPECT_EQ(requests[8].messages[1].text, config_of().pinned_text);
}

TEST(Machine, FilesThatSwingBetweenTwoStatesAreNoticed) {
  std::vector<CallResult> answers;
  for (int i = 0; i < 5; ++i) {
    answers.push_back(
        says("", {call_of(std::to_string(i), "write", "{\"n\":" + std::to_string(i) + "}")}));
  }
  answers.push_back(says("", {call_of("s", "submit")}));
  int n = 0;
  const AgentState state = drive(config_of(), answers, [&](const ToolCall& call) {
    ToolResult result = simple_tool(call);
    result.mutated = call.name == "write";
    result.tree_hash = ++n % 2 == 0 ? "A" : "B";
    return result;
  });
  EXPECT_EQ(state.nudges, 1);
}

TEST(Machine, AFullContextElidesOldOutputsThenStartsAfreshWithNotesAndTheTask) {
  AgentConfig config = config_of();
  config.context_tokens_max = 5'200;
  config.output_tokens_max = 500;
  std::vector<CallResult> answers = {
      says("", {call_of("n", "note", "{\"note\":\"port is 7000\"}")})};
  for (int i = 0; i < 30; ++i) {
    answers.push_back(
        says("", {call_of(std::to_string(i), "run", "{\"n\":" + std::to_string(i) + "}")}));
  }
  answers.push_back(says("", {call_of("s", "submit")}));
  std::vector<ModelRequest> requests;
  const AgentState state = drive(
      config, answers,
      [](const ToolCall& call) {
        ToolResult result = simple_tool(call);
        if (call.name == "run") result.text = call.arguments + std::string(4'000, 'x');
        return result;
      },
      &requests);
  EXPECT_EQ(state.end, AttemptEnd::kSubmitted);
  EXPECT_GE(state.resets, 1);
  bool elided = false, handed_off = false;
  for (const ModelRequest& request : requests) {
    EXPECT_LE(request.input_tokens_estimate() + config.output_tokens_max,
              config.context_tokens_max);
    EXPECT_EQ(request.messages[1].text, config.pinned_text);
    for (const Message& message : request.messages) {
      elided = elided || message.text.find("left out to save room") != std::string::npos;
      handed_off = handed_off || message.text.find("- port is 7000") != std::string::npos;
    }
  }
  EXPECT_TRUE(elided);
  EXPECT_TRUE(handed_off);
}

TEST(Machine, AReportedOverflowLowersTheLimitAndCarriesOn) {
  AgentConfig config = config_of();
  const AgentState state =
      drive(config, {fails(CallOutcome::kContextOverflow), says("", {call_of("1", "submit")})},
            simple_tool);
  EXPECT_EQ(state.end, AttemptEnd::kSubmitted);
  EXPECT_GT(state.context_tokens_max, 0);
  EXPECT_LT(state.context_tokens_max, config.context_tokens_max);
  const CallResult overflow = fails(CallOutcome::kContextOverflow);
  EXPECT_EQ(drive(config, {overflow, overflow, overflow, overflow}, simple_tool).end,
            AttemptEnd::kModelFailed);
}

// End to end: real tools, real sandbox, the script server as the model.
TEST(Session, AScriptedCoderWritesCompilesAndSubmits) {
  const char* script = R"({"rules": [
    {"when": {"role": "coder", "task": "T1", "turn": 0}, "reply": {"tools": [
      {"name": "write", "arguments": {"path": "a.c", "content": "int main() { return 7; }\n"}}]}},
    {"when": {"tool": "write"}, "reply": {"tools": [
      {"name": "run", "arguments": {"command": "gcc a.c -o a && ./a"}}]}},
    {"when": {"tool": "run", "tool_result": "^exit status 7"}, "reply": {"tools": [
      {"name": "submit", "arguments": {"summary": "returns seven"}}]}}]})";
  const auto server = ScriptServer::start({}, *Json::parse(script)).value();
  base::TempDir dir;
  ASSERT_TRUE(base::make_directories(dir / "w").ok());
  const Workspace workspace = Workspace::open(dir / "w").value();
  const auto sandbox = Sandbox::open({}).value();
  ToolboxOptions options;
  options.tools = {"read", "write", "run", "submit"};
  Toolbox toolbox(workspace, *sandbox, options);
  AgentConfig config = config_of();
  config.tools = toolbox.specs();
  BackendConfig backend;
  backend.url = server->url() + "/v1";
  HttpTransport transport;
  RateGate gate(base::system_clock());
  HttpModel model(backend, transport, gate, base::system_clock(), 1);
  AgentSession session(config, model, toolbox, {}, first_state(config));
  ASSERT_TRUE(session.run().ok());
  EXPECT_EQ(session.state().end, AttemptEnd::kSubmitted) << session.state().end_text;
  EXPECT_EQ(session.state().end_text, "returns seven");
  EXPECT_GT(session.state().usage.input(), 0);
}

}  // namespace
}  // namespace team
