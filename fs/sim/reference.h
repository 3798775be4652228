// The simulator's own idea of a file tree: small, slow, and written without the serialiser, so that
// both can be compared. Nodes are numbered by the caller (the inode numbers it was told). Copyable:
// one copy a change is how the simulator knows every state a crash may leave.
#pragma once

#include "fs/serialiser/request.h"
#include "fs/state/types.h"

#include <map>
#include <string>

namespace fs::sim {

class Reference {
 public:
  struct Node {
    bool directory = false;
    std::string content;  // file bytes or link target
    bool symlink = false;
    u32 links = 0;
    std::map<std::string, Ino> children;
  };

  Reference() { nodes_[kRootIno].directory = true; }

  // Each returns an errno or 0 and changes nothing on error; they mirror the POSIX rules only.
  int create(Ino parent, const std::string& name, Ino fresh);
  int mkdir(Ino parent, const std::string& name, Ino fresh);
  int symlink(Ino parent, const std::string& name, const std::string& target, Ino fresh);
  int link(Ino ino, Ino parent, const std::string& name);
  int unlink(Ino parent, const std::string& name);
  int rmdir(Ino parent, const std::string& name);
  int rename(Ino parent, const std::string& name, Ino new_parent, const std::string& new_name,
             u32 flags);
  int write(Ino ino, u64 offset, const std::string& bytes);
  int truncate(Ino ino, u64 size);
  int punch(Ino ino, u64 offset, u64 length);
  int copy(Ino from, u64 from_offset, Ino to, u64 to_offset, u64 length);

  const Node* find(Ino ino) const;
  // Whether the directory is still in the tree.
  bool attached(Ino ino) const;

 private:
  int new_entry(Ino parent, const std::string& name);
  bool inside(Ino directory, Ino ancestor) const;
  void drop(Ino ino);
  std::map<Ino, Node> nodes_;
};

}  // namespace fs::sim
