#include "fs/store/point.h"

#include "base/files.h"
#include "base/hash.h"

#include <cstdlib>

namespace fs {

using base::Json;

namespace {

Json point_json(const Point& point) {
  Json tails = Json::array();
  for (const Tail& tail : point.tails) {
    tails.push(Json::array({u64{tail.workspace}, tail.from, tail.to}));
  }
  return Json::object({{"root", point.root}, {"root_seq", point.root_seq}, {"tails", tails}});
}

u64 number_of(const Json& json) {
  return static_cast<u64>(json.as_int());
}

std::optional<Point> point_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  Point point;
  point.root = number_of(json["root"]);
  point.root_seq = number_of(json["root_seq"]);
  for (const Json& item : json["tails"].items()) {
    Tail tail{static_cast<u32>(number_of(item[0])), number_of(item[1]), number_of(item[2])};
    if (tail.from != point.end() + 1 || tail.to < tail.from) return std::nullopt;
    point.tails.push_back(tail);
  }
  return point;
}

std::optional<Json> parsed(std::string_view value) {
  auto json = Json::parse(value);
  if (!json.ok() || !json->is_object()) return std::nullopt;
  return *json;
}

}  // namespace

std::string encode_row(const WorkspaceRow& row) {
  return Json::object({{"number", row.number},
                       {"point", point_json(row.point)},
                       {"head", row.head},
                       {"next_page", row.next_page},
                       {"parent", row.parent},
                       {"created_ns", row.created_ns},
                       {"bytes_quota", row.bytes_quota},
                       {"inodes_quota", row.inodes_quota}})
      .dump();
}

std::optional<WorkspaceRow> decode_workspace_row(std::string_view value) {
  auto json = parsed(value);
  if (!json) return std::nullopt;
  auto point = point_of((*json)["point"]);
  if (!point) return std::nullopt;
  WorkspaceRow row;
  row.number = static_cast<u32>((*json)["number"].as_int());
  row.point = *point;
  row.head = number_of((*json)["head"]);
  row.next_page = number_of((*json)["next_page"]);
  row.parent = (*json)["parent"].as_string();
  row.created_ns = (*json)["created_ns"].as_int();
  row.bytes_quota = number_of((*json)["bytes_quota"]);
  row.inodes_quota = number_of((*json)["inodes_quota"]);
  if (row.number == 0) return std::nullopt;
  return row;
}

std::string encode_row(const SnapshotRow& row) {
  return Json::object({{"workspace", row.workspace},
                       {"point", point_json(row.point)},
                       {"created_ns", row.created_ns}})
      .dump();
}

std::optional<SnapshotRow> decode_snapshot_row(std::string_view value) {
  auto json = parsed(value);
  if (!json) return std::nullopt;
  auto point = point_of((*json)["point"]);
  if (!point) return std::nullopt;
  return SnapshotRow{static_cast<u32>((*json)["workspace"].as_int()), *point,
                     (*json)["created_ns"].as_int()};
}

std::string encode_row(const LeaseRow& row) {
  return Json::object({{"holder", row.holder},
                       {"epoch", row.epoch},
                       {"until_us", row.until_us},
                       {"boot", row.boot},
                       {"until_monotonic_us", row.until_monotonic_us},
                       {"wanted", row.wanted},
                       {"place", row.place}})
      .dump();
}

namespace {

const std::string& boot_id() {
  static const std::string id =
      base::read_file("/proc/sys/kernel/random/boot_id").value_or("unknown");
  return id;
}

}  // namespace

void extend_lease(LeaseRow& row, base::Clock& clock, i64 span_us) {
  row.until_us = clock.wall_us() + span_us;
  row.until_monotonic_us = clock.monotonic_us() + span_us;
  row.boot = boot_id();
}

bool lease_is_over(const LeaseRow& row, base::Clock& clock) {
  if (row.boot == boot_id()) return row.until_monotonic_us <= clock.monotonic_us();
  return row.until_us + kClockSkewUs <= clock.wall_us();
}

std::optional<LeaseRow> decode_lease_row(std::string_view value) {
  auto json = parsed(value);
  if (!json) return std::nullopt;
  return LeaseRow{(*json)["holder"].as_string(), number_of((*json)["epoch"]),
                  (*json)["until_us"].as_int(),  (*json)["wanted"].as_bool(),
                  (*json)["boot"].as_string(),   (*json)["until_monotonic_us"].as_int(),
                  (*json)["place"].as_string()};
}

std::string encode_row(const PackingRow& row) {
  return Json::object({{"workspace", row.workspace}, {"epoch", row.epoch}}).dump();
}

std::optional<PackingRow> decode_packing_row(std::string_view value) {
  auto json = parsed(value);
  if (!json) return std::nullopt;
  return PackingRow{static_cast<u32>((*json)["workspace"].as_int()), number_of((*json)["epoch"])};
}

std::string encode_row(const PackInfo& row) {
  Json ranges = Json::array();
  for (auto [first, last] : row.ranges) ranges.push(Json::array({first, last}));
  return Json::object({{"number", row.number},
                       {"ranges", ranges},
                       {"bytes", row.bytes},
                       {"slots", row.slots}})
      .dump();
}

std::optional<PackInfo> decode_pack_row(std::string_view value) {
  auto json = parsed(value);
  if (!json) return std::nullopt;
  PackInfo row;
  row.number = number_of((*json)["number"]);
  row.bytes = number_of((*json)["bytes"]);
  row.slots = number_of((*json)["slots"]);
  for (const Json& range : (*json)["ranges"].items()) {
    row.ranges.emplace_back(number_of(range[0]), number_of(range[1]));
    if (row.ranges.back().second < row.ranges.back().first) return std::nullopt;
  }
  if (row.number == 0) return std::nullopt;
  return row;
}

std::string encode_row(const MetaRow& row) {
  Json json = Json::object({{"format", row.wrapped_key.empty() ? 1 : 2},
                            {"next_workspace", row.next_workspace},
                            {"next_pack", row.next_pack},
                            {"key", base::to_hex(row.key)},
                            {"blobs", row.blobs}});
  if (!row.wrapped_key.empty()) json.set("wrapped_key", row.wrapped_key);
  return json.dump();
}

std::optional<MetaRow> decode_meta_row(std::string_view value) {
  auto json = parsed(value);
  if (!json) return std::nullopt;
  MetaRow row;
  // Programs from before encryption must not take an encrypted store for one of theirs.
  row.wrapped_key = (*json)["wrapped_key"].as_string();
  if ((*json)["format"].as_int() != (row.wrapped_key.empty() ? 1 : 2)) return std::nullopt;
  row.next_workspace = static_cast<u32>((*json)["next_workspace"].as_int());
  row.next_pack = number_of((*json)["next_pack"]);
  row.blobs = (*json)["blobs"].as_string();
  const std::string& hex = (*json)["key"].as_string();
  if (hex.size() != row.key.size() * 2) return std::nullopt;
  for (size_t i = 0; i < row.key.size(); ++i) {
    row.key[i] = static_cast<u8>(std::strtoul(hex.substr(i * 2, 2).c_str(), nullptr, 16));
  }
  return row;
}

std::string workspace_key(std::string_view name) {
  return "workspace/" + std::string(name);
}
std::string snapshot_key(std::string_view workspace, std::string_view name) {
  return "snapshot/" + std::string(workspace) + "/" + std::string(name);
}
std::string pack_key(u64 number) {
  return "pack/" + std::to_string(number);
}
std::string packing_key(u64 number) {
  return "packing/" + std::to_string(number);
}
std::string lease_key(u32 number) {
  return "lease/" + std::to_string(number);
}

}  // namespace fs
