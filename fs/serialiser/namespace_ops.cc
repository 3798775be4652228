// Looking up, making, linking, removing and listing names.
#include "fs/serialiser/step.h"
#include "fs/state/codec.h"
#include "fs/state/keys.h"
#include "fs/state/mutant.h"

#include <cerrno>

namespace fs {

int Step::perform(const Lookup& op) {
  if (op.name.size() > kNameBytesMax) return ENAMETOOLONG;
  Node* parent = nullptr;
  if (int error = directory_of(op.parent, parent)) return error;
  Ino ino = 0;
  Node* node = nullptr;
  if (op.name == "." || op.name == "..") {  // only a kernel that serves NFS asks
    ino = op.name == "." ? op.parent : parent->attr.parent;
    if (int error = node_of(ino, node)) return error;
  } else if (int error = child_of(*parent, op.name, ino, node)) {
    return error == ESTALE ? EIO : error;
  }
  hand_out(ino, *node);
  return 0;
}

int Step::perform(const Forget& op) {
  auto session = s_.references_.find(request_.session);
  if (session == s_.references_.end() && s_.options_.adopted) {
    session = s_.references_.try_emplace(request_.session).first;
  }
  if (session == s_.references_.end()) return 0;
  auto count = session->second.find(op.ino);
  if (count == session->second.end() && s_.options_.adopted) {
    count = session->second.emplace(op.ino, 0).first;
  }
  if (count == session->second.end()) return 0;
  u64 given = std::min(op.count, count->second);
  bool last_of_session = count->second == given;
  // The inode may be paged out: what is an orphan is asked of the orphans, not of the node.
  if (auto loaded = s_.load_orphans(); !loaded.ok()) return code_of(loaded.error());
  bool orphan_goes =
      last_of_session && s_.orphans_.contains(op.ino) && s_.references_of(op.ino) == given;
  Node* node = nullptr;
  if (FS_MUTANT(kForgetReclaimsEarly)) orphan_goes = s_.orphans_.contains(op.ino);
  if (FS_MUTANT(kOrphanNeverReclaimed)) orphan_goes = false;
  if (orphan_goes) {
    if (int error = node_of(op.ino, node)) return error;
    if (int error = load_whole(op.ino, *node)) return error;
  }
  count->second -= given;
  if (last_of_session) session->second.erase(count);
  if (session->second.empty()) s_.references_.erase(session);
  auto resident = s_.nodes_.find(op.ino);
  if (resident != s_.nodes_.end()) resident->second.references -= given;
  if (orphan_goes) {
    start(RecordOp::kReclaim, op.ino);
    reclaim(op.ino, *node);
  }
  return 0;
}

int Step::check_new(Ino parent, std::string_view name, Node*& node) {
  if (int error = check_name(name)) return error;
  if (int error = directory_of(parent, node)) return error;
  if (node->attr.nlink == 0) return ENOENT;  // a removed directory that somebody still stands in
  return node->entries->find(name) != nullptr ? EEXIST : 0;
}

int Step::make_child(RecordOp op, Ino parent, std::string_view name, u32 mode,
                     std::string_view target) {
  Node* directory = nullptr;
  if (int error = check_new(parent, name, directory)) return error;
  if (S_ISDIR(mode) && directory->attr.nlink >= kLinksMax) return EMLINK;
  if (int error = room_for_inode()) return error;
  Ino ino = take_ino(directory);
  start(op, ino);
  Node& node = make_node(ino, directory, mode);
  if (S_ISDIR(mode)) {
    node.attr.nlink = 2;
    node.attr.parent = parent;
    node.entries.emplace();
    ++directory->attr.nlink;
  }
  if (!target.empty()) {
    node.symlink = target;
    node.attr.size = target.size();
  }
  add_entry(parent, *directory, name, ino, node.attr.type());
  hand_out(ino, node);
  effects_.reply.created = true;
  return 0;
}

int Step::perform(const Create& op) {
  int error = make_child(RecordOp::kCreate, op.parent, op.name, S_IFREG | (op.mode & 07777), {});
  if (error != EEXIST || (op.exclusive && !FS_MUTANT(kExclusiveIgnored))) return error;
  Node* directory = nullptr;
  if (int missing = directory_of(op.parent, directory)) return missing;
  Ino ino = 0;
  Node* node = nullptr;
  if (int missing = child_of(*directory, op.name, ino, node)) return missing;
  if (node->attr.is_directory()) return EISDIR;
  if (op.truncate && node->attr.is_regular() && node->attr.size > 0) {
    if (int missing = file_of(ino, node)) return missing;
    start(RecordOp::kSetattr, ino);
    resize(ino, *node, 0);
  }
  hand_out(ino, *node);
  return 0;
}

int Step::perform(const Mkdir& op) {
  return make_child(RecordOp::kMkdir, op.parent, op.name, S_IFDIR | (op.mode & 07777), {});
}

int Step::perform(const Mknod& op) {
  u32 type = op.mode & S_IFMT;
  if (type == S_IFCHR || type == S_IFBLK) return EPERM;
  if (type != S_IFREG && type != S_IFIFO && type != S_IFSOCK) return EINVAL;
  return make_child(RecordOp::kMknod, op.parent, op.name, type | (op.mode & 07777), {});
}

int Step::perform(const Symlink& op) {
  if (op.target.empty()) return ENOENT;
  if (op.target.size() > kSymlinkBytesMax) return ENAMETOOLONG;
  return make_child(RecordOp::kSymlink, op.parent, op.name, S_IFLNK | 0777, op.target);
}

int Step::perform(const Tmpfile& op) {
  Node* directory = nullptr;
  if (int error = directory_of(op.parent, directory)) return error;
  if (directory->attr.nlink == 0) return ENOENT;
  if (int error = room_for_inode()) return error;
  if (auto loaded = s_.load_orphans(); !loaded.ok()) return code_of(loaded.error());
  Ino ino = take_ino(directory);
  start(RecordOp::kTmpfile, ino);
  Node& node = make_node(ino, directory, S_IFREG | (op.mode & 07777));
  node.attr.nlink = 0;
  s_.orphans_[ino] = request_.session;
  scratch_.clear();
  put_varint(scratch_, request_.session);
  writer_.put(orphan_key(ino), scratch_);
  hand_out(ino, node);
  effects_.reply.created = true;
  return 0;
}

int Step::perform(const Link& op) {
  Node* node = nullptr;
  if (int error = node_of(op.ino, node)) return error;
  if (node->attr.is_directory()) return EPERM;
  if (node->attr.nlink >= kLinksMax) return EMLINK;
  Node* directory = nullptr;
  if (int error = check_new(op.new_parent, op.new_name, directory)) return error;
  if (auto loaded = s_.load_orphans(); !loaded.ok()) return code_of(loaded.error());
  bool orphan = s_.orphans_.contains(op.ino);
  if (node->attr.nlink == 0 && !orphan) return ENOENT;
  start(RecordOp::kLink, op.ino);
  if (orphan) {  // a file made by O_TMPFILE gets its name
    s_.orphans_.erase(op.ino);
    writer_.remove(orphan_key(op.ino));
  }
  if (!FS_MUTANT(kLinkNotCounted)) ++node->attr.nlink;
  node->attr.ctime_ns = request_.now_ns;
  touch(op.ino, *node);
  add_entry(op.new_parent, *directory, op.new_name, op.ino, node->attr.type());
  hand_out(op.ino, *node);
  return 0;
}

int Step::perform(const Unlink& op) {
  if (int error = check_name(op.name)) return error == EINVAL ? ENOENT : error;
  Node* directory = nullptr;
  if (int error = directory_of(op.parent, directory)) return error;
  Ino ino = 0;
  Node* node = nullptr;
  if (int error = child_of(*directory, op.name, ino, node)) return error;
  if (node->attr.is_directory()) return EISDIR;
  if (int error = load_whole(ino, *node)) return error;
  start(RecordOp::kUnlink, ino);
  drop_entry(op.parent, *directory, op.name);
  drop_link(ino, *node);
  return 0;
}

int Step::perform(const Rmdir& op) {
  if (op.name == ".") return EINVAL;
  if (op.name == "..") return ENOTEMPTY;
  if (int error = check_name(op.name)) return error == EINVAL ? ENOENT : error;
  Node* directory = nullptr;
  if (int error = directory_of(op.parent, directory)) return error;
  Ino ino = 0;
  Node* node = nullptr;
  if (int error = child_of(*directory, op.name, ino, node)) return error;
  if (!node->attr.is_directory()) return ENOTDIR;
  if (node->attr.size > 0 && !FS_MUTANT(kFullDirectoryRemoved)) return ENOTEMPTY;
  if (int error = load_whole(ino, *node)) return error;
  start(RecordOp::kRmdir, ino);
  --directory->attr.nlink;
  drop_entry(op.parent, *directory, op.name);
  drop_link(ino, *node);
  return 0;
}

int Step::perform(const Readlink& op) {
  Node* node = nullptr;
  if (int error = node_of(op.ino, node)) return error;
  if (node->attr.type() != FileType::kSymlink) return EINVAL;
  effects_.reply.text = node->symlink;
  return 0;
}

namespace {
u64 entry_bytes(std::string_view name, bool plus) {
  return ((plus ? 152u : 24u) + name.size() + 7) & ~u64{7};
}
}  // namespace

int Step::perform(const Readdir& op) {
  Node* directory = nullptr;
  if (int error = directory_of(op.ino, directory)) return error;
  Reply& reply = effects_.reply;
  u64 used = 0;
  auto add = [&](std::string_view name, Ino ino, u64 cookie, const Attributes& attr,
                 FileType type) {
    used += entry_bytes(name, op.plus);
    if (used > op.bytes_max || reply.entries.size() >= op.entries_max) return false;
    reply.entries.push_back({name, ino, cookie, type, op.plus ? attr : Attributes{}});
    return true;
  };
  if (op.after < 1 && !add(".", op.ino, 1, directory->attr, FileType::kDirectory)) return 0;
  if (op.after < 2) {
    Node* up = nullptr;
    Ino parent = directory->attr.parent;
    if (node_of(parent, up) != 0) parent = op.ino, up = directory;
    if (!add("..", parent, 2, up->attr, FileType::kDirectory)) return 0;
  }
  const auto& slots = directory->entries->slots();
  size_t skipped = FS_MUTANT(kListingSkipsOne) && op.after >= 3 ? 1 : 0;
  if (FS_MUTANT(kListingRepeatsOne) && op.after >= 3) skipped = ~size_t{0};  // one back
  for (size_t i = directory->entries->first_after(op.after) + skipped; i < slots.size(); ++i) {
    const Directory::Slot& slot = slots[i];
    if (slot.ino == 0) continue;
    Node* node = directory;
    if (op.plus) {
      if (int error = node_of(slot.ino, node)) {
        if (!reply.entries.empty()) return 0;  // what we have; the next call meets the error again
        return error;
      }
    }
    if (!add(slot.name, slot.ino, slot.cookie, node->attr, slot.type)) return 0;
    if (op.plus) reference(slot.ino, *node);
  }
  reply.end_of_directory = true;
  return 0;
}

int Step::perform(const EndSession&) {
  if (auto loaded = s_.load_orphans(); !loaded.ok()) return code_of(loaded.error());
  auto session = s_.references_.find(request_.session);
  auto ours = [&](Ino ino) {
    if (session == s_.references_.end()) return u64{0};
    auto count = session->second.find(ino);
    return count == session->second.end() ? 0 : count->second;
  };
  std::vector<std::pair<Ino, Node*>> doomed;
  for (const auto& [ino, owner] : s_.orphans_) {
    if (s_.references_of(ino) != ours(ino)) continue;
    Node* node = nullptr;
    if (int error = node_of(ino, node)) return error;
    if (int error = load_whole(ino, *node)) return error;
    doomed.emplace_back(ino, node);
  }
  if (session != s_.references_.end()) {
    for (const auto& [ino, count] : session->second) {
      auto resident = s_.nodes_.find(ino);
      if (resident != s_.nodes_.end()) resident->second.references -= count;
    }
    s_.references_.erase(session);
  }
  s_.locks_.end_session(request_.session);
  effects_.granted = s_.locks_.grant_waiters();
  if (doomed.empty()) return 0;
  start(RecordOp::kReclaim, doomed.front().first);
  for (auto& [ino, node] : doomed) reclaim(ino, *node);
  return 0;
}

}  // namespace fs
