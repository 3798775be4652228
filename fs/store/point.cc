#include "fs/store/point.h"

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
                       {"created_ns", row.created_ns}})
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
                       {"wanted", row.wanted}})
      .dump();
}

std::optional<LeaseRow> decode_lease_row(std::string_view value) {
  auto json = parsed(value);
  if (!json) return std::nullopt;
  return LeaseRow{(*json)["holder"].as_string(), number_of((*json)["epoch"]),
                  (*json)["until_us"].as_int(), (*json)["wanted"].as_bool()};
}

std::string encode_row(const MetaRow& row) {
  return Json::object(
             {{"format", 1}, {"next_workspace", row.next_workspace}, {"next_pack", row.next_pack}})
      .dump();
}

std::optional<MetaRow> decode_meta_row(std::string_view value) {
  auto json = parsed(value);
  if (!json || (*json)["format"].as_int() != 1) return std::nullopt;
  return MetaRow{static_cast<u32>((*json)["next_workspace"].as_int()),
                 number_of((*json)["next_pack"])};
}

std::string workspace_key(std::string_view name) {
  return "workspace/" + std::string(name);
}
std::string snapshot_key(std::string_view workspace, std::string_view name) {
  return "snapshot/" + std::string(workspace) + "/" + std::string(name);
}
std::string lease_key(u32 number) {
  return "lease/" + std::to_string(number);
}

}  // namespace fs
