// Any template text and any conversation: an error, or a prompt whose special segments do not
// depend on what people wrote. Any answer can be taken apart, and in pieces as well as at once.
// Input: the template, a zero byte, the messages (JSON), a zero byte, an answer.
#include "base/check.h"
#include "llm/template/chat.h"
#include "llm/template/output_parser.h"

#include <algorithm>
#include <memory>
#include <string_view>

namespace {

std::unique_ptr<llm::Tokenizer> letters() {
  llm::Tokenizer::Spec spec;
  for (const char* text : {"a", "b", "<|im_start|>", "<|im_end|>", "<|user|>"}) {
    spec.tokens.emplace_back(text);
    spec.special.push_back(text[0] == '<');
  }
  return llm::Tokenizer::create(std::move(spec)).value();
}

std::string_view take(std::string_view* rest) {
  const std::size_t zero = std::min(rest->find('\0'), rest->size());
  const std::string_view part = rest->substr(0, zero);
  rest->remove_prefix(std::min(zero + 1, rest->size()));
  return part;
}

std::string special_text(const std::vector<llm::TextSegment>& segments) {
  std::string text;
  for (const llm::TextSegment& segment : segments) text += segment.special ? segment.text : "";
  return text;
}

struct Answer {
  std::string content, reasoning;
  std::size_t calls = 0;
  void add(const llm::OutputParser::Delta& delta) {
    content += delta.content;
    reasoning += delta.reasoning;
    calls += delta.calls.size();
  }
};

Answer parse(std::string_view text, std::size_t step, const llm::OutputParser::Options& options) {
  llm::OutputParser parser(options);
  Answer answer;
  for (std::size_t at = 0; at < text.size(); at += step) {
    answer.add(parser.feed(text.substr(at, step)));
  }
  answer.add(parser.finish());
  return answer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::unique_ptr<llm::Tokenizer> tokenizer = letters();
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto chat = llm::ChatTemplate::detect(take(&rest), *tokenizer);
  const auto json = base::Json::parse(take(&rest), {.depth_max = 16});
  llm::OutputParser::Options parsing;
  parsing.style = chat.style;
  if (json.ok()) parsing.tools = *json;
  for (const bool reasoning : {false, true}) {
    parsing.starts_in_reasoning = reasoning;
    const Answer whole = parse(rest, rest.size() + 1, parsing);
    const Answer pieces = parse(rest, 3, parsing);
    CHECK(whole.content == pieces.content && whole.reasoning == pieces.reasoning);
    CHECK(whole.calls == pieces.calls);
  }
  if (!json.ok()) return 0;
  const auto messages = llm::parse_messages(*json);
  if (!messages.ok()) return 0;
  auto others = *messages;
  for (llm::ChatMessage& message : others) message.content = "x";
  llm::ChatOptions options;
  options.tools = *json;
  for (const bool thinking : {false, true}) {
    options.thinking = thinking;
    CHECK(special_text(chat.render(*messages, options)) ==
          special_text(chat.render(others, options)));
  }
  return 0;
}
