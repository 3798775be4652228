#include "llm/template/chat.h"

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

namespace {

// Collects segments; `mark` for the template's text, `say` for everybody else's.
class Prompt {
 public:
  Prompt& mark(std::string_view text) { return add(text, true); }
  Prompt& say(std::string_view text) { return add(text, false); }
  std::vector<TextSegment> take() { return std::move(segments_); }

 private:
  Prompt& add(std::string_view text, bool special) {
    if (text.empty()) return *this;
    if (segments_.empty() || segments_.back().special != special)
      segments_.push_back({"", special});
    segments_.back().text += text;
    return *this;
  }
  std::vector<TextSegment> segments_;
};

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool has_tools(const ChatOptions& options) {
  return options.tools.is_array() && options.tools.size() > 0;
}

bool is_system(const ChatMessage& message) {
  return message.role == "system" || message.role == "developer";
}

// Tools as instructions in the system turn, calls as JSON between <tool_call> markers: the
// convention of ChatML models that were trained on calls.
std::string chatml_tools(const Json& tools) {
  std::string text =
      "\n\n# Tools\n\nYou may call one or more functions to help with the user's request.\n"
      "The functions, as JSON, are inside <tools></tools>:\n<tools>";
  for (const Json& tool : tools.items()) text += "\n" + tool.dump();
  return text +
         "\n</tools>\n\nTo call a function, answer with its name and arguments as JSON inside "
         "<tool_call></tool_call>:\n<tool_call>\n{\"name\": \"NAME\", \"arguments\": "
         "{}}\n</tool_call>";
}

std::vector<TextSegment> render_chatml(const std::vector<ChatMessage>& messages,
                                       const ChatOptions& options,
                                       const std::string& default_system) {
  Prompt prompt;
  const bool starts_with_system = !messages.empty() && is_system(messages[0]);
  std::string tools = has_tools(options) ? chatml_tools(options.tools) : "";
  auto system = [&](std::string_view text) {
    prompt.mark("<|im_start|>system\n").say(text).say(tools).mark("<|im_end|>\n");
    tools.clear();
  };
  if (!starts_with_system && (!default_system.empty() || !tools.empty())) system(default_system);
  for (const ChatMessage& message : messages) {
    if (is_system(message)) {
      system(message.content);
      continue;
    }
    const bool is_tool = message.role == "tool";
    prompt.mark("<|im_start|>").say(is_tool ? "user" : message.role).mark("\n");
    if (is_tool) {
      prompt.say("<tool_response>\n").say(message.content).say("\n</tool_response>");
    } else {
      prompt.say(message.content);
    }
    for (const ToolCall& call : message.tool_calls) {
      prompt.say("\n<tool_call>\n{\"name\": " + base::json_quote(call.name) +
                 ", \"arguments\": " + call.arguments + "}\n</tool_call>");
    }
    prompt.mark("<|im_end|>\n");
  }
  return prompt.mark("<|im_start|>assistant\n").take();
}

std::vector<TextSegment> render_llama3(const std::vector<ChatMessage>& messages,
                                       const std::string& default_system) {
  Prompt prompt;
  prompt.mark("<|begin_of_text|>");
  auto turn = [&](std::string_view role, std::string_view text) {
    prompt.mark("<|start_header_id|>").say(role).mark("<|end_header_id|>\n\n");
    prompt.say(trim(text)).mark("<|eot_id|>");
  };
  if (!default_system.empty() && (messages.empty() || !is_system(messages[0])))
    turn("system", default_system);
  for (const ChatMessage& message : messages) turn(message.role, message.content);
  return prompt.mark("<|start_header_id|>assistant<|end_header_id|>\n\n").take();
}

// Strings stand as they are, everything else as JSON.
std::string glm_value(const Json& value) {
  return value.is_string() ? value.as_string() : value.dump();
}

void glm_tools(const ChatOptions& options, Prompt* prompt) {
  prompt->mark("<|system|>")
      .say(
          "\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
          "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n");
  for (const Json& tool : options.tools.items()) {
    Json shown = tool.has("function") ? tool["function"] : tool;
    shown.remove("defer_loading");
    shown.remove("strict");
    prompt->say(shown.dump()).say("\n");
  }
  prompt->say(
      "</tools>\n\nFor each function call, output the function name and arguments within the "
      "following XML format:\n<tool_call>{function-name}<arg_key>{arg-key-1}</arg_key>"
      "<arg_value>{arg-value-1}</arg_value>...</tool_call>");
}

void glm_assistant(const ChatMessage& message, bool keep_reasoning, Prompt* prompt) {
  prompt->mark("<|assistant|><think>");
  if (keep_reasoning) prompt->say(trim(message.reasoning));
  prompt->mark("</think>").say(trim(message.content));
  for (const ToolCall& call : message.tool_calls) {
    prompt->mark("<tool_call>").say(call.name);
    const auto arguments = Json::parse(call.arguments);
    if (arguments.ok()) {
      for (const auto& [key, value] : arguments->members()) {
        prompt->mark("<arg_key>").say(key).mark("</arg_key><arg_value>").say(glm_value(value));
        prompt->mark("</arg_value>");
      }
    }
    prompt->mark("</tool_call>");
  }
}

std::vector<TextSegment> render_glm(const std::vector<ChatMessage>& messages,
                                    const ChatOptions& options) {
  Prompt prompt;
  prompt.mark("[gMASK]<sop>");
  if (options.thinking) {
    prompt.mark("<|system|>")
        .say(options.reasoning_effort == "high" ? "Reasoning Effort: High"
                                                : "Reasoning Effort: Max");
  }
  if (has_tools(options)) glm_tools(options, &prompt);
  size_t last_user = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role == "user") last_user = i;
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    if (message.role == "assistant") {
      glm_assistant(message, i > last_user || !options.clear_thinking, &prompt);
    } else if (message.role == "tool") {
      if (i == 0 || messages[i - 1].role != "tool") prompt.mark("<|observation|>");
      prompt.mark("<tool_response>").say(message.content).mark("</tool_response>");
    } else {
      prompt.mark(is_system(message) ? "<|system|>" : "<|user|>").say(message.content);
    }
  }
  prompt.mark(options.thinking ? "<|assistant|><think>" : "<|assistant|><think></think>");
  return prompt.take();
}

Result<std::string> content_text(const Json& content, const std::string& where) {
  if (content.is_string()) return content.as_string();
  if (content.is_null()) return std::string();
  if (!content.is_array()) {
    return Error(ErrorCode::kInvalidArgument,
                 where + ".content must be a string or a list of parts");
  }
  std::string text;
  for (const Json& part : content.items()) {
    if (part["type"].as_string() != "text") {
      return Error(ErrorCode::kInvalidArgument, where + ".content has a part that is not text");
    }
    text += part["text"].as_string();
  }
  return text;
}

}  // namespace

ChatTemplate ChatTemplate::detect(std::string_view text, const Tokenizer& tokenizer) {
  ChatTemplate result;
  const auto has = [&](std::string_view marker) {
    return text.find(marker) != std::string_view::npos ||
           (text.empty() && tokenizer.find_special(marker).has_value());
  };
  if (has("[gMASK]")) {
    result.style = ChatStyle::kGlm;
  } else if (has("<|start_header_id|>")) {
    result.style = ChatStyle::kLlama3;
  }
  // A system turn written out in the template is its default.
  constexpr std::string_view kOpening = "<|im_start|>system\n";
  const size_t at = text.find(kOpening);
  if (at != std::string_view::npos) {
    const std::string_view rest = text.substr(at + kOpening.size());
    const size_t end = rest.find("<|im_end|>");
    if (end != std::string_view::npos &&
        rest.substr(0, end).find_first_of("'{") == std::string_view::npos) {
      result.default_system = std::string(rest.substr(0, end));
    }
  }
  return result;
}

std::vector<TextSegment> ChatTemplate::render(const std::vector<ChatMessage>& messages,
                                              const ChatOptions& options) const {
  switch (style) {
    case ChatStyle::kGlm:
      return render_glm(messages, options);
    case ChatStyle::kLlama3:
      return render_llama3(messages, default_system);
    case ChatStyle::kChatMl:
      break;
  }
  return render_chatml(messages, options, default_system);
}

Result<std::vector<ChatMessage>> parse_messages(const Json& messages) {
  if (!messages.is_array() || messages.size() == 0) {
    return Error(ErrorCode::kInvalidArgument,
                 "'messages' must be a list with at least one message");
  }
  std::vector<ChatMessage> out;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json& item = messages[i];
    const std::string where = "messages[" + std::to_string(i) + "]";
    ChatMessage message;
    message.role = item["role"].as_string();
    if (message.role != "system" && message.role != "developer" && message.role != "user" &&
        message.role != "assistant" && message.role != "tool") {
      return Error(ErrorCode::kInvalidArgument,
                   where + ".role must be system, developer, user, assistant or tool");
    }
    message.content = TRY(content_text(item["content"], where));
    message.reasoning = item["reasoning_content"].as_string();
    message.tool_call_id = item["tool_call_id"].as_string();
    for (const Json& call : item["tool_calls"].items()) {
      const std::string& arguments = call["function"]["arguments"].as_string();
      message.tool_calls.push_back({call["id"].as_string(), call["function"]["name"].as_string(),
                                    arguments.empty() ? "{}" : arguments});
    }
    out.push_back(std::move(message));
  }
  return out;
}

}  // namespace llm
