// Taking over records made elsewhere, and showing the whole state.
#include "fs/serialiser/serialiser.h"
#include "fs/state/codec.h"
#include "fs/state/keys.h"

#include <algorithm>

namespace fs {

namespace {

base::Error damaged(std::string_view what) {
  return base::Error(base::ErrorCode::kCorruption,
                     std::string(what) + " does not decode; run fsck on the workspace");
}

void apply_extent(std::vector<Extent>& extents, u64 offset, const std::optional<Extent>& extent) {
  auto at = std::lower_bound(extents.begin(), extents.end(), offset,
                             [](const Extent& e, u64 value) { return e.offset < value; });
  bool there = at != extents.end() && at->offset == offset;
  if (!extent) {
    if (there) extents.erase(at);
  } else if (there) {
    *at = *extent;
  } else {
    extents.insert(at, *extent);
  }
}

void apply_entry(Directory& entries, std::string_view name,
                 const std::optional<EntryValue>& value) {
  const Directory::Slot* slot = entries.find(name);
  if (slot != nullptr && value && slot->cookie == value->cookie) {
    entries.replace(name, value->ino, value->type);
    return;
  }
  if (slot != nullptr) entries.erase(name);
  if (value) entries.insert(name, value->ino, value->cookie, value->type);
}

}  // namespace

base::Status Serialiser::apply(std::string_view record) {
  auto header = decode_header(record);
  if (!header) return damaged("a log record");
  if (header->seq != last_seq_ + 1) {
    return base::Error(base::ErrorCode::kCorruption,
                       "log record " + std::to_string(header->seq) + " follows record " +
                           std::to_string(last_seq_) + "; the log has a gap or a duplicate");
  }
  TRY(load_usage());
  base::Status failed;
  base::Status walked = for_each_change(record, [&](const Change& change) {
    failed = apply_change(header->seq, change);
    return failed.ok();
  });
  if (!failed.ok()) return failed;
  if (!walked.ok()) return walked;
  last_seq_ = header->seq;
  return {};
}

base::Status Serialiser::apply_change(Seq seq, const Change& change) {
  auto key = parse_key(change.key);
  if (!key) return damaged("a key in the log");
  switch (key->kind) {
    case 'I':
      return apply_inode(seq, key->ino, change);
    case 'Q': {
      auto usage = decode_usage(change.value);
      if (!change.put || !usage) return damaged("the usage record");
      Usage own = usage_;
      usage_ = *usage;
      if (workspace_of(usage_.next_ino) != options_.workspace) usage_.next_ino = own.next_ino;
      if (workspace_of(usage_.next_data) != options_.workspace) usage_.next_data = own.next_data;
      return {};
    }
    case 'O':
      TRY(load_orphans());
      if (change.put) {
        orphans_[key->ino] = static_cast<SessionId>(FieldReader(change.value).varint());
      } else {
        orphans_.erase(key->ino);
      }
      return {};
    default:
      return apply_part(seq, *key, change);
  }
}

base::Status Serialiser::apply_inode(Seq seq, Ino ino, const Change& change) {
  if (!change.put) {
    forget_node(ino, seq);
    return {};
  }
  auto value = decode_inode(change.value);
  if (!value) return damaged("an inode in the log");
  Node* node = TRY(find_node(ino));
  if (node == nullptr) {
    node = &nodes_[ino];
    node->references = references_of(ino);
    deleted_.erase(ino);
  }
  bool spills =
      node->attr.extent_count <= kEmbeddedExtents && value->attr.extent_count > kEmbeddedExtents;
  node->attr = value->attr;
  node->symlink = std::move(value->symlink);
  node->changed = seq;
  if (value->attr.extent_count <= kEmbeddedExtents) {
    node->extents = std::move(value->extents);
    node->extents_loaded = true;
  } else if (spills) {
    node->extents.clear();  // all of them follow as C keys
    node->extents_loaded = true;
  }
  return {};
}

base::Status Serialiser::apply_part(Seq seq, const ParsedKey& key, const Change& change) {
  Node* node = TRY(find_node(key.ino));
  if (node == nullptr) return {};  // its inode went in the same record
  node->changed = seq;
  if (key.kind == 'C') {
    if (node->attr.extent_count <= kEmbeddedExtents) return {};  // they ride in the inode now
    TRY(load_extents(key.ino, *node));
    auto extent = change.put ? decode_extent(key.offset, change.value) : std::nullopt;
    if (change.put && !extent) return damaged("an extent in the log");
    apply_extent(node->extents, key.offset, extent);
    return {};
  }
  if (key.kind == 'D') {
    TRY(load_entries(key.ino, *node));
    auto entry = change.put ? decode_entry(change.value) : std::nullopt;
    if (change.put && !entry) return damaged("a directory entry in the log");
    apply_entry(*node->entries, key.name, entry);
    return {};
  }
  TRY(load_xattrs(key.ino, *node));
  if (change.put) {
    (*node->xattrs)[std::string(key.name)] = change.value;
  } else {
    node->xattrs->erase(std::string(key.name));
  }
  return {};
}

void Serialiser::forget_node(Ino ino, Seq seq) {
  nodes_.erase(ino);
  deleted_[ino] = seq;
}

namespace {

using KeyValues = std::map<std::string, std::string>;

void erase_prefix(KeyValues& all, const std::string& prefix) {
  auto from = all.lower_bound(prefix);
  auto to = from;
  while (to != all.end() && to->first.starts_with(prefix)) ++to;
  all.erase(from, to);
}

void dump_node(Ino ino, const Node& node, KeyValues& all) {
  std::string& inode = all[inode_key(ino)];
  inode.clear();
  encode_inode(node.attr, node.symlink, node.extents, inode);
  if (node.extents_loaded) {
    erase_prefix(all, extent_prefix(ino));
    if (node.attr.extent_count > kEmbeddedExtents) {
      for (const Extent& extent : node.extents) {
        encode_extent(extent, all[extent_key(ino, extent.offset)]);
      }
    }
  }
  if (node.entries) {
    erase_prefix(all, entry_prefix(ino));
    for (const Directory::Slot& slot : node.entries->slots()) {
      if (slot.ino == 0) continue;
      encode_entry({slot.ino, slot.cookie, slot.type}, all[entry_key(ino, slot.name)]);
    }
  }
  if (node.xattrs) {
    erase_prefix(all, xattr_prefix(ino));
    for (const auto& [name, value] : *node.xattrs) all[xattr_key(ino, name)] = value;
  }
}

}  // namespace

base::Result<KeyValues> Serialiser::dump() {
  TRY(load_usage());
  TRY(load_orphans());
  KeyValues all;
  if (base_) {
    TRY(base_->scan(
        "", [&](std::string_view key, std::string_view value) { all.emplace(key, value); }));
  }
  for (const auto& [ino, seq] : deleted_) {
    all.erase(inode_key(ino));
    for (const std::string& prefix : {extent_prefix(ino), entry_prefix(ino), xattr_prefix(ino)}) {
      erase_prefix(all, prefix);
    }
  }
  for (const auto& [ino, node] : nodes_) {
    if (node.changed > base_seq_) dump_node(ino, node, all);
  }
  erase_prefix(all, std::string(kOrphanPrefix));
  for (const auto& [ino, session] : orphans_) put_varint(all[orphan_key(ino)], session);
  std::string& usage = all[std::string(kUsageKey)];
  usage.clear();
  encode_usage(usage_, usage);
  return all;
}

std::string Serialiser::volatile_state() const {
  std::string text;
  for (const auto& [session, counts] : references_) {
    std::map<Ino, u64> sorted(counts.begin(), counts.end());
    for (const auto& [ino, count] : sorted) {
      text +=
          std::to_string(session) + ":" + std::to_string(ino) + "=" + std::to_string(count) + ";";
    }
  }
  return text + "|" + locks_.canonical();
}

}  // namespace fs
