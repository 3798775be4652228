// Extended attributes, locks and statfs.
#include "fs/serialiser/step.h"
#include "fs/state/keys.h"

#include <cerrno>

namespace fs {

namespace {

int check_xattr_name(std::string_view name) {
  if (name.empty() || name.size() > kXattrNameBytesMax) return ERANGE;
  for (std::string_view known : {"user.", "security.", "trusted."}) {
    if (name.starts_with(known) && name.size() > known.size()) return 0;
  }
  return EOPNOTSUPP;
}

HeldLock held_of(SessionId session, u64 owner, const LockRange& range) {
  return {session, owner, range.start, range.last, range.type == LockType::kWrite, range.pid};
}

}  // namespace

int Step::perform(const Getxattr& op) {
  Node* node = nullptr;
  if (int error = node_of(op.ino, node)) return error;
  if (node->attr.xattrs == 0) return ENODATA;
  if (auto loaded = s_.load_xattrs(op.ino, *node); !loaded.ok()) return code_of(loaded.error());
  auto at = node->xattrs->find(std::string(op.name));
  if (at == node->xattrs->end()) return ENODATA;
  effects_.reply.text = at->second;
  return 0;
}

int Step::perform(const Setxattr& op) {
  if (int error = check_xattr_name(op.name)) return error;
  if (op.value.size() > kXattrValueBytesMax) return E2BIG;
  Node* node = nullptr;
  if (int error = node_of(op.ino, node)) return error;
  if (auto loaded = s_.load_xattrs(op.ino, *node); !loaded.ok()) return code_of(loaded.error());
  auto at = node->xattrs->find(std::string(op.name));
  bool there = at != node->xattrs->end();
  if (there && op.flags == kXattrCreate) return EEXIST;
  if (!there && op.flags == kXattrReplace) return ENODATA;
  start(RecordOp::kSetxattr, op.ino);
  (*node->xattrs)[std::string(op.name)] = op.value;
  if (!there) ++node->attr.xattrs;
  node->attr.ctime_ns = request_.now_ns;
  touch(op.ino, *node);
  encode_put(late_, xattr_key(op.ino, op.name), op.value);
  return 0;
}

int Step::perform(const Listxattr& op) {
  Node* node = nullptr;
  if (int error = node_of(op.ino, node)) return error;
  if (node->attr.xattrs == 0) return 0;
  if (auto loaded = s_.load_xattrs(op.ino, *node); !loaded.ok()) return code_of(loaded.error());
  for (const auto& [name, value] : *node->xattrs) effects_.reply.text.append(name).push_back('\0');
  return 0;
}

int Step::perform(const Removexattr& op) {
  Node* node = nullptr;
  if (int error = node_of(op.ino, node)) return error;
  if (node->attr.xattrs == 0) return ENODATA;
  if (auto loaded = s_.load_xattrs(op.ino, *node); !loaded.ok()) return code_of(loaded.error());
  if (!node->xattrs->contains(std::string(op.name))) return ENODATA;
  start(RecordOp::kRemovexattr, op.ino);
  node->xattrs->erase(std::string(op.name));
  --node->attr.xattrs;
  node->attr.ctime_ns = request_.now_ns;
  touch(op.ino, *node);
  encode_delete(late_, xattr_key(op.ino, op.name));
  return 0;
}

int Step::perform(const Getlk& op) {
  const HeldLock* in_way = s_.locks_.conflict(LockTable::Space::kPosix, op.ino,
                                              held_of(request_.session, op.owner, op.lock));
  if (in_way != nullptr) {
    effects_.reply.lock = {in_way->start, in_way->last,
                           in_way->write ? LockType::kWrite : LockType::kRead, in_way->pid};
  } else {
    effects_.reply.lock = {};
  }
  return 0;
}

int Step::perform(const Setlk& op) {
  auto space = op.flock ? LockTable::Space::kFlock : LockTable::Space::kPosix;
  if (op.lock.start > op.lock.last) return EINVAL;
  HeldLock wanted = held_of(request_.session, op.owner, op.lock);
  if (op.lock.type == LockType::kUnlock) {
    s_.locks_.release(space, op.ino, wanted);
    effects_.granted = s_.locks_.grant_waiters();
    return 0;
  }
  if (s_.locks_.conflict(space, op.ino, wanted) == nullptr) {
    s_.locks_.acquire(space, op.ino, wanted);
    effects_.granted = s_.locks_.grant_waiters();  // a downgrade lets readers in
    return 0;
  }
  if (!op.wait) return EAGAIN;
  if (space == LockTable::Space::kPosix && s_.locks_.would_deadlock(space, op.ino, wanted)) {
    return EDEADLK;
  }
  s_.locks_.wait({request_.id, space, op.ino, wanted});
  effects_.reply_later = true;
  return 0;
}

int Step::perform(const CancelLock& op) {
  return s_.locks_.cancel(request_.session, op.request_id) ? 0 : ENOENT;
}

int Step::perform(const Statfs&) {
  StatfsReply& reply = effects_.reply.statfs;
  reply.bytes_total = s_.options_.bytes_quota;
  reply.inodes_total = s_.options_.inodes_quota;
  reply.bytes_used = s_.usage_.bytes;
  reply.inodes_used = s_.usage_.inodes;
  return 0;
}

}  // namespace fs
