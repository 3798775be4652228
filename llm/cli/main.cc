// fleetlm: one program, many commands; each command is a file beside this one.
#include "llm/cli/commands.h"

#include <cstdio>
#include <cstring>

namespace {

constexpr const char* kHelp =
    "fleetlm: run and serve open language models on this machine.\n\n"
    "Usage: fleetlm COMMAND [options]\n\n"
    "  chat MODEL                 talk to a model in the terminal\n"
    "  run MODEL -p TEXT          complete a text\n"
    "  serve MODEL                serve it through the OpenAI API\n"
    "  info MODEL                 what a model holds\n"
    "  bench MODEL                measure it on this machine\n"
    "  pull URL TO                fetch a model; goes on where it was broken off\n"
    "  convert FOLDER TO.gguf     write a Hugging Face folder as a GGUF file\n"
    "  quantize FROM TO.gguf      rewrite a model with smaller weights\n\n"
    "MODEL is a GGUF file, the first part of a split one, or a Hugging Face folder.\n"
    "fleetlm COMMAND --help explains a command; --version prints the version.\n";

int usage(FILE* to, int code) {
  std::fputs(kHelp, to);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return usage(stderr, 2);
  const std::string_view name = argv[1];
  if (name == "--help" || name == "-h" || name == "help") return usage(stdout, 0);
  if (name == "--version") {
    std::puts("fleetlm 0.1.0");
    return 0;
  }
  for (const llm::Command& command : llm::commands()) {
    if (name == command.name) return command.run(argc - 1, argv + 1);
  }
  std::fprintf(stderr, "fleetlm: there is no command '%s'; see fleetlm --help\n", argv[1]);
  return 2;
}
