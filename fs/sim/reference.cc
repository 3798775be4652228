#include "fs/sim/reference.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace fs::sim {

const Reference::Node* Reference::find(Ino ino) const {
  auto at = nodes_.find(ino);
  return at == nodes_.end() ? nullptr : &at->second;
}

bool Reference::attached(Ino ino) const {
  if (ino == kRootIno) return true;
  for (const auto& [id, node] : nodes_) {
    for (const auto& [name, child] : node.children) {
      if (child == ino) return attached(id);
    }
  }
  return false;
}

bool Reference::inside(Ino directory, Ino ancestor) const {
  if (directory == ancestor) return true;
  const Node* top = find(ancestor);
  if (top == nullptr) return false;
  return std::any_of(top->children.begin(), top->children.end(), [&](const auto& item) {
    return find(item.second) != nullptr && find(item.second)->directory &&
           inside(directory, item.second);
  });
}

int Reference::new_entry(Ino parent, const std::string& name) {
  const Node* node = find(parent);
  if (node == nullptr) return ESTALE;
  if (!node->directory) return ENOTDIR;
  return node->children.contains(name) ? EEXIST : 0;
}

int Reference::create(Ino parent, const std::string& name, Ino fresh) {
  if (int error = new_entry(parent, name)) return error == EEXIST ? 0 : error;
  nodes_[parent].children[name] = fresh;
  nodes_[fresh].links = 1;
  return 0;
}

int Reference::mkdir(Ino parent, const std::string& name, Ino fresh) {
  if (int error = new_entry(parent, name)) return error;
  nodes_[parent].children[name] = fresh;
  nodes_[fresh].directory = true;
  return 0;
}

int Reference::symlink(Ino parent, const std::string& name, const std::string& target, Ino fresh) {
  if (int error = new_entry(parent, name)) return error;
  nodes_[parent].children[name] = fresh;
  nodes_[fresh].links = 1;
  nodes_[fresh].symlink = true;
  nodes_[fresh].content = target;
  return 0;
}

int Reference::link(Ino ino, Ino parent, const std::string& name) {
  const Node* node = find(ino);
  if (node == nullptr) return ESTALE;
  if (node->directory) return EPERM;
  if (int error = new_entry(parent, name)) return error;
  nodes_[parent].children[name] = ino;
  ++nodes_[ino].links;
  return 0;
}

void Reference::drop(Ino ino) {
  Node& node = nodes_[ino];
  if (node.directory || --node.links == 0) nodes_.erase(ino);
}

int Reference::unlink(Ino parent, const std::string& name) {
  int error = new_entry(parent, name);
  if (error != EEXIST) return error == 0 ? ENOENT : error;
  Ino ino = nodes_[parent].children[name];
  if (nodes_[ino].directory) return EISDIR;
  nodes_[parent].children.erase(name);
  drop(ino);
  return 0;
}

int Reference::rmdir(Ino parent, const std::string& name) {
  int error = new_entry(parent, name);
  if (error != EEXIST) return error == 0 ? ENOENT : error;
  Ino ino = nodes_[parent].children[name];
  if (!nodes_[ino].directory) return ENOTDIR;
  if (!nodes_[ino].children.empty()) return ENOTEMPTY;
  nodes_[parent].children.erase(name);
  drop(ino);
  return 0;
}

int Reference::rename(Ino parent, const std::string& name, Ino new_parent,
                      const std::string& new_name, u32 flags) {
  int error = new_entry(parent, name);
  int new_error = new_entry(new_parent, new_name);
  if (error != 0 && error != EEXIST) return error;
  if (new_error != 0 && new_error != EEXIST) return new_error;
  if (error == 0) return ENOENT;
  bool exchange = flags == kRenameExchange;
  bool occupied = new_error == EEXIST;
  if (exchange && !occupied) return ENOENT;
  if (flags == kRenameNoReplace && occupied) return EEXIST;
  Ino source = nodes_[parent].children[name];
  Ino target = occupied ? nodes_[new_parent].children[new_name] : 0;
  bool source_dir = nodes_[source].directory;
  bool target_dir = occupied && nodes_[target].directory;
  if (source_dir && parent != new_parent && inside(new_parent, source)) return EINVAL;
  if (target_dir && parent != new_parent && inside(parent, target)) {
    return exchange ? EINVAL : ENOTEMPTY;
  }
  if (exchange) {
    std::swap(nodes_[parent].children[name], nodes_[new_parent].children[new_name]);
    return 0;
  }
  if (occupied) {
    if (source_dir != target_dir) return source_dir ? ENOTDIR : EISDIR;
    if (source == target) return 0;
    if (target_dir && !nodes_[target].children.empty()) return ENOTEMPTY;
  }
  nodes_[parent].children.erase(name);
  nodes_[new_parent].children[new_name] = source;
  if (occupied) drop(target);
  return 0;
}

int Reference::write(Ino ino, u64 offset, const std::string& bytes) {
  auto at = nodes_.find(ino);
  if (at == nodes_.end()) return ESTALE;
  if (at->second.directory) return EISDIR;
  if (at->second.symlink) return EINVAL;
  std::string& content = at->second.content;
  if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size(), '\0');
  content.replace(offset, bytes.size(), bytes);
  return 0;
}

int Reference::truncate(Ino ino, u64 size) {
  if (int error = write(ino, 0, "")) return error;
  nodes_[ino].content.resize(size, '\0');
  return 0;
}

int Reference::punch(Ino ino, u64 offset, u64 length) {
  if (int error = write(ino, 0, "")) return error;
  std::string& content = nodes_[ino].content;
  for (u64 at = offset; at < std::min<u64>(offset + length, content.size()); ++at)
    content[at] = '\0';
  return 0;
}

int Reference::copy(Ino from, u64 from_offset, Ino to, u64 to_offset, u64 length) {
  if (int error = write(from, 0, "")) return error;
  if (int error = write(to, 0, "")) return error;
  const std::string& source = nodes_[from].content;
  if (from_offset >= source.size()) return 0;
  length = std::min<u64>(length, source.size() - from_offset);
  bool overlap = from == to && from_offset < to_offset + length && to_offset < from_offset + length;
  if (overlap) return EINVAL;
  return write(to, to_offset, source.substr(from_offset, length));
}

}  // namespace fs::sim
