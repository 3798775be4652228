#include "fs/client/status.h"

#include "fs/client/daemon.h"

#include <unistd.h>

#include <string>

namespace fs {

using base::Json;

const char* name_of(Durability durability) {
  switch (durability) {
    case Durability::kFsync:
      return "fsync";
    case Durability::kClose:
      return "close";
    case Durability::kOp:
      return "op";
  }
  return "?";
}

base::Result<Durability> durability_named(std::string_view name) {
  for (Durability mode : {Durability::kFsync, Durability::kClose, Durability::kOp}) {
    if (name == name_of(mode)) return mode;
  }
  return base::Error(base::ErrorCode::kInvalidArgument,
                     "'" + std::string(name) + "' is no durability; use fsync, close or op");
}

Json mount_status(Bridge& bridge, const MountSpec& spec) {
  Json operations = Json::object();
  const OpStatistics& statistics = bridge.statistics();
  for (u32 op = 0; op < fuse::kOpLimit; op++) {
    u64 count = statistics.count[op].load();
    if (count == 0) continue;
    u64 ns = statistics.nanoseconds[op].load();
    operations.set(
        fuse::name_of(static_cast<fuse::Op>(op)),
        Json::object({{"count", count},
                      {"errors", statistics.errors[op].load()},
                      {"mean_us", static_cast<f64>(ns) / 1000.0 / static_cast<f64>(count)}}));
  }
  struct Heads {
    WorkspaceInfo info;
    Seq last = 0, synced = 0;
  };
  Heads heads = bridge.with_workspace([](Workspace& w) {
    return Heads{w.info(), w.last_seq(), std::min(w.synced_seq(), w.last_seq())};
  });
  return Json::object({{"ok", true},
                       {"workspace", heads.info.name},
                       {"folder", spec.folder},
                       {"pid", i64{::getpid()}},
                       {"durability", name_of(spec.durability)},
                       {"epoch", heads.info.epoch},
                       {"last_seq", heads.last},
                       {"synced_seq", heads.synced},
                       {"replies_waiting", bridge.replies_waiting()},
                       {"operations", std::move(operations)}});
}

std::string prometheus_text(Bridge& bridge, const MountSpec& spec) {
  std::string out;
  std::string label = "{workspace=\"" + spec.workspace + "\"";
  auto line = [&](const std::string& name, const std::string& labels, u64 value) {
    out += name + label + labels + "} " + std::to_string(value) + "\n";
  };
  const OpStatistics& statistics = bridge.statistics();
  out += "# HELP agentfs_requests_total Requests of the kernel, by opcode.\n";
  out += "# TYPE agentfs_requests_total counter\n";
  for (u32 op = 0; op < fuse::kOpLimit; op++) {
    if (statistics.count[op].load() == 0) continue;
    std::string name = std::string(",op=\"") + fuse::name_of(static_cast<fuse::Op>(op)) + "\"";
    line("agentfs_requests_total", name, statistics.count[op].load());
  }
  out += "# HELP agentfs_request_errors_total Requests answered with an errno, by opcode.\n";
  out += "# TYPE agentfs_request_errors_total counter\n";
  for (u32 op = 0; op < fuse::kOpLimit; op++) {
    if (statistics.errors[op].load() == 0) continue;
    std::string name = std::string(",op=\"") + fuse::name_of(static_cast<fuse::Op>(op)) + "\"";
    line("agentfs_request_errors_total", name, statistics.errors[op].load());
  }
  auto [last, synced] = bridge.with_workspace(
      [](Workspace& w) { return std::pair{w.last_seq(), std::min(w.synced_seq(), w.last_seq())}; });
  out +=
      "# HELP agentfs_unsynced_records Changes in the journal that the disk does not have yet.\n";
  out += "# TYPE agentfs_unsynced_records gauge\n";
  line("agentfs_unsynced_records", "", last - synced);
  out += "# HELP agentfs_replies_waiting Replies held back until a sync.\n";
  out += "# TYPE agentfs_replies_waiting gauge\n";
  line("agentfs_replies_waiting", "", bridge.replies_waiting());
  return out;
}

}  // namespace fs
