#include "team/stages/worker_main.h"

#include "team/gate/gate_runner.h"
#include "team/stages/attempt_json.h"
#include "team/stages/attempt_port.h"
#include "team/stages/call_json.h"
#include "team/worker/channel.h"
#include "team/worker/worker_process.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

// The longest tool call takes ten minutes; model calls are not ours to time.
constexpr i64 kActMsMax = 15 * 60'000;
constexpr i64 kGateSlackMs = 10 * 60'000;  // builds of the service, its starts, copies

class RemotePort : public AttemptPort {
 public:
  RemotePort(Channel& channel, Heartbeat& heart, i64 fence)
      : channel_(channel), heart_(heart), fence_(fence) {}

  base::Status emit(std::string type, Json body) override {
    TRY(ask(Json::object({{"say", "emit"}, {"type", std::move(type)}, {"body", std::move(body)}})));
    return {};
  }

  Result<CallResult> infer(const std::string& key, const ModelRequest& request) override {
    return call_result_from_json(
        TRY(ask(Json::object({{"say", "infer"}, {"key", key}, {"request", to_json(request)}}))));
  }

  Result<std::string> check(const std::string& gate) override {
    return TRY(ask(Json::object({{"say", "check"}, {"gate", gate}}))).as_string();
  }

  void activity(const std::string& what) override {
    (void)tell(Json::object({{"say", "activity"}, {"what", what}}));
  }

  Result<Json> once(const EffectIntent& intent, const std::function<Result<Json>()>& act) override {
    TRY(tell(Json::object({{"say", "once"},
                           {"key", intent.key},
                           {"kind", intent.kind},
                           {"workspace", intent.cls == EffectClass::kWorkspace},
                           {"request", intent.request}})));
    for (;;) {
      Frame frame = TRY(channel_.receive(-1));
      heart_.work();
      const std::string& order = frame.head["do"].as_string();
      if (order.empty()) return answer_in(std::move(frame.head));
      if (frame.head["undo"].as_bool() && intent.undo) TRY(intent.undo());
      if (order == "undo") {
        TRY(tell(Json::object({{"say", "undone"}})));
        continue;
      }
      auto result = act();
      Json said =
          result.ok() ? Json::object({{"result", std::move(*result)}}) : to_json(result.error());
      said.set("say", "acted");
      TRY(tell(std::move(said)));
    }
  }

 private:
  base::Status tell(Json head) {
    head.set("fence", fence_);
    return channel_.send(head);
  }
  Result<Json> ask(Json head) {
    TRY(tell(std::move(head)));
    Frame frame = TRY(channel_.receive(-1));
    heart_.work();
    return answer_in(std::move(frame.head));
  }
  static Result<Json> answer_in(Json head) {
    if (!head.has("ok")) return error_from_json(head);
    return head["ok"];
  }

  Channel& channel_;
  Heartbeat& heart_;
  i64 fence_;
};

Result<AttemptResult> do_attempt(const Json& work, Channel& channel, Heartbeat& heart) {
  AttemptSpec spec = TRY(attempt_spec_from_json(work["spec"]));
  RemotePort port(channel, heart, work["fence"].as_int());
  if (work["spec"]["has_check"].as_bool()) {
    spec.check = [&port](const std::string& gate) { return port.check(gate); };
  }
  const std::string& folder = work["folder"].as_string();
  auto sandbox = TRY(Sandbox::open({.proven = true}));
  ProductRepo repo = TRY(ProductRepo::open(folder + "/product.git"));
  return step_attempt({folder, work["model"].as_string(), *sandbox, repo}, spec, port);
}

Result<Evidence> do_gate(const Json& work, Channel& channel) {
  GateSpec spec = TRY(gate_from_json(work["gate"]));
  auto sandbox = TRY(Sandbox::open({.proven = true}));
  GateRunner runner(*sandbox, {.scratch_root = work["scratch"].as_string()});
  return runner.run(
      spec,
      {.product = work["product"].as_string(),
       .sealed = work["sealed"].as_string(),
       .keep_at = work["keep_at"].as_string()},
      [&](std::string_view line) {
        (void)channel.send(Json::object({{"say", "line"}, {"line", line.substr(0, 60)}}));
      });
}

// The channel leaves standard input, so that nothing we start inherits it.
Result<int> take_channel() {
  struct stat info{};
  if (::fstat(STDIN_FILENO, &info) != 0 || !S_ISSOCK(info.st_mode)) {
    return Error(ErrorCode::kInvalidArgument,
                 "'fleet worker' is started by 'fleet run' itself; there is nothing to do for it "
                 "here");
  }
  const int fd = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  if (fd < 0) return base::errno_error(errno, "taking the channel");
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(null, STDIN_FILENO);
  ::close(null);
  return fd;
}

}  // namespace

base::Status worker_main() {
  Channel channel(TRY(take_channel()));
  const Json work = TRY(channel.receive(-1)).head;
  const bool gate = work["do"].as_string() == "gate";
  const i64 busy_ms =
      gate ? work["gate"]["limits"]["wall_ms"].as_int(120'000) + kGateSlackMs : kActMsMax;
  Heartbeat heart(channel, work["lease_ms"].as_int(20'000), busy_ms);
  Json end = Json::object({{"say", "done"}});
  std::string log;
  base::Status ended;
  if (gate) {
    auto evidence = do_gate(work, channel);
    if (evidence.ok()) {
      end.set("evidence", to_json(*evidence));
      log = evidence->log;
    } else {
      ended = evidence.error();
    }
  } else {
    auto result = do_attempt(work, channel, heart);
    if (result.ok()) {
      end.set("result", to_json(*result));
    } else {
      ended = result.error();
    }
  }
  if (!ended.ok()) end = to_json(ended.error()).set("say", "failed");
  end.set("fence", work["fence"]);
  return channel.send(end, log);
}

}  // namespace team
