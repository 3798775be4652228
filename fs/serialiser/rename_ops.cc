// rename(2) with its flags. Directory loops are found by walking up from the new parent.
#include "fs/serialiser/step.h"
#include "fs/state/keys.h"
#include "fs/state/mutant.h"

#include <cerrno>

namespace fs {

int Step::load_rename(const Rename& op, RenameParts& parts) {
  if (int error = check_name(op.name)) return error;
  if (int error = check_name(op.new_name)) return error;
  if (int error = directory_of(op.parent, parts.from)) return error;
  if (int error = directory_of(op.new_parent, parts.to)) return error;
  if (int error = child_of(*parts.from, op.name, parts.source_ino, parts.source)) return error;
  int error = child_of(*parts.to, op.new_name, parts.target_ino, parts.target);
  if (error != 0 && error != ENOENT) return error;
  if (parts.to->attr.nlink == 0) return ENOENT;
  if (parts.target != nullptr) return load_whole(parts.target_ino, *parts.target);
  return 0;
}

int Step::is_inside(Ino directory, Ino ancestor, bool& inside) {
  inside = false;
  if (FS_MUTANT(kLoopsAllowed)) return 0;
  for (Ino at = directory;;) {
    if (at == ancestor) {
      inside = true;
      return 0;
    }
    if (at == kRootIno) return 0;
    Node* node = nullptr;
    if (int error = node_of(at, node)) return error;
    at = node->attr.parent;
  }
}

int Step::check_rename(const Rename& op, const RenameParts& parts) {
  bool exchange = op.flags == kRenameExchange;
  if (op.flags > kRenameExchange) return EINVAL;
  if (exchange && parts.target == nullptr) return ENOENT;
  bool replaces = op.flags == kRenameNoReplace && parts.target != nullptr;
  if (replaces && !FS_MUTANT(kNoReplaceIgnored)) return EEXIST;
  bool source_directory = parts.source->attr.is_directory();
  bool target_directory = parts.target != nullptr && parts.target->attr.is_directory();
  bool inside = false;
  if (source_directory && op.parent != op.new_parent) {
    if (int error = is_inside(op.new_parent, parts.source_ino, inside)) return error;
    if (inside) return EINVAL;
  }
  if (target_directory && op.parent != op.new_parent) {
    if (int error = is_inside(op.parent, parts.target_ino, inside)) return error;
    if (inside) return exchange ? EINVAL : ENOTEMPTY;
  }
  if (exchange) return 0;
  if (parts.target == nullptr) {
    bool gains = source_directory && op.parent != op.new_parent;
    return gains && parts.to->attr.nlink >= kLinksMax ? EMLINK : 0;
  }
  if (source_directory && !target_directory) return ENOTDIR;
  if (!source_directory && target_directory) return EISDIR;
  if (target_directory && parts.target_ino != parts.source_ino && parts.target->attr.size > 0) {
    return ENOTEMPTY;
  }
  return 0;
}

int Step::perform(const Rename& op) {
  RenameParts parts;
  if (int error = load_rename(op, parts)) return error;
  if (int error = check_rename(op, parts)) return error;
  if (parts.source_ino == parts.target_ino) return 0;  // two names of one inode: nothing happens
  start(RecordOp::kRename, parts.source_ino);
  if (op.flags == kRenameExchange) {
    exchange(op, parts);
  } else {
    move(op, parts);
  }
  return 0;
}

// A directory's ".." is a link to its parent.
void Step::move_parent_link(Ino from, Node& from_node, Ino to, Node& to_node, Ino child,
                            Node& node) {
  if (!node.attr.is_directory() || from == to) return;
  --from_node.attr.nlink;
  ++to_node.attr.nlink;
  if (!FS_MUTANT(kParentNotMoved)) node.attr.parent = to;
  touch(from, from_node);
  touch(to, to_node);
  touch(child, node);
}

void Step::exchange(const Rename& op, RenameParts& parts) {
  if (FS_MUTANT(kExchangeHalf)) return move(op, parts);
  point_entry(op.parent, *parts.from, op.name, parts.target_ino, parts.target->attr.type());
  point_entry(op.new_parent, *parts.to, op.new_name, parts.source_ino, parts.source->attr.type());
  move_parent_link(op.parent, *parts.from, op.new_parent, *parts.to, parts.source_ino,
                   *parts.source);
  move_parent_link(op.new_parent, *parts.to, op.parent, *parts.from, parts.target_ino,
                   *parts.target);
  parts.source->attr.ctime_ns = parts.target->attr.ctime_ns = request_.now_ns;
  touch(parts.source_ino, *parts.source);
  touch(parts.target_ino, *parts.target);
}

void Step::move(const Rename& op, RenameParts& parts) {
  FileType type = parts.source->attr.type();
  drop_entry(op.parent, *parts.from, op.name);
  if (parts.target != nullptr) {
    if (parts.target->attr.is_directory()) --parts.to->attr.nlink;
    point_entry(op.new_parent, *parts.to, op.new_name, parts.source_ino, type);
    if (!FS_MUTANT(kTargetNotDropped)) drop_link(parts.target_ino, *parts.target);
  } else {
    add_entry(op.new_parent, *parts.to, op.new_name, parts.source_ino, type);
  }
  move_parent_link(op.parent, *parts.from, op.new_parent, *parts.to, parts.source_ino,
                   *parts.source);
  parts.source->attr.ctime_ns = request_.now_ns;
  touch(parts.source_ino, *parts.source);
}

}  // namespace fs
