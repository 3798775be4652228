// Rows of the store in the engine, and the Point they hold.
//
// A Point is a workspace at a moment: the tree `root`, which holds all up to `root_seq`, and
// stretches of log that follow it, oldest first, each in the journal of the workspace that wrote
// it. Points are copied, never changed: snapshot, fork and rollback are copies.
//
//   meta/store                {"format": 1, "next_workspace": n, "next_pack": n}
//   workspace/NAME            WorkspaceRow
//   snapshot/NAME/SNAPSHOT    SnapshotRow
//   lease/NUMBER              LeaseRow
//   pack/NUMBER               PackInfo (fs/pack/pack_set.h): published, its file is whole
//   packing/NUMBER            PackingRow: being written; not yet anybody's
//   secret/NAME               a text that all servers of a cluster share
// Decoders return nullopt for what is not such a row.
#pragma once

#include "base/clock.h"
#include "base/json.h"
#include "fs/pack/pack_set.h"
#include "fs/state/types.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fs {

struct Tail {
  u32 workspace = 0;
  Seq from = 0;
  Seq to = 0;  // inclusive
  bool operator==(const Tail&) const = default;
};

struct Point {
  PageId root = 0;
  Seq root_seq = 0;
  std::vector<Tail> tails;
  Seq end() const { return tails.empty() ? root_seq : tails.back().to; }
  bool operator==(const Point&) const = default;
};

struct WorkspaceRow {
  u32 number = 0;
  Point point;   // its own log follows point.end()
  Seq head = 0;  // its log is known to reach at least here, durably
  PageId next_page = 0;
  std::string parent;
  i64 created_ns = 0;
  u64 bytes_quota = 0;  // 0: none
  u64 inodes_quota = 0;
};
std::string encode_row(const WorkspaceRow& row);
std::optional<WorkspaceRow> decode_workspace_row(std::string_view value);

struct SnapshotRow {
  u32 workspace = 0;
  Point point;
  i64 created_ns = 0;
};
std::string encode_row(const SnapshotRow& row);
std::optional<SnapshotRow> decode_snapshot_row(std::string_view value);

struct LeaseRow {
  std::string holder;  // "" when free
  Epoch epoch = 0;
  i64 until_us = 0;     // wall clock; counts, with kClockSkewUs, for other machines and other boots
  bool wanted = false;  // somebody waits to take it: do not renew
  // Monotonic clock of the machine since the boot with this id: wall clocks jump.
  std::string boot;
  i64 until_monotonic_us = 0;
  // Of a store whose logs live in the engine: the folder (StoreImpl::place) of who has or had it.
  std::string place;
};
inline constexpr i64 kClockSkewUs = 2'000'000;
// From now on for `span_us`, by the clocks of this machine.
void extend_lease(LeaseRow& row, base::Clock& clock, i64 span_us);
bool lease_is_over(const LeaseRow& row, base::Clock& clock);
std::string encode_row(const LeaseRow& row);
std::optional<LeaseRow> decode_lease_row(std::string_view value);

// Who writes a pack. While that lease epoch lasts, collection leaves the file alone; when it has
// taken the row away, the pack cannot be published any more.
struct PackingRow {
  u32 workspace = 0;
  Epoch epoch = 0;
};
std::string encode_row(const PackingRow& row);
std::optional<PackingRow> decode_packing_row(std::string_view value);

std::string encode_row(const PackInfo& row);
std::optional<PackInfo> decode_pack_row(std::string_view value);

struct MetaRow {
  u32 next_workspace = 1;
  u64 next_pack = 1;
  StoreKey key{};           // of the packs' checks
  std::string blobs;        // where packs are, for servers that join; "" in one server's folder
  std::string wrapped_key;  // the data key under a user's key (fs/seal); "": not encrypted
};
std::string encode_row(const MetaRow& row);
std::optional<MetaRow> decode_meta_row(std::string_view value);

std::string workspace_key(std::string_view name);
std::string snapshot_key(std::string_view workspace, std::string_view name);
std::string lease_key(u32 number);
std::string pack_key(u64 number);
std::string packing_key(u64 number);
inline constexpr std::string_view kWorkspacePrefix = "workspace/";
inline constexpr std::string_view kSnapshotPrefix = "snapshot/";
inline constexpr std::string_view kMetaKey = "meta/store";

}  // namespace fs
