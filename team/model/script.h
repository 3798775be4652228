// The script of the script server as plain data and pure functions: which rule answers a request,
// and what that answer looks like on the wire. script_server.h describes the file. No I/O. Script
// is single-threaded (rules get used up); the wire functions are thread-safe.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "team/model/http_model.h"
#include "team/model/model.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace team {

// What can go wrong on the way back. A reply has a list of them, applied in order.
//   status      {status, body, content_type, headers}: this instead of the reply
//   stall       {after, ms}: silence after so many pieces of the stream
//   reset       {after}: the connection breaks after so many pieces
//   no_done     the stream ends without its end marker ({"finish": false}: without a finish reason
//   too) no_usage    tokens are not reported error       {after, message}: an error object inside
//   the stream duplicate   {after}: one piece comes twice        swap {after}: two pieces change
//   places split       {bytes}: pieces of so many bytes, through characters and lines crlf line
//   ends are CR LF                   comments: comment lines in between truncate    {bytes}: the
//   body, or the stream, ends there, politely raw         {body, content_type}: this text instead,
//   with status 200
struct ScriptFault {
  std::string kind;
  base::Json arguments;
};

struct ScriptReply {
  std::string text;
  std::string reasoning;
  i64 repeat = 1;  // the text so many times
  std::vector<ToolCall> tools;
  std::optional<Usage> usage;
  bool raw_usage = false;  // usage as given, plausible or not
  std::string stop;        // "": what fits
  std::string model_name;  // "": the asked one
  i64 delay_ms = 0;
  i64 chunk_delay_ms = 0;
  std::vector<ScriptFault> faults;
};

// A request of either protocol, as rules see it.
struct ScriptRequest {
  ApiKind api = ApiKind::kOpenAiChat;
  bool stream = false;
  bool stream_usage = false;
  std::string model;
  int turn = 0;
  std::string system;
  std::string last_user;
  std::string everything;
  std::string last_tool;  // "" unless the last message answers a tool call
  std::string last_tool_result;
  size_t bytes = 0;

  // Errors: kInvalidArgument with a sentence for the client.
  static base::Result<ScriptRequest> parse(ApiKind api, const base::Json& body);
};

class Script {
 public:
  static base::Result<Script> parse(const base::Json& json);
  Script(Script&&) noexcept;
  Script& operator=(Script&&) noexcept;
  ~Script();

  struct Answer {
    std::string rule;
    const ScriptReply* reply;
  };
  // nullopt: no rule matches and there is no "otherwise". Counts the rule's use.
  std::optional<Answer> answer(const ScriptRequest& request);
  const std::string& model() const;

 private:
  struct Impl;
  explicit Script(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A whole reply. `serial` makes its id.
base::Json render_reply(const ScriptRequest& request, const ScriptReply& reply, i64 serial);

// A streamed reply as pieces of SSE text, without faults. The last one is the end marker.
std::vector<std::string> render_stream(const ScriptRequest& request, const ScriptReply& reply,
                                       i64 serial);

// An error body in the protocol's shape.
base::Json render_error(ApiKind api, int status, const std::string& message);

}  // namespace team
