// fleet: one sentence in, verified and running software out. This file only reads the command line.
#include "team/cli/commands.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <functional>

namespace {

using team::CommandOptions;
using Command = std::function<base::Result<int>(const CommandOptions&)>;

class CommandLine {
 public:
  CommandLine() {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", "fleet 0.1.0");
    app_.footer(
        "Exit codes: 0 met, 2 criteria unmet, 3 budget, 4 needs a person, 5 surroundings unfit, "
        "6 ledger damaged.\nRuns live in .fleet/runs, or in $FLEET_HOME/runs.");
    add_doing();
    add_looking();
    add_tools();
  }

  int run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::RequiredError& error) {
      // Nothing was asked for, or something that is not there.
      const std::string asked = argc > 1 ? argv[1] : "";
      const auto named = [&](const CLI::App* sub) { return sub->get_name() == asked; };
      if (argc > 1 && asked.rfind('-', 0) != 0 && app_.get_subcommands(named).empty()) {
        std::fprintf(stderr, "fleet: there is no command '%s'; see fleet --help\n", asked.c_str());
      } else if (argc > 1) {
        app_.exit(error);
      } else {
        std::fprintf(stderr, "%s", app_.help().c_str());
      }
      return team::kExitUnfit;
    } catch (const CLI::ParseError& error) {
      int code = app_.exit(error);
      return code == 0 ? 0 : team::kExitUnfit;
    }
    auto result = chosen_(options_);
    if (result.ok()) return *result;
    std::fprintf(stderr, "fleet: %s\n", result.error().message().c_str());
    return team::exit_code_of(result.error());
  }

 private:
  CLI::App* add(CLI::App& parent, const char* name, const char* what, Command command) {
    CLI::App* sub = parent.add_subcommand(name, what);
    sub->add_flag("--json", options_.json, "one JSON document on standard output");
    sub->callback([this, command] { chosen_ = command; });
    return sub;
  }
  CLI::App* add_on_run(const char* name, const char* what, Command command) {
    CLI::App* sub = add(app_, name, what, std::move(command));
    sub->add_option("--run", options_.run, "name or folder of the run; absent: the newest");
    return sub;
  }

  void add_doing() {
    CLI::App* fresh = add_on_run("new", "make a run, do not start it", team::command_new);
    CLI::App* run = add_on_run("run", "start a new run, or resume one", team::command_run);
    for (CLI::App* sub : {fresh, run}) {
      sub->add_option("intent", options_.intent, "what to build, in one sentence");
      sub->add_option("--example", options_.example, "an example with its recorded team");
      sub->add_option("--config", options_.config, "settings; absent: fleet.json here, if any");
      auto* record = sub->add_option("--record", options_.record, "keep the model's words in FILE");
      sub->add_option("--replay", options_.replay, "the words of FILE instead of a model")
          ->excludes(record);
      sub->add_flag("--strict", options_.strict, "with --replay: what is left over is an error");
      sub->add_flag("--quiet", options_.quiet, "nothing but the end");
    }
    add_on_run("replay", "run the code over the record and compare", team::command_replay);
    add(app_, "fork", "a new run from RUN@SEQ", team::command_fork)
        ->add_option("point", options_.id, "RUN@SEQ")
        ->required();
    add(app_, "worker", "started by run", team::command_worker)->group("");
    CLI::App* answer = add_on_run("answer", "answer a run that waits", team::command_answer);
    answer->add_option("decision", options_.id, "its id, as the run said")->required();
    answer->add_option("text", options_.text, "what to do");
    answer->add_flag("--without", options_.without, "go on without that task");
    add_on_run("deploy", "serve what the run released, supervised", team::command_deploy)
        ->add_option("--port", options_.port, "another port");
  }

  void add_looking() {
    add_on_run("status", "where the run stands", team::command_status);
    add_on_run("watch", "follow a run that goes on elsewhere", team::command_watch);
    add_on_run("log", "the run's story; --json: its events", team::command_log);
    add_on_run("spec", "criteria and assumptions", team::command_spec);
    add_on_run("plan", "tasks and decisions", team::command_plan);
    add_on_run("why", "what brought a thing where it is", team::command_why)
        ->add_option("id", options_.id, "C3, T2, E12, X1, I1 ...");
    add_on_run("evidence", "one piece of evidence, or all", team::command_evidence)
        ->add_option("id", options_.id, "E12");
    add_on_run("diff", "what a task changed", team::command_diff)
        ->add_option("task", options_.id, "T2")
        ->required();
    add_on_run("cost", "tokens and money", team::command_cost)
        ->add_option("--by", options_.by, "role, stage, task, model or attempt");
    add_on_run("perf", "performance experiments", team::command_perf);
    add_on_run("incidents", "incidents and planned faults", team::command_incidents);
    add_on_run("report", "write report.html again", team::command_report);
  }

  void add_tools() {
    CLI::App* gate = app_.add_subcommand("gate", "gates on any folder");
    gate->require_subcommand(1);
    CLI::App* run = add(*gate, "run", "run gates, all or one", team::command_gate_run);
    run->add_option("id", options_.gate, "one gate; absent: all");
    run->add_option("--folder", options_.folder, "the product; absent: here");
    run->add_option("--gates", options_.gates, "folder of gate files; absent: FOLDER/gates");
    run->add_option("--sealed", options_.sealed, "their sealed files; absent: GATES/sealed");
    CLI::App* ledger = app_.add_subcommand("ledger", "the ledger itself");
    ledger->require_subcommand(1);
    add(*ledger, "verify", "check the hash chain and every blob", team::command_ledger_verify)
        ->add_option("--run", options_.run, "name or folder of the run; absent: the newest");
    add(app_, "doctor", "is this machine fit? tries to break out of the sandbox",
        team::command_doctor);
    CLI::App* server =
        add(app_, "script-server", "play a script as a model server", team::command_script_server);
    server->add_option("script", options_.script, "JSON file")->required();
    server->add_option("--port", options_.port, "absent: any free one");
    CLI::App* models = app_.add_subcommand("models", "model endpoints");
    models->require_subcommand(1);
    CLI::App* test =
        add(*models, "test", "try an endpoint with real calls", team::command_models_test);
    test->add_option("url", options_.url, "base URL")->required();
    test->add_option("--model", options_.model, "name of the model");
    test->add_option("--api", options_.api, "openai or anthropic");
  }

  CLI::App app_{"fleet: an autonomous software team"};
  CommandOptions options_;
  Command chosen_;
};

}  // namespace

int main(int argc, char** argv) {
  // A file that may not grow is an error of the write, to be told in a sentence, not a death. A
  // handler that does nothing, unlike ignoring, is not inherited by the programs we start.
  std::signal(SIGXFSZ, [](int) {});
  return CommandLine().run(argc, argv);
}
