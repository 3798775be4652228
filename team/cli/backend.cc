#include "team/cli/backend.h"

#include "base/clock.h"
#include "base/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// Of a file that need not be there.
Result<std::string> absolute(const std::string& path) {
  if (path.starts_with("/")) return path;
  char folder[4096];
  if (getcwd(folder, sizeof folder) == nullptr) return base::errno_error(errno, "this folder");
  return std::string(folder) + "/" + path;
}

Result<Json> with_files(const Json& json, const std::string& folder) {
  constexpr std::string_view kPrefix = "@file:";
  if (json.is_string() && json.as_string().rfind(kPrefix, 0) == 0) {
    return Json(TRY(base::read_file(folder + "/" + json.as_string().substr(kPrefix.size()))));
  }
  if (json.is_array()) {
    Json out = Json::array();
    for (const Json& item : json.items()) out.push(TRY(with_files(item, folder)));
    return out;
  }
  if (json.is_object()) {
    Json out = Json::object();
    for (const auto& [key, value] : json.members()) out.set(key, TRY(with_files(value, folder)));
    return out;
  }
  return json;
}

std::string program_folder() {
  char path[4096];
  ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  if (size <= 0) return ".";
  return folder_of(std::string(path, static_cast<size_t>(size)));
}

}  // namespace

Result<Json> load_script(const std::string& path) {
  std::string text = TRY(base::read_file(path));
  auto json = Json::parse(text);
  if (!json.ok()) return std::move(json).error().with(path);
  return with_files(*json, folder_of(path));
}

Result<std::unique_ptr<Backend>> Backend::open(const RunRequest& request) {
  std::unique_ptr<Backend> backend(new Backend());
  BackendConfig config;
  config.api = request.api == "anthropic" ? ApiKind::kAnthropic : ApiKind::kOpenAiChat;
  config.url = request.url;
  config.key = variable("FLEET_MODEL_KEY");
  if (!request.script.empty()) {
    Json script = TRY(load_script(request.script));
    backend->server_ = TRY(ScriptServer::start({}, script));
    config.url = backend->server_->url() + (request.api == "anthropic" ? "" : "/v1");
    config.key.clear();
  }
  Transport* transport = &backend->transport_;
  if (!request.cassette.empty()) {
    TRY(backend->open_cassette(request, config.key));
    transport = backend->cassette_.get();
  }
  backend->gate_ = std::make_unique<RateGate>(base::system_clock());
  backend->model_ = std::make_unique<HttpModel>(config, *transport, *backend->gate_,
                                                base::system_clock(), request.seed);
  return backend;
}

base::Status Backend::open_cassette(const RunRequest& request, const std::string& key) {
  Cassette::Options options;
  options.path = request.cassette;
  const bool record = request.cassette_mode == "record";
  strict_ = request.cassette_mode == "strict";
  options.mode = record    ? CassetteMode::kRecord
                 : strict_ ? CassetteMode::kStrict
                           : CassetteMode::kReplay;
  options.keep = true;  // a resumed run goes on recording
  if (!key.empty()) options.secrets.push_back(key);
  options.about = Json::object({{"intent", request.intent},
                                {"api", request.api},
                                {"model", request.model},
                                {"other_model", request.other_model},
                                {"price", RunRequest::to_json(request.price)},
                                {"budget_nusd", request.budget_nusd},
                                {"agents", request.agents},
                                {"seed", i64(request.seed)},
                                {"port", request.port}});
  auto opened = Cassette::open(std::move(options), record ? &transport_ : nullptr);
  if (!opened.ok() && opened.error().code() == ErrorCode::kCorruption) {
    return Error(ErrorCode::kInvalidArgument, opened.error().message());
  }
  cassette_ = TRY(std::move(opened));
  return {};
}

base::Status Backend::check_left_overs() const {
  if (!strict_ || cassette_->unused() == 0) return {};
  return Error(ErrorCode::kConflict,
               std::to_string(cassette_->unused()) + " of " + std::to_string(cassette_->size()) +
                   " exchanges on the cassette were not asked for: this run took another way than "
                   "the recorded one");
}

base::Status record_to(RunRequest& request, const std::string& path) {
  if (base::file_exists(path)) {
    return Error(ErrorCode::kExists,
                 "there is a file at " + path + " already; name another or remove it");
  }
  request.cassette = TRY(absolute(path));
  request.cassette_mode = "record";
  return {};
}

base::Status replay_from(RunRequest& request, const std::string& path, bool strict) {
  const Json found = TRY(Cassette::look_at(path));
  const Json& about = found["about"];
  if (request.intent.empty()) request.intent = about["intent"].as_string();
  if (request.intent.empty()) {
    return Error(ErrorCode::kInvalidArgument, "the cassette " + path +
                                                  " does not say what was asked for; say it: fleet "
                                                  "run --replay FILE \"one sentence\"");
  }
  const std::string& where = found["path"].as_string();
  request.api = where.ends_with("/messages") ? "anthropic" : "openai";
  const std::string tail = request.api == "anthropic" ? "/v1/messages" : "/chat/completions";
  if (!where.ends_with(tail)) {
    return Error(ErrorCode::kInvalidArgument, "the cassette " + path + " is for another API");
  }
  request.script.clear();
  request.url = "http://cassette.invalid" + where.substr(0, where.size() - tail.size());
  request.model = found["request"]["model"].as_string();
  request.backend = "recorded";
  if (about.is_object()) {
    request.other_model = about["other_model"].as_string();
    request.price = RunRequest::price_from_json(about["price"]);
    request.budget_nusd = about["budget_nusd"].as_int(request.budget_nusd);
    request.agents = static_cast<int>(about["agents"].as_int(request.agents));
    request.seed = static_cast<u64>(about["seed"].as_int(1));
    request.port = static_cast<int>(about["port"].as_int(request.port));
  } else {
    request.price = Price{.id = "free"};
  }
  request.cassette = TRY(absolute(path));
  request.cassette_mode = strict ? "strict" : "replay";
  return {};
}

base::Status apply_environment(RunRequest& request) {
  std::string url = variable("FLEET_MODEL_URL");
  std::string model = variable("FLEET_MODEL");
  if (url.empty() && model.empty()) return {};
  if (url.empty() || model.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "set both FLEET_MODEL_URL and FLEET_MODEL to use a live model, or neither");
  }
  request.script.clear();
  request.url = url;
  request.model = model;
  request.backend = "live";
  std::string api = variable("FLEET_MODEL_API");
  if (!api.empty()) request.api = api;
  if (request.api != "openai" && request.api != "anthropic") {
    return Error(ErrorCode::kInvalidArgument, "FLEET_MODEL_API is openai or anthropic");
  }
  return {};
}

Result<std::string> find_example(const std::string& name) {
  std::string from_program = program_folder() + "/../../../examples/" + name;
  for (const std::string& folder : {"examples/" + name, from_program, name}) {
    if (!base::file_exists(folder + "/example.json")) continue;
    char resolved[4096];
    if (realpath(folder.c_str(), resolved) == nullptr) continue;
    return std::string(resolved);
  }
  return Error(ErrorCode::kNotFound, "there is no example '" + name + "'; look in examples/");
}

Result<RunRequest> load_example(const std::string& folder) {
  std::string text = TRY(base::read_file(folder + "/example.json"));
  auto json = Json::parse(text);
  if (!json.ok()) return std::move(json).error().with(folder + "/example.json");
  auto request = RunRequest::from_json(*json);
  if (!request.ok()) return std::move(request).error().with(folder + "/example.json");
  if (!request->script.empty()) request->script = folder + "/" + request->script;
  return request;
}

}  // namespace team
