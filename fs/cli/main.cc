// agentfs: reads the command line and hands over to commands.h.
#include "fs/cli/commands.h"
#include "fs/cli/load.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>

namespace {

using base::Status;
using fs::cli::MountArguments;

// Filled by the options of the subcommand that was given, then run.
struct Arguments {
  std::string store, first, second, folder;
  std::string workspace = "main";
  bool json = false;
  bool lazy = false;
  bool in_memory = false;
  std::string key_file, new_key_file;
  MountArguments mount;
  fs::cli::LogArguments log;
  fs::cli::LoadSpec load;
  fs::cli::ServeArguments serve;
  fs::cli::TokenArguments token;
  fs::cli::QuotaArguments quota;
  fs::cli::FormatArguments format;
};

CLI::App* with_store(CLI::App& app, Arguments& to, const char* name, const char* what) {
  CLI::App* command = app.add_subcommand(name, what);
  command->add_option("DIR", to.store, "folder of the store")->required();
  return command;
}

void add_mount(CLI::App& app, Arguments& to) {
  CLI::App* command = app.add_subcommand("mount", "make a workspace appear on a folder");
  fs::MountSpec& spec = to.mount.spec;
  command->add_option("DIR", spec.store,
                      "folder of the store, or agentfs://HOST:PORT/WORKSPACE or agentfs+tls://...; "
                      "left out with --memory");
  command->add_option("MNT", spec.folder, "empty folder to mount on");
  command->add_option("-w,--workspace", spec.workspace, "which workspace")->capture_default_str();
  command
      ->add_option("-d,--durability", to.mount.durability,
                   "when a call returns: fsync (journal file; fsync waits for the disk), close "
                   "(close and rename wait too) or op (every change waits)")
      ->capture_default_str();
  command->add_flag("-f,--foreground", to.mount.foreground, "stay; the mount ends with us");
  command->add_flag("--memory", to.in_memory, "keep everything in memory; nothing is stored");
  command->add_flag("--read-only", spec.read_only, "refuse changes");
  command->add_flag("--noexec", spec.no_exec, "refuse to run programs from the mount");
  command->add_flag("--steal", spec.steal, "fence whoever has the workspace mounted now");
  command->add_flag("--private", spec.private_mount,
                    "of a server's workspace: hold its lease, so that changes cost no round trip");
  command->add_option("--journal", spec.journal,
                      "folder for a private mount's journal; else one by its names");
  command->add_flag("--audit-reads", spec.audit_reads, "see every open; costs about 20 us each");
  command->add_flag("--write-back", spec.write_back, "let the kernel collect small overwrites");
  command->add_option("--threads", spec.threads, "readers of the device")->capture_default_str();
  command->add_option("--spin-us", spec.spin_us, "poll this long before sleeping")
      ->capture_default_str();
  command->add_option("--quota-bytes", spec.bytes_quota, "refuse to grow beyond");
  command->add_option("--quota-inodes", spec.inodes_quota, "refuse more files than");
  command->add_option("--token-file", to.mount.token_file,
                      "for a server; else AGENTFS_TOKEN is used");
  command->add_option("--tls-fingerprint", spec.tls_fingerprint,
                      "the server's certificate has this SHA-256; else the token may say it");
  command
      ->add_option("--tls-ca", spec.tls_ca,
                   "the server's certificate is signed by one of these (PEM); else by one that "
                   "this machine trusts")
      ->check(CLI::ExistingFile);
  command->add_option("--log", to.mount.log_path, "where the mount writes messages");
}

void add_store_commands(CLI::App& app, Arguments& to) {
  CLI::App* format = with_store(app, to, "format", "make a new store with the workspace main");
  format->add_option("--engine", to.format.engine,
                     "postgres://USER@HOST/DATABASE of a cluster, or @FILE that holds it; its "
                     "password may come from PGPASSWORD or PGPASSFILE");
  format->add_option(
      "--blobs", to.format.blobs,
      "folder that all servers see, or s3://BUCKET/PREFIX?endpoint=URL&region=R, for file data");
  format->add_flag("--encrypt", to.format.encrypt, "what is stored is readable only with the key");
  CLI::App* fork = with_store(app, to, "fork", "a new workspace that starts as another is now");
  fork->add_option("FROM", to.first, "workspace or workspace@snapshot")->required();
  fork->add_option("TO", to.second, "name of the new workspace")->required();
  CLI::App* snapshot = with_store(app, to, "snapshot", "keep a workspace as it is now");
  snapshot->add_option("WORKSPACE@NAME", to.first)->required();
  CLI::App* rollback = with_store(app, to, "rollback", "take a workspace back to a snapshot");
  rollback->add_option("WORKSPACE@NAME", to.first)->required();
  CLI::App* remove = with_store(app, to, "remove", "delete a workspace or a snapshot");
  remove->add_option("NAME", to.first, "workspace or workspace@snapshot")->required();
  CLI::App* diff = with_store(app, to, "diff", "what changed from A to B");
  diff->add_option("A", to.first, "workspace or workspace@snapshot")->required();
  diff->add_option("B", to.second, "workspace or workspace@snapshot")->required();
  with_store(app, to, "list", "workspaces and snapshots");
  CLI::App* stat = with_store(app, to, "stat", "what a running mount has done");
  stat->add_option("WORKSPACE", to.workspace)->capture_default_str();
  CLI::App* quota = with_store(app, to, "quota", "what a workspace may hold: show it, or set it");
  quota->add_option("WORKSPACE", to.workspace)->capture_default_str();
  quota->add_option("--bytes", to.quota.quota.bytes, "of all files; 0 is no limit");
  quota->add_option("--inodes", to.quota.quota.inodes, "files and folders; 0 is no limit");
  CLI::App* metrics = with_store(app, to, "metrics", "the same as Prometheus text");
  metrics->add_option("WORKSPACE", to.workspace)->capture_default_str();
  CLI::App* log = with_store(app, to, "log", "the audit trail: every change, who and when");
  log->add_option("WORKSPACE", to.log.workspace)->capture_default_str();
  log->add_option("--from", to.log.from, "first sequence number")->capture_default_str();
  log->add_option("--limit", to.log.limit, "at most so many");
  CLI::App* watch = with_store(app, to, "watch", "changes as they come");
  watch->add_option("WORKSPACE", to.log.workspace)->capture_default_str();
  CLI::App* sql = with_store(app, to, "sql", "ask the audit trail in SQL (table fs_event)");
  sql->add_option("QUERY", to.first)->required();
  sql->add_option("-w,--workspace", to.workspace)->capture_default_str();
  CLI::App* rekey = with_store(app, to, "rekey", "let another key open an encrypted store");
  rekey->add_option("--new-key-file", to.new_key_file, "made when it is not there")->required();
  with_store(app, to, "gc", "delete data that nothing refers to");
  with_store(app, to, "fsck", "check everything that is stored");
}

void add_other_commands(CLI::App& app, Arguments& to) {
  CLI::App* unmount = app.add_subcommand("umount", "end a mount");
  unmount->alias("unmount");
  unmount->add_option("MNT", to.folder, "where it is mounted")->required();
  unmount->add_flag("--lazy", to.lazy, "even while files are open");
  CLI::App* serve = with_store(app, to, "serve", "let other machines mount (agentfsd)");
  serve->add_option("--listen", to.serve.listen, "HOST:PORT")->capture_default_str();
  serve->add_flag("--steal", to.serve.steal, "fence whoever has the workspaces mounted now");
  serve->add_option("--lease-seconds", to.serve.lease_s, "how long a private mount may be silent")
      ->capture_default_str();
  serve->add_option("--engine", to.serve.engine,
                    "make the folder one more server's of this store, if it is not yet");
  serve->add_option("--blobs", to.serve.blobs, "where its packs are, if not as when formatted");
  serve->add_flag("--tls", to.serve.tls,
                  "encrypt, with a certificate of the store's own; tokens then carry its "
                  "fingerprint");
  serve->add_option("--tls-cert", to.serve.certificate_file, "encrypt, with this one (PEM)");
  serve->add_option("--tls-key", to.serve.key_file, "and its private key (PEM)");
  serve->add_flag("--plain", to.serve.plain,
                  "do not encrypt, although other machines can reach the address");
  CLI::App* token = with_store(app, to, "token", "a token that lets a mount in");
  token->add_option("-w,--workspace", to.token.workspace, "or * for every one")
      ->capture_default_str();
  token->add_option("--agent", to.token.agent, "who gets it");
  token->add_option("--hours", to.token.hours, "how long it is good")->capture_default_str();
  token->add_flag("--read-only", to.token.read_only);
  token->add_flag("--tls", to.token.tls,
                  "name the store's own certificate before any agentfs serve --tls ran");
  app.add_subcommand("doctor", "can this machine mount, and how well");
  CLI::App* bench = app.add_subcommand("bench", "metadata load on any folder, operations a second");
  bench->add_option("FOLDER", to.load.folder, "works in a new folder below it")->required();
  bench->add_option("--shape", to.load.shape, "tree (-b 6 -I 8 -z 4) or flat")
      ->capture_default_str();
  bench->add_option("--files", to.load.files, "files a rank, flat shape")->capture_default_str();
  bench->add_option("--bytes", to.load.bytes, "size of each file")->capture_default_str();
  bench->add_option("--ranks", to.load.ranks, "processes at once")->capture_default_str();
}

Status run_mount_command(Arguments& to) {
  fs::MountSpec& spec = to.mount.spec;
  if (to.in_memory && spec.folder.empty()) std::swap(spec.store, spec.folder);
  if (spec.folder.empty() || spec.store.empty() != to.in_memory) {
    return base::Error(base::ErrorCode::kInvalidArgument,
                       "say what to mount and where: agentfs mount DIR MNT, or agentfs mount "
                       "--memory MNT");
  }
  return fs::cli::mount(to.mount);
}

Status run(const std::string& command, Arguments& to) {
  using namespace std::literals;
  if (command == "format") {
    to.format.store = to.store;
    return fs::cli::format(to.format);
  }
  if (command == "mount") return run_mount_command(to);
  if (command == "rekey") return fs::cli::rekey(to.store, to.new_key_file);
  if (command == "umount") return fs::cli::unmount(to.folder, to.lazy);
  if (command == "fork") return fs::cli::fork(to.store, to.first, to.second);
  if (command == "snapshot") return fs::cli::snapshot(to.store, to.first);
  if (command == "rollback") return fs::cli::rollback(to.store, to.first);
  if (command == "remove") return fs::cli::remove(to.store, to.first);
  if (command == "diff") return fs::cli::diff(to.store, to.first, to.second, to.json);
  if (command == "list") return fs::cli::list(to.store, to.json);
  if (command == "stat") return fs::cli::stat(to.store, to.workspace, to.json);
  if (command == "quota") {
    to.quota.store = to.store;
    to.quota.workspace = to.workspace;
    return fs::cli::quota(to.quota, to.json);
  }
  if (command == "metrics") return fs::cli::metrics(to.store, to.workspace);
  if (command == "gc") return fs::cli::gc(to.store, to.json);
  if (command == "fsck") return fs::cli::fsck(to.store, to.json);
  if (command == "doctor") return fs::cli::doctor(to.json);
  if (command == "bench") return fs::cli::run_load(to.load, to.json);
  if (command == "serve") {
    to.serve.store = to.store;
    return fs::cli::serve(to.serve);
  }
  if (command == "token") {
    to.token.store = to.store;
    return fs::cli::token(to.token);
  }
  if (command == "sql") return fs::cli::sql(to.store, to.workspace, to.first, to.json);
  to.log.store = to.store;
  to.log.json = to.json;
  if (command == "watch") return fs::cli::watch(to.log);
  return fs::cli::log(to.log);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "AgentFS: a POSIX file system for agents, with instant forks.\n"
      "Start: agentfs format DIR && agentfs mount DIR MNT"};
  app.set_version_flag("--version", std::string("agentfs ") + AGENTFS_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  Arguments arguments;
  app.add_flag("--json", arguments.json, "print data as JSON");
  app.add_option("--key-file", arguments.key_file,
                 "key of an encrypted store: 64 hex digits; else AGENTFS_KEY_FILE names it");
  add_mount(app, arguments);
  add_store_commands(app, arguments);
  add_other_commands(app, arguments);
  CLI11_PARSE(app, argc, argv);
  if (!arguments.key_file.empty()) fs::cli::use_key_file(arguments.key_file);
  CLI::App* given = app.get_subcommands().front();
  if (given->get_name() == "quota") {
    arguments.quota.has_bytes = given->count("--bytes") > 0;
    arguments.quota.has_inodes = given->count("--inodes") > 0;
  }
  Status done = run(given->get_name(), arguments);
  if (done.ok()) return 0;
  std::fprintf(stderr, "agentfs: %s\n", done.error().message().c_str());
  return 1;
}
