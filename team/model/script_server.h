// A model server that plays a script over real HTTP: OpenAI chat completions and Anthropic
// messages, streamed and not. It is how everything above the wire is tested without a model, and
// what `fleet script-server` runs.
//
// A script is JSON:
//   {"model": "scripted-1",
//    "rules": [{"when": {...}, "reply": {...}, "times": 1, "name": "first patch"}, ...],
//    "otherwise": {reply}}                          when no rule matches; without it: HTTP 400 that
//    says so
// `when` (all given keys must hold; none given: always):
//   "role": "coder"       the system text has a line "Role: coder"
//   "task": "T1"          any message has a line "Task: T1"
//   "turn": 2             assistant messages in the request so far
//   "system" | "user" | "any": RE2 expression searched in the system text | last user text | the
//   whole text "tool": "run"         the last message answers a call of this tool "tool_result":
//   regex  searched in the last tool result "model": "name"
// `times`: how often the rule may fire (absent: always). The first rule that matches and is not
// used up wins. `reply`:
//   "text", "reasoning": strings
//   "tools": [{"name": "read", "arguments": {...} | "raw text", "id": "call_1"}]
//   "usage": {"input": 100, "cached": 80, "output": 20, "reasoning": 0} | null   absent: counted
//   from bytes "stop": "length" | "content_filter" | "refusal" | any text                   absent:
//   what fits "delay_ms": 50        before the head;  "chunk_delay_ms": 5 between streamed pieces
//   "model_name": "other" echoed instead of the asked one
//   "fault": {"kind": ..., ...}    see ScriptFault in script.h
// Errors: kInvalidArgument names the rule and the key. Thread-safe.
#pragma once

#include "base/json.h"
#include "base/result.h"

#include <functional>
#include <memory>
#include <string>

namespace team {

class ScriptServer {
 public:
  struct Options {
    std::string host = "127.0.0.1";
    int port = 0;     // 0: any free one
    std::string key;  // when set, requests without it get 401
  };
  // One served request, for tests and for `fleet script-server`'s log.
  struct Served {
    std::string path;
    std::string rule;  // its name or "rule 3"; "otherwise"; "" when none matched
    int status = 0;
    base::Json request;
  };
  static base::Result<std::unique_ptr<ScriptServer>> start(const Options& options,
                                                           const base::Json& script);
  ~ScriptServer();

  int port() const;
  std::string url() const;  // "http://127.0.0.1:PORT"; OpenAI clients add /v1
  std::vector<Served> served() const;
  // Called after each request, on a server thread.
  void on_served(std::function<void(const Served&)> sink);
  void stop();

 private:
  struct Impl;
  explicit ScriptServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace team
