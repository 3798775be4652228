#include "team/cli/backend.h"

#include "base/clock.h"
#include "base/files.h"

#include <unistd.h>

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
  backend->gate_ = std::make_unique<RateGate>(base::system_clock());
  backend->model_ = std::make_unique<HttpModel>(config, backend->transport_, *backend->gate_,
                                                base::system_clock(), request.seed);
  return backend;
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
  // Nano-dollars a token; without a price a live back end counts as free, and says so.
  request.price = Price{.id = "free"};
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
