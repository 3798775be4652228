// The official npm clients drive the script server: client and server were not written by the same
// hands, so they cannot be wrong together. Needs node and npm; the clients come from the lock file
// beside this test.
#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "team/model/script_server.h"

#include <gtest/gtest.h>

namespace team {
namespace {

// The clients, installed once per build folder and again when the lock file changes.
void install_clients(const std::string& source, const std::string& folder) {
  const std::string lock = *base::read_file(source + "/package-lock.json");
  if (base::read_file(folder + "/installed.json").value_or("") == lock) return;
  ASSERT_TRUE(base::make_directories(folder).ok());
  for (const char* name : {"package.json", "package-lock.json", ".npmrc"}) {
    const std::string content = *base::read_file(source + "/" + name);
    ASSERT_TRUE(base::write_file(folder + "/" + name, content).ok());
  }
  base::ProcessSpec npm;
  npm.argv = {"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"};
  npm.cwd = folder;
  npm.timeout_ms = 240'000;
  npm.merge_stderr = true;
  const base::Result<base::ProcessResult> ran = base::run_process(npm);
  ASSERT_TRUE(ran.ok()) << ran.error().message();
  ASSERT_TRUE(ran->ok()) << ran->out;
  ASSERT_TRUE(base::write_file(folder + "/installed.json", lock).ok());
}

TEST(OfficialClients, DriveTheScriptServer) {
  const std::string source = FLEET_CLIENTS_SOURCE;
  const std::string folder = FLEET_CLIENTS_FOLDER;
  ASSERT_NO_FATAL_FAILURE(install_clients(source, folder));
  // Modules are found beside the program that imports them.
  const std::string driver = *base::read_file(source + "/drive.mjs");
  ASSERT_TRUE(base::write_file(folder + "/drive.mjs", driver).ok());
  const base::Json script = *base::Json::parse(*base::read_file(source + "/script.json"));
  const auto server = ScriptServer::start({.key = "test-key"}, script).value();
  base::ProcessSpec node;
  node.argv = {"node", folder + "/drive.mjs", server->url()};
  node.timeout_ms = 60'000;
  node.merge_stderr = true;
  const base::Result<base::ProcessResult> ran = base::run_process(node);
  ASSERT_TRUE(ran.ok()) << ran.error().message();
  EXPECT_TRUE(ran->ok()) << ran->out;
  EXPECT_EQ(ran->out.find("not ok"), std::string::npos);
  EXPECT_NE(ran->out.find("ok anthropic_retries_an_overload"), std::string::npos) << ran->out;
}

}  // namespace
}  // namespace team
