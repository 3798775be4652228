// One step of the serialiser in progress (internal to fs/serialiser). Operations first page in all
// they need, then check, then change: a failing operation has changed nothing. touch() notes inodes
// whose attributes the record must carry; finish() writes them. The operations are spread over
// namespace_ops.cc, rename_ops.cc, file_ops.cc and other_ops.cc.
#pragma once

#include "fs/serialiser/serialiser.h"

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fs {

class Step {
 public:
  Step(Serialiser& state, const Request& request, Effects& effects)
      : s_(state), request_(request), effects_(effects), writer_(effects.record) {}

  void run();
  void make_root(u32 mode);

 private:
  // One overload per operation, each returning an errno or 0.
  int perform(const Lookup& op);
  int perform(const Forget& op);
  int perform(const Getattr& op);
  int perform(const Setattr& op);
  int perform(const Create& op);
  int perform(const Mkdir& op);
  int perform(const Mknod& op);
  int perform(const Symlink& op);
  int perform(const Tmpfile& op);
  int perform(const Link& op);
  int perform(const Unlink& op);
  int perform(const Rmdir& op);
  int perform(const Rename& op);
  int perform(const Readlink& op);
  int perform(const Readdir& op);
  int perform(const Read& op);
  int perform(const Write& op);
  int perform(const Fallocate& op);
  int perform(const CopyRange& op);
  int perform(const Seek& op);
  int perform(const Getxattr& op);
  int perform(const Setxattr& op);
  int perform(const Listxattr& op);
  int perform(const Removexattr& op);
  int perform(const Getlk& op);
  int perform(const Setlk& op);
  int perform(const CancelLock& op);
  int perform(const Statfs& op);
  int perform(const EndSession& op);
  int perform(const Defragment& op);

  // Paging in; an errno (ESTALE for an unknown inode, kRetryAfterLoad, EIO) or 0.
  int node_of(Ino ino, Node*& node);
  int directory_of(Ino ino, Node*& node);  // with its entries; ENOTDIR
  int file_of(Ino ino, Node*& node);       // with its extents; EISDIR, EINVAL
  int child_of(Node& directory, std::string_view name, Ino& ino, Node*& node);  // ENOENT
  int load_whole(Ino ino, Node& node);  // what reclaiming it needs
  static int code_of(const base::Error& error);

  // Changing.
  void start(RecordOp op, Ino ino);
  void touch(Ino ino, Node& node);
  void finish();
  void put_usage() { usage_changed_ = true; }
  void stamp_directory(Ino ino, Node& node);  // mtime and ctime
  void add_entry(Ino directory, Node& node, std::string_view name, Ino ino, FileType type);
  void point_entry(Ino directory, Node& node, std::string_view name, Ino ino, FileType type);
  void drop_entry(Ino directory, Node& node, std::string_view name);
  void put_entry(Ino directory, std::string_view name, const EntryValue& value);
  int room_for_inode() const;
  int room_for_bytes(u64 more) const;
  Ino take_ino(Node* directory);
  Node& make_node(Ino ino, Node* parent, u32 mode);
  // Name and directory fit for a new entry; EEXIST and so on.
  int check_new(Ino parent, std::string_view name, Node*& node);
  int make_child(RecordOp op, Ino parent, std::string_view name, u32 mode, std::string_view target);
  // One link less: reclaims the inode, or keeps it as an orphan while it is referenced.
  void drop_link(Ino ino, Node& node);
  void reclaim(Ino ino, Node& node);
  // Rename's pieces.
  struct RenameParts {
    Node* from = nullptr;
    Node* to = nullptr;
    Ino source_ino = 0;
    Node* source = nullptr;
    Ino target_ino = 0;
    Node* target = nullptr;
  };
  int load_rename(const Rename& op, RenameParts& parts);
  int check_rename(const Rename& op, const RenameParts& parts);
  int is_inside(Ino directory, Ino ancestor, bool& inside);
  void exchange(const Rename& op, RenameParts& parts);
  void move(const Rename& op, RenameParts& parts);
  void move_parent_link(Ino from, Node& from_node, Ino to, Node& to_node, Ino child, Node& node);

  // File bytes: replaces [offset, offset + length) of the map by `fresh`, keeping keys and
  // counters.
  void splice(Ino ino, Node& node, u64 offset, u64 length, const std::vector<Extent>& fresh);
  void put_extent_changes(Ino ino, const Node& node, const std::vector<Extent>& before, size_t from,
                          size_t removed, size_t added);
  static u64 covered(const Node& node, u64 offset, u64 length);
  static void kill_privileges(Attributes& attr);
  void resize(Ino ino, Node& node, u64 size);
  void note_fragmentation(Ino ino, const Node& node);

  void reference(Ino ino, Node& node);
  void hand_out(Ino ino, Node& node);  // reply fields, one reference
  void publish(Invalidation::Kind kind, Ino ino, std::string_view name = {});

  Serialiser& s_;
  const Request& request_;
  Effects& effects_;
  RecordWriter writer_;
  RecordHeader header_;
  bool started_ = false;
  bool usage_changed_ = false;
  std::vector<std::pair<Ino, Node*>> touched_;
  std::string late_;  // changes that must come after the inodes' own: extents
  std::string scratch_;
};

// 0, EINVAL or ENAMETOOLONG.
int check_name(std::string_view name);

}  // namespace fs
