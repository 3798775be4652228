// fork, snapshot, rollback, remove, diff, list, stat, metrics, gc, fsck.
//
// A workspace that is mounted changes through its mount's control socket, where its unsent records
// are; one that is not, through the store.
#include "base/json.h"
#include "fs/cli/commands.h"
#include "fs/client/control.h"

#include <cstdio>

namespace fs::cli {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using base::Status;

namespace {

struct SnapshotName {
  std::string workspace;
  std::string snapshot;
};

Result<SnapshotName> split_snapshot(const std::string& text) {
  size_t at = text.find('@');
  if (at == 0 || at == std::string::npos || at + 1 == text.size()) {
    return Error(ErrorCode::kInvalidArgument,
                 "'" + text + "' does not name a snapshot; write WORKSPACE@NAME");
  }
  return SnapshotName{text.substr(0, at), text.substr(at + 1)};
}

// True when the workspace's mount did it; false when nobody has it mounted.
Result<bool> ask_mount(const std::string& store, const std::string& workspace, const char* command,
                       const std::string& name) {
  auto reply = control_call(control_path(store, workspace),
                            Json::object({{"command", command}, {"name", name}}));
  if (reply.ok()) return true;
  if (reply.error().code() == ErrorCode::kUnavailable) return false;
  return std::move(reply).error();
}

void print_json(const Json& json) {
  std::printf("%s\n", json.dump_pretty().c_str());
}

const char* letter_of(Difference::Kind kind) {
  switch (kind) {
    case Difference::Kind::kAdded:
      return "A";
    case Difference::Kind::kRemoved:
      return "D";
    case Difference::Kind::kModified:
      return "M";
    case Difference::Kind::kTypeChanged:
      return "T";
  }
  return "?";
}

}  // namespace

Status fork(const std::string& store, const std::string& from, const std::string& to) {
  if (from.find('@') == std::string::npos && TRY(ask_mount(store, from, "fork", to))) return {};
  return TRY(Store::open(store, {}))->fork(from, to);
}

Status snapshot(const std::string& store, const std::string& name) {
  SnapshotName names = TRY(split_snapshot(name));
  if (TRY(ask_mount(store, names.workspace, "snapshot", names.snapshot))) return {};
  return TRY(Store::open(store, {}))->snapshot(names.workspace, names.snapshot);
}

Status rollback(const std::string& store, const std::string& name) {
  SnapshotName names = TRY(split_snapshot(name));
  return TRY(Store::open(store, {}))->rollback(names.workspace, names.snapshot);
}

Status remove(const std::string& store, const std::string& name) {
  return TRY(Store::open(store, {}))->remove(name);
}

Status diff(const std::string& store, const std::string& a, const std::string& b, bool json) {
  // What a mount has only in its journal counts too.
  for (const std::string& name : {a, b}) {
    if (name.find('@') == std::string::npos) TRY(ask_mount(store, name, "sync", ""));
  }
  auto differences = TRY(TRY(Store::open(store, {}))->diff(a, b));
  Json list = Json::array();
  for (const Difference& one : differences) {
    if (json) {
      list.push(
          Json::object({{"change", letter_of(one.kind)}, {"path", one.path}, {"ino", one.ino}}));
    } else {
      std::printf("%s %s\n", letter_of(one.kind), one.path.c_str());
    }
  }
  if (json) print_json(list);
  return {};
}

Status list(const std::string& store, bool json) {
  auto opened = TRY(Store::open(store, {}));
  Json all = Json::array();
  if (!json) std::printf("%-24s %10s %6s  %-16s %s\n", "NAME", "SEQ", "EPOCH", "PARENT", "HELD BY");
  for (const WorkspaceInfo& info : TRY(opened->workspaces())) {
    Json snapshots = Json::array();
    for (const SnapshotInfo& one : TRY(opened->snapshots(info.name))) {
      snapshots.push(Json::object({{"name", one.name}, {"seq", one.seq}}));
    }
    if (json) {
      all.push(Json::object({{"name", info.name},
                             {"seq", info.head_seq},
                             {"epoch", info.epoch},
                             {"parent", info.parent},
                             {"holder", info.holder},
                             {"snapshots", snapshots}}));
      continue;
    }
    std::printf("%-24s %10llu %6llu  %-16s %s\n", info.name.c_str(),
                static_cast<unsigned long long>(info.head_seq),
                static_cast<unsigned long long>(info.epoch), info.parent.c_str(),
                info.holder.c_str());
    for (const Json& one : snapshots.items()) {
      std::printf("  @%-21s %10lld\n", one["name"].as_string().c_str(),
                  static_cast<long long>(one["seq"].as_int()));
    }
  }
  if (json) print_json(all);
  return {};
}

Status stat(const std::string& store, const std::string& workspace, bool json) {
  Json reply =
      TRY(control_call(control_path(store, workspace), Json::object({{"command", "status"}})));
  if (json) {
    print_json(reply);
    return {};
  }
  for (const auto& [key, value] : reply.members()) {
    if (key == "ok" || key == "operations") continue;
    std::printf("%-16s %s\n", key.c_str(),
                value.is_string() ? value.as_string().c_str() : value.dump().c_str());
  }
  std::printf("%-16s %12s %8s %9s\n", "operation", "count", "errors", "mean us");
  for (const auto& [name, one] : reply["operations"].members()) {
    std::printf("%-16s %12lld %8lld %9.1f\n", name.c_str(),
                static_cast<long long>(one["count"].as_int()),
                static_cast<long long>(one["errors"].as_int()), one["mean_us"].as_double());
  }
  return {};
}

namespace {

Json quota_json(const QuotaUse& use) {
  return Json::object({{"bytes_limit", use.limit.bytes},
                       {"bytes", use.bytes},
                       {"inodes_limit", use.limit.inodes},
                       {"inodes", use.inodes}});
}

// The use of a workspace that nobody has mounted, after `change` if there is one.
Result<Json> quota_of_store(const QuotaArguments& arguments, const Quota* change) {
  auto store = TRY(Store::open(arguments.store, {}));
  auto workspace = TRY(store->open_workspace(arguments.workspace, {}));
  Status done = change != nullptr ? workspace->set_quota(*change) : Status();
  auto use = workspace->quota();
  TRY(workspace->close());
  TRY(std::move(done));
  return quota_json(TRY(std::move(use)));
}

Result<Json> quota_call(const QuotaArguments& arguments, const Quota* change) {
  Json request = Json::object({{"command", "quota"}, {"set", change != nullptr}});
  if (change != nullptr) {
    request.set("bytes", change->bytes);
    request.set("inodes", change->inodes);
  }
  auto reply = control_call(control_path(arguments.store, arguments.workspace), request);
  if (reply.ok() || reply.error().code() != ErrorCode::kUnavailable) return reply;
  return quota_of_store(arguments, change);
}

}  // namespace

Status quota(const QuotaArguments& arguments, bool json) {
  Json use = TRY(quota_call(arguments, nullptr));
  if (arguments.has_bytes || arguments.has_inodes) {
    Quota wanted{static_cast<u64>(use["bytes_limit"].as_int()),
                 static_cast<u64>(use["inodes_limit"].as_int())};
    if (arguments.has_bytes) wanted.bytes = arguments.quota.bytes;
    if (arguments.has_inodes) wanted.inodes = arguments.quota.inodes;
    use = TRY(quota_call(arguments, &wanted));
  }
  if (json) {
    print_json(use);
    return {};
  }
  for (const char* what : {"bytes", "inodes"}) {
    i64 limit = use[std::string(what) + "_limit"].as_int();
    std::printf("%-7s %lld of %s\n", what, static_cast<long long>(use[what].as_int()),
                limit == 0 ? "no limit" : std::to_string(limit).c_str());
  }
  return {};
}

Status metrics(const std::string& store, const std::string& workspace) {
  Json reply =
      TRY(control_call(control_path(store, workspace), Json::object({{"command", "metrics"}})));
  std::fputs(reply["text"].as_string().c_str(), stdout);
  return {};
}

Status gc(const std::string& store, bool json) {
  GcReport report = TRY(TRY(Store::open(store, {}))->gc());
  if (json) {
    print_json(Json::object({{"packs_before", report.packs_before},
                             {"packs_deleted", report.packs_deleted},
                             {"bytes_freed", report.bytes_freed},
                             {"segments_deleted", report.segments_deleted}}));
    return {};
  }
  std::printf("%llu of %llu packs and %llu log segments deleted, %llu bytes freed\n",
              static_cast<unsigned long long>(report.packs_deleted),
              static_cast<unsigned long long>(report.packs_before),
              static_cast<unsigned long long>(report.segments_deleted),
              static_cast<unsigned long long>(report.bytes_freed));
  return {};
}

Status fsck(const std::string& store, bool json) {
  FsckReport report = TRY(TRY(Store::open(store, {}))->fsck());
  if (json) {
    Json problems = Json::array();
    for (const std::string& problem : report.problems) problems.push(problem);
    print_json(Json::object({{"workspaces", report.workspaces},
                             {"inodes", report.inodes},
                             {"pages", report.pages},
                             {"data", report.data},
                             {"problems", problems}}));
  } else {
    std::printf("%llu workspaces, %llu inodes, %llu tree pages, %llu pieces of data checked\n",
                static_cast<unsigned long long>(report.workspaces),
                static_cast<unsigned long long>(report.inodes),
                static_cast<unsigned long long>(report.pages),
                static_cast<unsigned long long>(report.data));
    for (const std::string& problem : report.problems) std::printf("  %s\n", problem.c_str());
  }
  if (report.problems.empty()) return {};
  return Error(ErrorCode::kCorruption,
               std::to_string(report.problems.size()) +
                   " problems found; a snapshot or fork from before them may be whole");
}

}  // namespace fs::cli
