// format, mount, umount, doctor.
#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "fs/cli/commands.h"
#include "fs/client/control.h"
#include "fs/client/remote_workspace.h"
#include "fs/client/status.h"
#include "fs/fuse/mount.h"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace fs::cli {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using base::Status;

namespace {

// The daemon leaves the working folder: every path must be absolute.
Result<std::string> absolute(const std::string& path) {
  char resolved[PATH_MAX];
  if (::realpath(path.c_str(), resolved) == nullptr) {
    return base::errno_error(errno, "looking for " + path);
  }
  return std::string(resolved);
}

Result<std::string> read_token(const std::string& file) {
  std::string token;
  if (!file.empty()) {
    token = TRY(base::read_file(file));
  } else if (const char* given = std::getenv("AGENTFS_TOKEN")) {
    token = given;
  }
  while (!token.empty() && token.back() == '\n') token.pop_back();
  if (!token.empty()) return token;
  return Error(ErrorCode::kPermission,
               "a server wants a token: give --token-file FILE or set AGENTFS_TOKEN (agentfs token "
               "DIR makes one)");
}

// The key file that was given, which is made when it is not there.
Result<UserKey> fresh_key(const std::string& path) {
  bool made = false;
  UserKey key = TRY(read_or_make_key_file(path, made));
  if (made) {
    std::printf("made the key %s; keep a copy elsewhere: without it the store is lost\n",
                path.c_str());
  }
  return key;
}

std::string given_key_file() {
  const char* path = std::getenv("AGENTFS_KEY_FILE");
  return path == nullptr ? "" : path;
}

}  // namespace

void use_key_file(const std::string& path) {
  // Daemons leave the working folder.
  ::setenv("AGENTFS_KEY_FILE", std::filesystem::absolute(path).c_str(), 1);
}

Status rekey(const std::string& store, const std::string& new_key_file) {
  UserKey fresh = TRY(fresh_key(new_key_file));
  TRY(Store::rekey(store, {}, fresh));
  std::printf("%s opens with the key in %s from now on\n", store.c_str(), new_key_file.c_str());
  return {};
}

Status format(FormatArguments arguments) {
  const std::string& store = arguments.store;
  StoreOptions options;
  if (arguments.encrypt == given_key_file().empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "--encrypt and a key go together; give --key-file FILE, which is made when it is "
                 "not there");
  }
  if (arguments.encrypt) {
    options.encrypt = true;
    options.key = std::make_shared<const UserKey>(TRY(fresh_key(given_key_file())));
  }
  options.engine_url = arguments.engine;
  options.blobs = arguments.blobs;
  if (!options.blobs.empty() && options.engine_url.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "--blobs needs an engine that other servers reach, too: add --engine URL");
  }
  bool folder = !options.blobs.empty() && options.blobs.find("://") == std::string::npos;
  if (folder) {
    TRY(base::make_directories(options.blobs));
    options.blobs = TRY(absolute(options.blobs));
  }
  TRY(Store::format(store, options));
  TRY(TRY(Store::open(store, {}))->create_workspace("main"));
  std::printf(
      "formatted %s with the workspace main; now: agentfs %s\n", store.c_str(),
      arguments.engine.empty() ? ("mount " + store + " MNT").c_str() : ("serve " + store).c_str());
  return {};
}

Status mount(MountArguments arguments) {
  MountSpec& spec = arguments.spec;
  spec.durability = TRY(durability_named(arguments.durability));
  if (fuse::mounted_source(spec.folder)) {
    return Error(ErrorCode::kBusy,
                 spec.folder + " has AgentFS mounted already; agentfs umount it first");
  }
  // A mount whose daemon died has no real path; mount() clears it away.
  if (auto folder = absolute(spec.folder); folder.ok()) spec.folder = *folder;
  bool remote = TRY(parse_remote(spec.store)).has_value();
  if (remote) spec.token = TRY(read_token(arguments.token_file));
  if (!spec.tls_ca.empty()) spec.tls_ca = TRY(absolute(spec.tls_ca));
  if (!spec.tls_fingerprint.empty()) {
    spec.tls_fingerprint = TRY(wire::parse_fingerprint(spec.tls_fingerprint));
  }
  if (!spec.store.empty() && !remote) spec.store = TRY(absolute(spec.store));
  if (arguments.foreground) {
    MountHooks hooks;
    hooks.ready = [&] { std::fprintf(stderr, "mounted on %s\n", spec.folder.c_str()); };
    return run_mount(spec, hooks);
  }
  std::string log_path = arguments.log_path;
  if (log_path.empty()) {
    log_path =
        spec.store.empty() || remote ? "/dev/null" : spec.store + "/" + spec.workspace + ".log";
  }
  return start_mount(spec, log_path);
}

namespace {

// The daemon stores what it has after the folder is gone; its socket goes last.
Status wait_for_end(const std::string& store, const std::string& workspace) {
  constexpr i64 poll_us = 5'000, patience_us = 120'000'000;
  base::Clock& clock = base::system_clock();
  i64 end_us = clock.monotonic_us() + patience_us;
  while (clock.monotonic_us() < end_us) {
    auto alive = control_call(control_path(store, workspace), Json::object({{"command", "ping"}}));
    if (!alive.ok() && alive.error().code() == ErrorCode::kUnavailable) return {};
    clock.sleep_us(poll_us);
  }
  return Error(ErrorCode::kDeadline,
               "the folder is unmounted, but the mount of " + workspace + " is still storing");
}

}  // namespace

Status unmount(const std::string& folder, bool lazy) {
  auto source = fuse::mounted_source(folder);
  if (!source) return Error(ErrorCode::kNotFound, "AgentFS is not mounted on " + folder);
  TRY(fuse::unmount(folder, lazy));
  size_t colon = source->rfind(':');
  // In memory there is nothing to wait for; after a lazy one open files keep the mount going.
  if (lazy || colon == std::string::npos) return {};
  return wait_for_end(source->substr(0, colon), source->substr(colon + 1));
}

namespace {

struct Finding {
  const char* what;
  bool good;
  bool needed;
  std::string text;
};

std::string first_line_of(const std::string& path) {
  std::string text = base::read_file(path).value_or("");
  return text.substr(0, text.find('\n'));
}

std::vector<Finding> examine() {
  std::vector<Finding> findings;
  bool device = ::access("/dev/fuse", R_OK | W_OK) == 0;
  findings.push_back({"/dev/fuse", device, true,
                      device ? "can be opened"
                             : "cannot be opened: load the fuse module or, in a "
                               "container, pass the device in"});
  bool root = ::geteuid() == 0;
  bool helper = base::find_program("fusermount3").has_value();
  findings.push_back({"mounting", root || helper, true,
                      root     ? "as root"
                      : helper ? "through fusermount3"
                               : "needs root or the package fuse3"});
  utsname names{};
  ::uname(&names);
  int major = 0, minor = 0;
  std::sscanf(names.release, "%d.%d", &major, &minor);
  int version = major * 100 + minor;
  findings.push_back({"kernel", version >= 504, true,
                      std::string(names.release) +
                          (version >= 616   ? ": everything AgentFS can use"
                           : version >= 504 ? ": works; newer kernels can drop all caches at once"
                                            : ": too old, 5.4 is the least")});
  std::string uring = first_line_of("/sys/module/fuse/parameters/enable_uring");
  findings.push_back({"FUSE over io_uring", uring == "Y", false,
                      uring.empty()  ? "not in this kernel (6.14 or later)"
                      : uring == "Y" ? "enabled"
                                     : "off; root may write Y to "
                                       "/sys/module/fuse/parameters/enable_uring"});
  return findings;
}

}  // namespace

Status doctor(bool json) {
  bool well = true;
  Json list = Json::array();
  for (const Finding& finding : examine()) {
    well = well && (finding.good || !finding.needed);
    const char* mark = finding.good ? "ok" : finding.needed ? "BAD" : "-";
    if (json) {
      list.push(Json::object({{"what", finding.what},
                              {"ok", finding.good},
                              {"needed", finding.needed},
                              {"text", finding.text}}));
    } else {
      std::printf("%-4s %-20s %s\n", mark, finding.what, finding.text.c_str());
    }
  }
  if (json) std::printf("%s\n", list.dump_pretty().c_str());
  if (well) return {};
  return Error(ErrorCode::kUnsupported, "this machine cannot mount AgentFS; see above");
}

}  // namespace fs::cli
