// Looking at the whole store: differences, the audit trail, consistency.
#include "fs/state/keys.h"
#include "fs/store/collect.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

Status StoreImpl::scan_own_log(u32 number, const Point& point, const Visit& visit) {
  if (fetcher_ == nullptr) return scan_local_log(number, point, visit);
  Seq head = TRY(engine_->log(number)).head;
  if (head <= point.end()) return {};
  return scan_tails(Point{0, point.end(), {{number, point.end() + 1, head}}}, nullptr, visit);
}

Status StoreImpl::scan_local_log(u32 number, const Point& point, const Visit& visit) {
  LogScan scan;
  scan.disk = &disk();
  scan.seal = seal_;
  scan.folder = log_folder();
  scan.workspace = number;
  scan.from = point.end() + 1;
  scan.check_data = false;
  scan.visit = [&](const RecordHeader&, std::string_view record) { return visit(record); };
  TRY(scan_log(scan));
  return {};
}

Status StoreImpl::log(const std::string& workspace, Seq from, const VisitRecord& visit) {
  auto row = TRY(workspace_row(workspace));
  bool stopped = false;
  auto show = [&](std::string_view record) -> Status {
    auto header = decode_header(record);
    if (!stopped && header && header->seq >= from) stopped = !visit(*header, record);
    return {};
  };
  TRY(scan_tails(row.row.point, nullptr, show));
  return scan_own_log(row.row.number, row.row.point, show);
}

// --- differences ---

namespace {

using Values = std::map<std::string, std::optional<std::string>>;

// One side of a comparison: a tree and what the log changed above it.
struct Side {
  std::shared_ptr<const BaseState> tree;
  Values above;

  Result<std::optional<std::string>> get(const std::string& key) const {
    auto at = above.find(key);
    if (at != above.end()) return at->second;
    if (!tree) return std::optional<std::string>();
    return tree->get(key);
  }
};

// Names of inodes on one side, as far as they are needed.
class Paths {
 public:
  explicit Paths(const Side& side) : side_(side) {}

  // "/a/b" of a directory, or "" when it is not reachable.
  Result<std::string> of_directory(Ino ino) {
    if (ino == kRootIno) return std::string("/");
    auto known = known_.find(ino);
    if (known != known_.end()) return known->second;
    auto value = TRY(side_.get(inode_key(ino)));
    auto inode = value ? decode_inode(*value) : std::nullopt;
    if (!inode || inode->attr.parent == ino) return std::string();
    std::string parent = TRY(of_directory(inode->attr.parent));
    std::string name = TRY(name_in(inode->attr.parent, ino));
    std::string path = parent.empty() || name.empty() ? "" : join(parent, name);
    known_[ino] = path;
    return path;
  }
  static std::string join(const std::string& parent, std::string_view name) {
    return parent == "/" ? "/" + std::string(name) : parent + "/" + std::string(name);
  }
  // Entries of a directory that show an inode.
  Result<std::string> name_in(Ino directory, Ino ino) {
    std::string found;
    TRY(for_each_entry(directory, [&](std::string_view name, const EntryValue& entry) {
      if (entry.ino == ino) found = name;
    }));
    return found;
  }
  Status for_each_entry(Ino directory,
                        const std::function<void(std::string_view, const EntryValue&)>& visit) {
    std::string prefix = entry_prefix(directory);
    std::map<std::string, std::string> entries;
    if (side_.tree) {
      TRY(side_.tree->scan(prefix, [&](std::string_view key, std::string_view value) {
        entries.emplace(key.substr(prefix.size()), value);
      }));
    }
    for (auto at = side_.above.lower_bound(prefix);
         at != side_.above.end() && at->first.starts_with(prefix); ++at) {
      if (at->second)
        entries[at->first.substr(prefix.size())] = *at->second;
      else
        entries.erase(at->first.substr(prefix.size()));
    }
    for (const auto& [name, value] : entries) {
      if (auto entry = decode_entry(value)) visit(name, *entry);
    }
    return {};
  }

 private:
  const Side& side_;
  std::map<Ino, std::string> known_;
};

Result<Side> side_of(StoreImpl& store, const std::string& name, Point& point) {
  auto [workspace, snapshot] = split_name(name);
  Side side;
  auto collect = [&](std::string_view record) {
    return for_each_change(record, [&](const Change& change) {
      auto& value = side.above[std::string(change.key)];
      if (change.put)
        value = std::string(change.value);
      else
        value = std::nullopt;
      return true;
    });
  };
  if (snapshot.empty()) {
    auto row = TRY(store.workspace_row(workspace));
    point = row.row.point;
    TRY(store.scan_tails(point, nullptr, collect));
    TRY(store.scan_own_log(row.row.number, point, collect));
  } else {
    point = TRY(store.snapshot_row(workspace, snapshot)).row.point;
    TRY(store.scan_tails(point, nullptr, collect));
  }
  side.tree = store.tree(point.root);
  return side;
}

// Turns differing keys into differing paths.
class Differ {
 public:
  Differ(const Side& before, const Side& after)
      : before_(before), after_(after), before_paths_(before), after_paths_(after) {}

  Status add(const std::string& key) {
    auto a = TRY(before_.get(key));
    auto b = TRY(after_.get(key));
    if (a == b) return {};
    auto parsed = parse_key(key);
    if (!parsed) return {};
    if (parsed->kind == 'D') return add_entry(*parsed, a, b);
    if (parsed->kind == 'I' || parsed->kind == 'C' || parsed->kind == 'X')
      changed_.insert(parsed->ino);
    return {};
  }

  Result<std::vector<Difference>> finish() {
    // A changed inode shows under every name it has; the log tells directories, not names of files.
    for (Ino ino : changed_) {
      auto a = TRY(before_.get(inode_key(ino)));
      auto b = TRY(after_.get(inode_key(ino)));
      auto old_inode = a ? decode_inode(*a) : std::nullopt;
      auto new_inode = b ? decode_inode(*b) : std::nullopt;
      if (!old_inode || !new_inode || new_inode->attr.is_directory()) continue;
      modified_.insert(ino);
    }
    if (!modified_.empty()) TRY(find_names(kRootIno, "/"));
    std::sort(found_.begin(), found_.end(), [](const Difference& x, const Difference& y) {
      return std::tie(x.path, x.kind) < std::tie(y.path, y.kind);
    });
    return std::move(found_);
  }

 private:
  Status add_entry(const ParsedKey& key, const std::optional<std::string>& a,
                   const std::optional<std::string>& b) {
    auto old_entry = a ? decode_entry(*a) : std::nullopt;
    auto new_entry = b ? decode_entry(*b) : std::nullopt;
    if (old_entry && new_entry && old_entry->ino == new_entry->ino)
      return {};  // its place in the list
    bool added = !old_entry;
    std::string directory = TRY((old_entry ? before_paths_ : after_paths_).of_directory(key.ino));
    if (directory.empty()) return {};  // below something that is gone or new as a whole
    Difference difference;
    difference.path = Paths::join(directory, key.name);
    difference.ino = new_entry ? new_entry->ino : old_entry->ino;
    if (added) {
      difference.kind = Difference::Kind::kAdded;
    } else if (!new_entry) {
      difference.kind = Difference::Kind::kRemoved;
    } else {
      bool same_type = old_entry->type == new_entry->type;
      difference.kind = same_type ? Difference::Kind::kModified : Difference::Kind::kTypeChanged;
    }
    found_.push_back(std::move(difference));
    return {};
  }

  Status find_names(Ino directory, const std::string& path) {
    std::vector<std::pair<Ino, std::string>> below;
    TRY(after_paths_.for_each_entry(directory, [&](std::string_view name, const EntryValue& entry) {
      if (entry.type == FileType::kDirectory)
        below.emplace_back(entry.ino, Paths::join(path, name));
      if (!modified_.contains(entry.ino)) return;
      found_.push_back({Difference::Kind::kModified, Paths::join(path, name), entry.ino});
    }));
    for (const auto& [ino, name] : below) TRY(find_names(ino, name));
    return {};
  }

  const Side& before_;
  const Side& after_;
  Paths before_paths_;
  Paths after_paths_;
  std::set<Ino> changed_;
  std::set<Ino> modified_;
  std::vector<Difference> found_;
};

}  // namespace

// Trees are compared page by page, logs key by key. Only naming modified files walks directories.
Result<std::vector<Difference>> StoreImpl::diff(const std::string& a, const std::string& b) {
  TRY(packs_->reload());
  Point point_a;
  Point point_b;
  Side before = TRY(side_of(*this, a, point_a));
  Side after = TRY(side_of(*this, b, point_b));
  std::set<std::string> keys;
  for (const auto& [key, value] : before.above) keys.insert(key);
  for (const auto& [key, value] : after.above) keys.insert(key);
  TRY(compare(*pages_, point_a.root, point_b.root,
              [&](std::string_view key, const std::string*, const std::string*) -> Status {
                keys.emplace(key);
                return {};
              }));
  Differ differ(before, after);
  for (const std::string& key : keys) TRY(differ.add(key));
  return differ.finish();
}

// --- consistency ---

namespace {

// Checks one workspace or snapshot: every rule that a tree of files must keep.
class Checker {
 public:
  Checker(const std::string& name, std::map<std::string, std::string> all, FsckReport& report)
      : name_(name), all_(std::move(all)), report_(report) {}

  void run() {
    for (const auto& [key, value] : all_) read(key, value);
    for (const auto& [ino, attr] : inodes_) check_inode(ino, attr);
    for (Ino ino : orphans_) {
      if (!inodes_.contains(ino)) problem(ino, "is an orphan without an inode");
    }
  }

 private:
  void problem(Ino ino, const std::string& what) {
    report_.problems.push_back(name_ + ": inode " + std::to_string(ino) + " " + what);
  }
  void read(const std::string& key, const std::string& value) {
    auto parsed = parse_key(key);
    if (!parsed) {
      report_.problems.push_back(name_ + ": a key that is none");
      return;
    }
    Ino ino = parsed->ino;
    if (parsed->kind == 'I') {
      auto inode = decode_inode(value);
      if (!inode) return problem(ino, "does not decode");
      inodes_[ino] = inode->attr;
      extents_[ino] += inode->extents.size();
      for (const Extent& extent : inode->extents) allocated_[ino] += extent.length;
      ++report_.inodes;
    } else if (parsed->kind == 'D') {
      auto entry = decode_entry(value);
      if (!entry) return problem(ino, "has an entry that does not decode");
      ++links_[entry->ino];
      ++entries_[ino];
      if (entry->type == FileType::kDirectory) {
        ++subdirectories_[ino];
        parents_[entry->ino] = ino;
      }
      named_.emplace_back(entry->ino, entry->type);
    } else if (parsed->kind == 'C') {
      auto extent = decode_extent(parsed->offset, value);
      if (!extent) return problem(ino, "has an extent that does not decode");
      ++extents_[ino];
      allocated_[ino] += extent->length;
    } else if (parsed->kind == 'X') {
      ++xattrs_[ino];
    } else if (parsed->kind == 'O') {
      orphans_.insert(ino);
    }
  }
  void check_inode(Ino ino, const Attributes& attr) {
    bool directory = attr.is_directory();
    u64 expected =
        directory ? (orphans_.contains(ino) ? 0 : 2 + subdirectories_[ino]) : links_[ino];
    if (attr.nlink != expected) {
      problem(ino, "counts " + std::to_string(attr.nlink) + " links, but has " +
                       std::to_string(expected));
    }
    if (directory && attr.size != entries_[ino]) problem(ino, "counts its entries wrongly");
    if (directory && ino != kRootIno && !orphans_.contains(ino) && parents_[ino] != attr.parent) {
      problem(ino, "names another parent than the one that lists it");
    }
    if (attr.nlink == 0 && !orphans_.contains(ino)) problem(ino, "has no name and is no orphan");
    if (attr.extent_count != extents_[ino]) problem(ino, "counts its extents wrongly");
    if (attr.allocated != allocated_[ino]) problem(ino, "counts its bytes wrongly");
    if (attr.xattrs != xattrs_[ino]) problem(ino, "counts its extended attributes wrongly");
    for (; named_at_ < named_.size(); ++named_at_) {
      auto [child, type] = named_[named_at_];
      auto at = inodes_.find(child);
      if (at == inodes_.end())
        problem(child, "has a name but is missing");
      else if (at->second.type() != type)
        problem(child, "is listed with another type");
    }
  }

  std::string name_;
  std::map<std::string, std::string> all_;
  FsckReport& report_;
  std::map<Ino, Attributes> inodes_;
  std::map<Ino, u64> links_, entries_, subdirectories_, extents_, allocated_, xattrs_;
  std::map<Ino, Ino> parents_;
  std::set<Ino> orphans_;
  std::vector<std::pair<Ino, FileType>> named_;
  size_t named_at_ = 0;
};

}  // namespace

Result<FsckReport> StoreImpl::fsck() {
  FsckReport report;
  TRY(packs_->reload());
  Marker marker(*this);
  for (const Root& root : TRY(all_roots(*engine_))) {
    ++report.workspaces;
    Status marked = marker.mark(root);
    if (!marked.ok()) {
      report.problems.push_back(root.name + ": " + marked.error().message());
      continue;
    }
    Serialiser::Options options;
    options.workspace = std::max(root.number, 1u);
    DataPlaces places;
    auto state = load(root.point, options, places);
    Status read = state.ok() ? Status() : Status(state.error());
    if (read.ok() && root.number != 0) {
      read = scan_own_log(root.number, root.point,
                          [&](std::string_view record) { return state->apply(record); });
    }
    auto all = read.ok() ? state->dump() : Result<std::map<std::string, std::string>>(read.error());
    if (!all.ok()) {
      report.problems.push_back(root.name + ": " + all.error().message());
      continue;
    }
    if (state->last_seq() > 0) Checker(root.name, std::move(*all), report).run();
  }
  report.pages = marker.pages();
  std::set<u64> packed = TRY(check_packs(marker, report));
  for (u64 id : marker.ids()) {
    bool page = (id & kCounterMask) >= kFirstPage;
    if (page) continue;  // read while marking
    ++report.data;
    // Data of logs is checked when the log is recovered.
    if (packed.contains(id) || marker.in_logs().contains(id)) continue;
    auto bytes = packs_->read(id);
    if (!bytes.ok()) report.problems.push_back(bytes.error().message());
  }
  return report;
}

// Every slot that is needed, in every pack that has it: a reader may take any of them. Gives their
// ids.
Result<std::set<u64>> StoreImpl::check_packs(Marker& marker, FsckReport& report) {
  std::set<u64> packed;
  for (const PackInfo& pack : packs_->packs()) {
    auto reader = packs_->reader(pack.number);
    if (!reader.ok()) {
      report.problems.push_back(reader.error().message());
      continue;
    }
    for (u64 id : (*reader)->ids()) {
      if (!marker.reached(id)) continue;
      packed.insert(id);
      auto bytes = (*reader)->read(id);
      if (!bytes.ok()) report.problems.push_back(bytes.error().message());
    }
  }
  return packed;
}

}  // namespace fs
