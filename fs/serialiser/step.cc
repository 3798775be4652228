#include "fs/serialiser/step.h"

#include "base/check.h"
#include "fs/state/codec.h"
#include "fs/state/keys.h"
#include "fs/state/mutant.h"

#include <cerrno>

namespace fs {

int check_name(std::string_view name) {
  if (name.size() > kNameBytesMax) return ENAMETOOLONG;
  bool plain = !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
               name.find('\0') == name.npos;
  return plain ? 0 : EINVAL;
}

void Step::run() {
  int error = 0;
  if (auto loaded = s_.load_usage(); !loaded.ok()) {
    error = code_of(loaded.error());
  } else {
    error = std::visit([this](const auto& op) { return perform(op); }, request_.operation);
  }
  effects_.reply.error = error;
  CHECK(error == 0 || !started_);  // a failing step has changed nothing
  if (started_) finish();
}

void Step::make_root(u32 mode) {
  CHECK(s_.last_seq_ == 0 && s_.nodes_.empty());
  s_.usage_loaded_ = true;
  start(RecordOp::kRoot, kRootIno);
  Node& root = make_node(kRootIno, nullptr, S_IFDIR | (mode & 07777));
  root.attr.nlink = 2;
  root.attr.parent = kRootIno;
  root.entries.emplace();
  finish();
}

// --- paging in ---

int Step::code_of(const base::Error& error) {
  return error.code() == base::ErrorCode::kBusy ? kRetryAfterLoad : EIO;
}

int Step::node_of(Ino ino, Node*& node) {
  auto found = s_.find_node(ino);
  if (!found.ok()) return code_of(found.error());
  node = *found;
  return node == nullptr ? ESTALE : 0;
}

int Step::directory_of(Ino ino, Node*& node) {
  if (int error = node_of(ino, node)) return error;
  if (!node->attr.is_directory()) return ENOTDIR;
  auto loaded = s_.load_entries(ino, *node);
  return loaded.ok() ? 0 : code_of(loaded.error());
}

int Step::file_of(Ino ino, Node*& node) {
  if (int error = node_of(ino, node)) return error;
  if (node->attr.is_directory()) return EISDIR;
  if (!node->attr.is_regular()) return EINVAL;
  auto loaded = s_.load_extents(ino, *node);
  return loaded.ok() ? 0 : code_of(loaded.error());
}

int Step::child_of(Node& directory, std::string_view name, Ino& ino, Node*& node) {
  const Directory::Slot* slot = directory.entries->find(name);
  if (slot == nullptr) return ENOENT;
  ino = slot->ino;
  return node_of(ino, node);
}

int Step::load_whole(Ino ino, Node& node) {
  auto loaded = s_.load_extents(ino, node);
  if (loaded.ok() && node.attr.xattrs > 0) loaded = s_.load_xattrs(ino, node);
  if (loaded.ok()) loaded = s_.load_orphans();
  return loaded.ok() ? 0 : code_of(loaded.error());
}

// --- the record ---

void Step::start(RecordOp op, Ino ino) {
  CHECK(!started_);
  started_ = true;
  writer_.start();
  header_.seq = s_.last_seq_ + 1;
  header_.epoch = s_.options_.epoch;
  header_.time_ns = request_.now_ns;
  header_.ino = ino;
  header_.uid = request_.who.uid;
  header_.pid = request_.who.pid;
  header_.session = request_.session;
  header_.op = op;
  header_.call = static_cast<u32>(request_.id >> 1) & kCallMask;  // the kernel counts by twos
}

void Step::touch(Ino ino, Node& node) {
  node.changed = header_.seq;
  for (const auto& [known, pointer] : touched_) {
    if (known == ino) return;
  }
  touched_.emplace_back(ino, &node);
}

void Step::finish() {
  for (const auto& [ino, node] : touched_) {
    scratch_.clear();
    encode_inode(node->attr, node->symlink, node->extents, scratch_);
    writer_.put(inode_key(ino), scratch_);
    publish(Invalidation::Kind::kAttributes, ino);
  }
  writer_.append(late_);
  if (usage_changed_) {
    scratch_.clear();
    encode_usage(s_.usage_, scratch_);
    writer_.put(kUsageKey, scratch_);
  }
  s_.last_seq_ = header_.seq;
  effects_.seq = header_.seq;
  effects_.data = header_.data;
  writer_.finish(header_);
}

void Step::publish(Invalidation::Kind kind, Ino ino, std::string_view name) {
  if (s_.options_.publish) effects_.invalidations.push_back({kind, ino, std::string(name)});
}

// --- entries and inodes ---

void Step::stamp_directory(Ino ino, Node& node) {
  node.attr.mtime_ns = node.attr.ctime_ns = request_.now_ns;
  touch(ino, node);
}

void Step::put_entry(Ino directory, std::string_view name, const EntryValue& value) {
  scratch_.clear();
  encode_entry(value, scratch_);
  writer_.put(entry_key(directory, name), scratch_);
  publish(Invalidation::Kind::kEntry, directory, name);
}

void Step::add_entry(Ino directory, Node& node, std::string_view name, Ino ino, FileType type) {
  u64 cookie = node.attr.next_cookie++;
  node.entries->insert(name, ino, cookie, type);
  ++node.attr.size;
  stamp_directory(directory, node);
  put_entry(directory, name, {ino, cookie, type});
}

void Step::point_entry(Ino directory, Node& node, std::string_view name, Ino ino, FileType type) {
  if (FS_MUTANT(kReplacedEntryMoves)) {
    drop_entry(directory, node, name);
    return add_entry(directory, node, name, ino, type);
  }
  node.entries->replace(name, ino, type);
  stamp_directory(directory, node);
  put_entry(directory, name, {ino, node.entries->find(name)->cookie, type});
}

void Step::drop_entry(Ino directory, Node& node, std::string_view name) {
  writer_.remove(entry_key(directory, name));
  publish(Invalidation::Kind::kEntry, directory, name);
  node.entries->erase(name);
  --node.attr.size;
  stamp_directory(directory, node);
}

int Step::room_for_inode() const {
  return s_.usage_.inodes < s_.options_.inodes_quota ? 0 : EDQUOT;
}

int Step::room_for_bytes(u64 more) const {
  return s_.usage_.bytes + more <= s_.options_.bytes_quota ? 0 : ENOSPC;
}

// Files take numbers from a run that their directory has reserved.
Ino Step::take_ino(Node* directory) {
  constexpr u64 kRun = 64;
  put_usage();
  if (directory == nullptr) return s_.usage_.next_ino++;
  Directory& entries = *directory->entries;
  if (entries.run_next == entries.run_end) {
    // The first entries of a directory come one by one, so that small directories waste nothing.
    u64 run = entries.size() < 8 ? 1 : kRun;
    entries.run_next = s_.usage_.next_ino;
    entries.run_end = entries.run_next + run;
    s_.usage_.next_ino = entries.run_end;
  }
  return entries.run_next++;
}

Node& Step::make_node(Ino ino, Node* parent, u32 mode) {
  Node& node = s_.nodes_[ino];
  Attributes& attr = node.attr;
  attr.mode = mode;
  attr.uid = request_.who.uid;
  attr.gid = request_.who.gid;
  if (parent != nullptr && (parent->attr.mode & S_ISGID)) {
    attr.gid = parent->attr.gid;
    if (S_ISDIR(mode)) attr.mode |= S_ISGID;
  }
  attr.nlink = 1;
  attr.atime_ns = attr.mtime_ns = attr.ctime_ns = attr.btime_ns = request_.now_ns;
  node.extents_loaded = true;
  node.xattrs.emplace();
  ++s_.usage_.inodes;
  put_usage();
  touch(ino, node);
  return node;
}

void Step::drop_link(Ino ino, Node& node) {
  node.attr.ctime_ns = request_.now_ns;
  if (node.attr.is_directory()) {
    node.attr.nlink = 0;
  } else {
    --node.attr.nlink;
  }
  if (node.attr.nlink > 0) {
    touch(ino, node);
  } else if ((node.references > 0 || s_.options_.adopted) && !FS_MUTANT(kReferencedReclaimed)) {
    s_.orphans_[ino] = request_.session;
    scratch_.clear();
    put_varint(scratch_, request_.session);
    writer_.put(orphan_key(ino), scratch_);
    touch(ino, node);
  } else {
    reclaim(ino, node);
  }
}

void Step::reclaim(Ino ino, Node& node) {
  std::erase_if(touched_, [&](const auto& item) { return item.first == ino; });
  if (s_.orphans_.erase(ino) > 0) writer_.remove(orphan_key(ino));
  writer_.remove(inode_key(ino));
  if (node.attr.extent_count > kEmbeddedExtents) {
    for (const Extent& extent : node.extents) writer_.remove(extent_key(ino, extent.offset));
  }
  if (node.attr.xattrs > 0) {
    for (const auto& [name, value] : *node.xattrs) writer_.remove(xattr_key(ino, name));
  }
  s_.usage_.bytes -= node.attr.allocated;
  --s_.usage_.inodes;
  put_usage();
  s_.forget_node(ino, header_.seq);
}

void Step::reference(Ino ino, Node& node) {
  ++node.references;
  ++s_.references_[request_.session][ino];
}

void Step::hand_out(Ino ino, Node& node) {
  reference(ino, node);
  effects_.reply.ino = ino;
  effects_.reply.attr = node.attr;
}

}  // namespace fs
