#include "fs/serialiser/serialiser.h"

#include "base/check.h"
#include "base/hash.h"
#include "fs/serialiser/step.h"
#include "fs/state/codec.h"
#include "fs/state/keys.h"

#include <algorithm>

namespace fs {

namespace {

base::Error damaged(std::string_view what) {
  return base::Error(base::ErrorCode::kCorruption,
                     std::string(what) + " does not decode; run fsck on the workspace");
}

}  // namespace

void Effects::clear() {
  reply.error = 0;
  reply.ino = 0;
  reply.created = false;
  reply.size = 0;
  reply.text.clear();
  reply.entries.clear();
  reply.end_of_directory = false;
  reply.pieces.clear();
  record.clear();
  seq = 0;
  data = 0;
  reply_later = false;
  granted.clear();
  invalidations.clear();
}

Serialiser::Serialiser(Options options, std::shared_ptr<const BaseState> base, Seq last_seq)
    : options_(options), base_(std::move(base)), base_seq_(last_seq), last_seq_(last_seq) {
  usage_.next_ino = first_id_of(options_.workspace) + 1;
  usage_.next_data = first_id_of(options_.workspace) + 1;
}

void Serialiser::create_root(const Request& request, u32 mode, Effects& effects) {
  effects.clear();
  Step(*this, request, effects).make_root(mode);
}

void Serialiser::step(const Request& request, Effects& effects) {
  effects.clear();
  Step(*this, request, effects).run();
}

u64 Serialiser::references_of(Ino ino) const {
  u64 sum = 0;
  for (const auto& [session, counts] : references_) {
    auto at = counts.find(ino);
    if (at != counts.end()) sum += at->second;
  }
  return sum;
}

std::vector<Ino> Serialiser::referenced() const {
  std::vector<Ino> all;
  for (const auto& [session, counts] : references_) {
    for (const auto& [ino, count] : counts) all.push_back(ino);
  }
  return all;
}

std::unordered_set<DataId> Serialiser::data_in_use() const {
  std::unordered_set<DataId> all;
  for (const auto& [ino, node] : nodes_) {
    for (const Extent& extent : node.extents) all.insert(extent.data);
  }
  return all;
}

base::Result<Node*> Serialiser::find_node(Ino ino) {
  auto at = nodes_.find(ino);
  if (at != nodes_.end()) return &at->second;
  if (!base_ || deleted_.contains(ino)) return static_cast<Node*>(nullptr);
  auto value = TRY(base_->get(inode_key(ino)));
  if (!value) return static_cast<Node*>(nullptr);
  auto inode = decode_inode(*value);
  if (!inode) return damaged("an inode");
  Node& node = nodes_[ino];
  node.attr = inode->attr;
  node.symlink = std::move(inode->symlink);
  node.extents = std::move(inode->extents);
  node.extents_loaded = node.attr.extent_count <= kEmbeddedExtents;
  node.references = references_of(ino);
  return &node;
}

base::Status Serialiser::load_entries(Ino ino, Node& node) {
  if (node.entries) return {};
  std::vector<Directory::Slot> slots;
  bool good = true;
  if (base_) {
    std::string prefix = entry_prefix(ino);
    TRY(base_->scan(prefix, [&](std::string_view key, std::string_view value) {
      auto entry = decode_entry(value);
      good = good && entry && key.size() > prefix.size();
      if (!good) return;
      slots.push_back(
          {std::string(key.substr(prefix.size())), entry->ino, entry->cookie, entry->type});
    }));
  }
  if (!good) return damaged("a directory entry");
  node.entries.emplace().assign(std::move(slots));
  return {};
}

base::Status Serialiser::load_extents(Ino ino, Node& node) {
  if (node.extents_loaded) return {};
  std::vector<Extent> extents;
  bool good = true;
  if (base_) {
    TRY(base_->scan(extent_prefix(ino), [&](std::string_view key, std::string_view value) {
      auto parsed = parse_key(key);
      auto extent = parsed ? decode_extent(parsed->offset, value) : std::nullopt;
      good = good && extent && (extents.empty() || extents.back().end() <= extent->offset);
      if (good) extents.push_back(*extent);
    }));
  }
  if (!good) return damaged("an extent");
  node.extents = std::move(extents);
  node.extents_loaded = true;
  return {};
}

base::Status Serialiser::load_xattrs(Ino ino, Node& node) {
  if (node.xattrs) return {};
  std::map<std::string, std::string> xattrs;
  if (base_) {
    std::string prefix = xattr_prefix(ino);
    TRY(base_->scan(prefix, [&](std::string_view key, std::string_view value) {
      xattrs.emplace(key.substr(prefix.size()), value);
    }));
  }
  node.xattrs.emplace() = std::move(xattrs);
  return {};
}

base::Status Serialiser::load_orphans() {
  if (orphans_loaded_) return {};
  std::map<Ino, SessionId> orphans;
  if (base_) {
    TRY(base_->scan(kOrphanPrefix, [&](std::string_view key, std::string_view value) {
      auto parsed = parse_key(key);
      if (parsed) orphans[parsed->ino] = static_cast<SessionId>(FieldReader(value).varint());
    }));
  }
  orphans_ = std::move(orphans);
  orphans_loaded_ = true;
  return {};
}

base::Status Serialiser::load_usage() {
  if (usage_loaded_) return {};
  if (base_) {
    auto value = TRY(base_->get(kUsageKey));
    if (value) {
      auto usage = decode_usage(*value);
      if (!usage) return damaged("the usage record");
      Usage fresh = usage_;
      usage_ = *usage;
      // In a fork the numbers of the parent stay the parent's.
      if (workspace_of(usage_.next_ino) != options_.workspace) usage_.next_ino = fresh.next_ino;
      if (workspace_of(usage_.next_data) != options_.workspace) usage_.next_data = fresh.next_data;
    }
  }
  usage_loaded_ = true;
  return {};
}

base::Result<std::vector<Ino>> Serialiser::orphans() {
  TRY(load_orphans());
  std::vector<Ino> unreferenced;
  for (const auto& [ino, session] : orphans_) {
    if (references_of(ino) == 0) unreferenced.push_back(ino);
  }
  return unreferenced;
}

u64 Serialiser::extents_fingerprint(Ino ino, u64 offset, u64 length) {
  auto found = find_node(ino);
  if (!found.ok() || *found == nullptr || !load_extents(ino, **found).ok()) return 0;
  u64 sum = base::xxh3({});
  for (const Extent& extent : (*found)->extents) {
    if (extent.end() <= offset || extent.offset >= offset + length) continue;
    u64 words[4] = {extent.offset, extent.length, extent.data_offset, extent.data};
    sum = base::xxh3({reinterpret_cast<const u8*>(words), sizeof words}, sum);
  }
  return sum;
}

std::vector<Ino> Serialiser::take_fragmented() {
  return std::exchange(fragmented_, {});
}

void Serialiser::set_base(std::shared_ptr<const BaseState> base, Seq seq) {
  CHECK(seq <= last_seq_);
  base_ = std::move(base);
  base_seq_ = seq;
  std::erase_if(deleted_, [&](const auto& item) { return item.second <= seq; });
}

size_t Serialiser::evict(size_t nodes_max) {
  size_t before = nodes_.size();
  for (auto at = nodes_.begin(); at != nodes_.end() && nodes_.size() > nodes_max;) {
    bool clean = at->second.changed <= base_seq_ && at->first != kRootIno;
    at = clean ? nodes_.erase(at) : std::next(at);
  }
  return before - nodes_.size();
}

}  // namespace fs
