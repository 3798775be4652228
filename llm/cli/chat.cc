// fleetlm chat and fleetlm run: answers in the terminal, streamed as they are computed.
#include "base/clock.h"
#include "llm/cli/commands.h"

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <iostream>

namespace llm {

namespace {

struct Answer {
  std::string text;
  Usage usage;
  FinishReason finish = FinishReason::kNone;
  std::string error;
  i64 first_us = 0;  // to the first piece
  i64 total_us = 0;
};

base::Result<Answer> generate(Session* session, GenerateRequest request) {
  Answer answer;
  const i64 start = base::system_clock().monotonic_us();
  request.sink = [&](Chunk&& chunk) {
    if (answer.first_us == 0) answer.first_us = base::system_clock().monotonic_us() - start;
    std::fwrite(chunk.text.data(), 1, chunk.text.size(), stdout);
    std::fflush(stdout);
    answer.text += chunk.text;
    answer.usage = chunk.usage;
    answer.finish = chunk.finish;
    answer.error = chunk.error;
  };
  TRY(session->engine->submit(std::move(request)));
  session->engine->run();
  answer.total_us = base::system_clock().monotonic_us() - start;
  if (answer.finish == FinishReason::kError) {
    return base::Error(base::ErrorCode::kLimit, answer.error);
  }
  return answer;
}

void print_speed(const Answer& a) {
  const f64 prefill = static_cast<f64>(a.first_us) / 1e6;
  const f64 decode = static_cast<f64>(a.total_us - a.first_us) / 1e6;
  std::fprintf(stderr,
               "prompt %d tokens (%d cached) in %.2f s; answer %d tokens at %.1f tokens/s; guessed "
               "%d, right %d\n",
               a.usage.prompt_tokens, a.usage.cached_tokens, prefill, a.usage.completion_tokens,
               decode > 0 ? (a.usage.completion_tokens - 1) / decode : 0.0, a.usage.drafted_tokens,
               a.usage.accepted_tokens);
}

}  // namespace

int run_run(int argc, char** argv) {
  CLI::App app("Completes a text, or answers one message with --chat.", "fleetlm run");
  ModelOptions model;
  SamplingOptions sampling;
  std::string prompt;
  bool chat = false;
  bool stats = false;
  model.add_to(&app);
  sampling.add_to(&app);
  app.add_option("-p,--prompt", prompt, "the text; '-' reads standard input")->required();
  app.add_flag("--chat", chat, "treat the text as a message to answer");
  app.add_flag("--stats", stats, "print speed on standard error");
  CLI11_PARSE(app, argc, argv);
  if (prompt == "-") prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
  auto session = open_session(model);
  if (!session.ok()) return fail(session.error());
  const Tokenizer& tokenizer = *(*session)->loaded.tokenizer;
  GenerateRequest request;
  if (chat) {
    ChatMessage message;
    message.role = "user";
    message.content = prompt;
    request.prompt = tokenizer.encode((*session)->chat.render({message}, {}));
  } else {
    if (tokenizer.add_bos() && tokenizer.bos()) request.prompt.push_back(*tokenizer.bos());
    const auto ids = tokenizer.encode(prompt, true);
    request.prompt.insert(request.prompt.end(), ids.begin(), ids.end());
  }
  request.max_tokens = sampling.max_tokens;
  request.sampling = sampling.params();
  const auto answer = generate(session->get(), std::move(request));
  if (!answer.ok()) return fail(answer.error());
  std::puts("");
  if (stats) print_speed(*answer);
  return 0;
}

int run_chat(int argc, char** argv) {
  CLI::App app("Talks to a model. /reset starts over, /exit or end of input leaves.",
               "fleetlm chat");
  ModelOptions model;
  SamplingOptions sampling;
  std::string system;
  bool stats = false;
  model.add_to(&app);
  sampling.add_to(&app);
  app.add_option("--system", system, "instructions that come first");
  app.add_flag("--stats", stats, "print speed after each answer");
  CLI11_PARSE(app, argc, argv);
  auto session = open_session(model);
  if (!session.ok()) return fail(session.error());
  std::vector<ChatMessage> messages;
  auto add = [&](std::string role, std::string content) {
    ChatMessage message;
    message.role = std::move(role);
    message.content = std::move(content);
    messages.push_back(std::move(message));
  };
  auto reset = [&] {
    messages.clear();
    if (!system.empty()) add("system", system);
  };
  reset();
  const bool terminal = ::isatty(0) != 0;
  for (std::string line;;) {
    if (terminal) std::fputs("> ", stdout), std::fflush(stdout);
    if (!std::getline(std::cin, line) || line == "/exit") break;
    if (line.empty()) continue;
    if (line == "/reset") {
      reset();
      continue;
    }
    add("user", line);
    GenerateRequest request;
    request.prompt = (*session)->loaded.tokenizer->encode((*session)->chat.render(messages, {}));
    request.max_tokens = sampling.max_tokens;
    request.sampling = sampling.params();
    const auto answer = generate(session->get(), std::move(request));
    if (!answer.ok()) return fail(answer.error());
    std::puts("");
    if (stats) print_speed(*answer);
    add("assistant", answer->text);
  }
  return 0;
}

}  // namespace llm
