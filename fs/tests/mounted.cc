#include "fs/tests/mounted.h"

#include "base/clock.h"
#include "fs/fuse/mount.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstdlib>

namespace fs::testing {

std::string agentfs_program() {
  char path[PATH_MAX];
  ssize_t got = ::readlink("/proc/self/exe", path, sizeof(path) - 1);
  std::string self(path, got > 0 ? static_cast<size_t>(got) : 0);
  return self.substr(0, self.rfind('/')) + "/agentfs";
}

namespace {

bool over_tls() {
  return std::getenv("AGENTFS_TEST_TLS") != nullptr;
}

}  // namespace

bool can_mount() {
  return ::access("/dev/fuse", R_OK | W_OK) == 0 &&
         (::geteuid() == 0 || base::find_program("fusermount3").has_value());
}

base::ProcessResult agentfs(const std::vector<std::string>& arguments, bool may_fail) {
  base::ProcessSpec spec;
  spec.argv = {agentfs_program()};
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  spec.timeout_ms = 60'000;
  auto ran = base::run_process(spec);
  if (!ran.ok()) {
    ADD_FAILURE() << ran.error().message();
    return {};
  }
  if (!may_fail) {
    EXPECT_EQ(ran->exit_code, 0) << arguments[0] << ": " << ran->err;
  }
  return *ran;
}

Mount::Mount(const std::string& store, std::vector<std::string> options) : folder_(place_ / "mnt") {
  EXPECT_TRUE(base::make_directories(folder_).ok());
  EXPECT_EQ(::chmod(place_.path().c_str(), 0755), 0);  // some tests become another user
  spec_.argv = {agentfs_program(), "mount", "--foreground"};
  if (store.empty()) {
    spec_.argv.push_back("--memory");
  } else {
    spec_.argv.push_back(store);
  }
  spec_.argv.push_back(folder_);
  spec_.argv.insert(spec_.argv.end(), options.begin(), options.end());
  base::Process::Options process_options;
  process_options.stderr_path = place_ / "log";
  process_options.stdout_path = place_ / "log";
  auto started = base::Process::start(spec_, process_options);
  if (!started.ok()) {
    ADD_FAILURE() << started.error().message();
    return;
  }
  daemon_ = std::make_unique<base::Process>(std::move(*started));
  // The daemon says when the folder answers.
  for (int tries = 0; tries < 3000; tries++) {
    std::string log = base::read_file(place_ / "log").value_or("");
    if (log.find("mounted on") != std::string::npos) return;
    if (auto ended = daemon_->poll()) break;
    base::system_clock().sleep_us(5000);
  }
  ADD_FAILURE() << "the mount did not come up: " << base::read_file(place_ / "log").value_or("");
}

int Mount::daemon_pid() const {
  return daemon_ ? daemon_->pid() : -1;
}

void Mount::unmount() {
  if (!daemon_) return;
  base::Status done = fuse::unmount(folder_, false);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message());
  auto ended = daemon_->wait(20'000);
  EXPECT_TRUE(ended && ended->exit_code == 0)
      << "the daemon did not end well: " << base::read_file(place_ / "log").value_or("");
  daemon_.reset();
}

void Mount::kill() {
  if (!daemon_) return;
  daemon_->kill(SIGKILL);
  daemon_->wait(10'000);
  daemon_.reset();
  (void)fuse::unmount(folder_, true);
}

Mount::~Mount() {
  unmount();
}

void Mount::abandon() {
  if (!daemon_) return;
  daemon_->kill(SIGCONT);
  (void)fuse::unmount(folder_, true);
  if (!daemon_->wait(5'000)) daemon_->kill(SIGKILL);
  daemon_.reset();
}

std::string Mount::messages() const {
  return base::read_file(place_ / "log").value_or("");
}

int Served::pid() const {
  return process_ ? process_->pid() : -1;
}

std::string Served::messages() const {
  return base::read_file(place_ / "err").value_or("");
}

Served::Served(const std::string& store, std::vector<std::string> options, int port) {
  base::ProcessSpec spec;
  std::string listen = "127.0.0.1:" + std::to_string(port);
  spec.argv = {agentfs_program(), "serve", store, "--listen", listen, "--steal"};
  if (over_tls()) spec.argv.push_back("--tls");
  spec.argv.insert(spec.argv.end(), options.begin(), options.end());
  base::Process::Options process;
  process.stdout_path = place_ / "out";
  process.stderr_path = place_ / "err";
  auto started = base::Process::start(spec, process);
  if (!started.ok()) {
    ADD_FAILURE() << started.error().message();
    return;
  }
  process_ = std::make_unique<base::Process>(std::move(*started));
  for (int tries = 0; tries < 2000 && port_ == 0; tries++) {
    std::string out = base::read_file(place_ / "out").value_or("");
    size_t at = out.rfind(" port ");
    if (at != std::string::npos && out.back() == '\n') port_ = std::atoi(out.c_str() + at + 6);
    if (process_->poll()) break;
    base::system_clock().sleep_us(5000);
  }
  EXPECT_NE(port_, 0) << base::read_file(place_ / "err").value_or("");
}

std::string Served::address(const std::string& workspace) const {
  return "agentfs://127.0.0.1:" + std::to_string(port_) + "/" + workspace;
}

void Served::stop() {
  if (!process_) return;
  process_->kill(SIGTERM);
  auto ended = process_->wait(20'000);
  EXPECT_TRUE(ended && ended->exit_code == 0) << base::read_file(place_ / "err").value_or("");
  process_.reset();
}

void Served::kill() {
  if (!process_) return;
  process_->kill(SIGKILL);
  process_->wait(5'000);
  process_.reset();
}

std::string token_file(const base::TempDir& place, const std::string& store,
                       std::vector<std::string> options) {
  std::vector<std::string> arguments = {"token", store};
  if (over_tls()) arguments.push_back("--tls");
  arguments.insert(arguments.end(), options.begin(), options.end());
  std::string file = place / "token";
  for (const std::string& option : options) file += option;
  EXPECT_TRUE(base::write_file(file, agentfs(arguments).out).ok());
  return file;
}

}  // namespace fs::testing
