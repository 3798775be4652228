// From a run's request to a model to talk to: a live endpoint, or the recorded team, which is a
// script played by the scripted model server over real HTTP. Keys come from the environment
// (FLEET_MODEL_KEY), never from a file of the run.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "team/model/cassette.h"
#include "team/model/http_model.h"
#include "team/model/script_server.h"
#include "team/stages/run.h"

#include <memory>
#include <string>

namespace team {

// Everything a model needs to stay alive. Thread-safe once opened.
class Backend {
 public:
  // Errors: kNotFound, kInvalidArgument (a broken script, named).
  static base::Result<std::unique_ptr<Backend>> open(const RunRequest& request);
  Model& model() { return *model_; }
  // What a strictly replayed run left on its cassette. Errors: kConflict.
  base::Status check_left_overs() const;

 private:
  Backend() = default;
  base::Status open_cassette(const RunRequest& request, const std::string& key);
  std::unique_ptr<ScriptServer> server_;
  HttpTransport transport_;
  std::unique_ptr<Cassette> cassette_;
  bool strict_ = false;
  std::unique_ptr<RateGate> gate_;
  std::unique_ptr<HttpModel> model_;
};

// Reads a script; every string "@file:NAME" in it is replaced by the content of that file, beside
// the script.
base::Result<base::Json> load_script(const std::string& path);

// `fleet run --record FILE`: the run's exchanges go to a new file. Errors: kExists.
base::Status record_to(RunRequest& request, const std::string& path);
// `fleet run --replay FILE`: intent, model and API come from the file. Errors: kNotFound,
// kInvalidArgument for a file that is no cassette.
base::Status replay_from(RunRequest& request, const std::string& path, bool strict);

// FLEET_MODEL_URL, FLEET_MODEL and FLEET_MODEL_API, when set, turn the request into a live one.
// Errors: kInvalidArgument when only some are set.
base::Status apply_environment(RunRequest& request);

// "examples/NAME" beneath the working folder or above the program. Errors: kNotFound.
base::Result<std::string> find_example(const std::string& name);
base::Result<RunRequest> load_example(const std::string& folder);

}  // namespace team
