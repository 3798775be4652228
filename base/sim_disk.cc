#include "base/sim_disk.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace base {

// A file's bytes now and as of the last sync. A folder is an inode with `directory` set.
struct SimDisk::Inode {
  bool directory = false;
  std::vector<u8> now;
  std::vector<u8> durable;
  std::set<u64> unsynced_sectors;
};

namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

Error power_is_off() {
  return Error(ErrorCode::kIo, "the simulated disk has lost power");
}
Error no_such(const std::string& path) {
  return Error(ErrorCode::kNotFound, path + ": no such file");
}

}  // namespace

class SimFile : public DiskFile {
 public:
  SimFile(SimDisk& disk, std::shared_ptr<SimDisk::Inode> inode)
      : disk_(disk), inode_(std::move(inode)), generation_(disk.generation_) {}

  Result<size_t> read_at(u64 offset, Bytes out) override {
    TRY(check_alive());
    const std::vector<u8>& bytes = inode_->now;
    if (offset >= bytes.size()) return size_t{0};
    const size_t count = std::min<size_t>(out.size(), bytes.size() - offset);
    std::memcpy(out.data(), bytes.data() + offset, count);
    return count;
  }

  Status write_at(u64 offset, ByteView data) override {
    TRY(check_alive());
    Status begun = disk_.begin_operation();
    if (!begun.ok()) {
      // The write that was under way when the power went: any prefix of it may have been done.
      if (disk_.powered_off_) apply(offset, data.first(disk_.rng_.below(data.size() + 1)));
      return begun;
    }
    const u64 end = offset + data.size();
    const u64 growth = end > inode_->now.size() ? end - inode_->now.size() : 0;
    if (disk_.bytes_used() + growth > disk_.options_.capacity_bytes) {
      return Error(ErrorCode::kFull, "the simulated disk is full");
    }
    apply(offset, data);
    return {};
  }

  Status truncate(u64 size) override {
    TRY(check_alive());
    TRY(disk_.begin_operation());
    const u64 old = inode_->now.size();
    inode_->now.resize(size);
    touch(std::min(old, size), std::max(old, size));
    return {};
  }

  Result<u64> size() override {
    TRY(check_alive());
    return u64{inode_->now.size()};
  }

  Status sync() override {
    TRY(check_alive());
    TRY(disk_.begin_operation());
    inode_->durable = inode_->now;
    inode_->unsynced_sectors.clear();
    return {};
  }

 private:
  Status check_alive() {
    if (generation_ != disk_.generation_ || disk_.powered_off_) return power_is_off();
    return {};
  }

  void apply(u64 offset, ByteView data) {
    if (data.empty()) return;
    const u64 end = offset + data.size();
    const u64 from = std::min<u64>(offset, inode_->now.size());  // the gap's zeros are unsynced too
    if (end > inode_->now.size()) inode_->now.resize(end);
    std::memcpy(inode_->now.data() + offset, data.data(), data.size());
    touch(from, end);
  }

  void touch(u64 from, u64 to) {
    const u64 sector = disk_.options_.sector_bytes;
    for (u64 at = from / sector; at * sector < to; ++at) inode_->unsynced_sectors.insert(at);
  }

  SimDisk& disk_;
  std::shared_ptr<SimDisk::Inode> inode_;
  u64 generation_;
};

SimDisk::SimDisk(Options options) : options_(options), rng_(options.seed) {}
SimDisk::~SimDisk() = default;

Status SimDisk::check_power() {
  if (powered_off_) return power_is_off();
  return {};
}

Status SimDisk::begin_operation() {
  TRY(check_power());
  const u64 number = operations_++;
  if (power_off_at_ && number >= *power_off_at_) {
    powered_off_ = true;
    return power_is_off();
  }
  if (fail_at_ && number == *fail_at_)
    return Error(fail_code_, "the simulated disk failed this call");
  return {};
}

u64 SimDisk::bytes_used() const {
  u64 sum = 0;
  for (const auto& [path, inode] : names_) sum += inode->now.size();
  return sum;
}

Result<std::unique_ptr<DiskFile>> SimDisk::open(const std::string& path, OpenMode mode) {
  TRY(check_power());
  auto found = names_.find(path);
  if (found != names_.end() && mode.create && mode.exclusive) {
    return Error(ErrorCode::kExists, path + ": exists already");
  }
  if (found != names_.end() && found->second->directory) {
    return Error(ErrorCode::kInvalidArgument, path + ": is a folder");
  }
  if (found == names_.end()) {
    if (!mode.create) return no_such(path);
    TRY(begin_operation());
    found = names_.emplace(path, std::make_shared<Inode>()).first;
  }
  return std::unique_ptr<DiskFile>(std::make_unique<SimFile>(*this, found->second));
}

Status SimDisk::remove(const std::string& path) {
  TRY(check_power());
  if (!names_.contains(path)) return no_such(path);
  TRY(begin_operation());
  names_.erase(path);
  return {};
}

Status SimDisk::rename(const std::string& from, const std::string& to) {
  TRY(check_power());
  auto found = names_.find(from);
  if (found == names_.end()) return no_such(from);
  TRY(begin_operation());
  std::shared_ptr<Inode> inode = found->second;
  names_.erase(found);
  names_[to] = std::move(inode);
  return {};
}

Result<bool> SimDisk::exists(const std::string& path) {
  TRY(check_power());
  return names_.contains(path);
}

Result<std::vector<std::string>> SimDisk::list(const std::string& directory) {
  TRY(check_power());
  std::vector<std::string> found;
  for (const auto& [path, inode] : names_) {
    if (folder_of(path) == directory) found.push_back(path.substr(directory.size() + 1));
  }
  return found;
}

Status SimDisk::make_directory(const std::string& path) {
  TRY(check_power());
  if (names_.contains(path)) return Error(ErrorCode::kExists, path + ": exists already");
  TRY(begin_operation());
  auto inode = std::make_shared<Inode>();
  inode->directory = true;
  names_[path] = std::move(inode);
  return {};
}

Status SimDisk::sync_directory(const std::string& path) {
  TRY(begin_operation());
  std::erase_if(durable_names_, [&](const auto& entry) {
    return folder_of(entry.first) == path && !names_.contains(entry.first);
  });
  for (const auto& [name, inode] : names_) {
    if (folder_of(name) == path) durable_names_[name] = inode;
  }
  return {};
}

void SimDisk::crash() {
  // Each name whose folder was not synced since it changed is as it was or as it is, by chance. A
  // rename may show up in one folder and not the other, as on file systems without ordered
  // metadata.
  std::map<std::string, std::shared_ptr<Inode>> survived;
  std::set<std::string> all;
  for (const auto& [path, inode] : names_) all.insert(path);
  for (const auto& [path, inode] : durable_names_) all.insert(path);
  for (const std::string& path : all) {
    auto now = names_.find(path);
    auto durable = durable_names_.find(path);
    std::shared_ptr<Inode> new_inode = now == names_.end() ? nullptr : now->second;
    std::shared_ptr<Inode> old_inode = durable == durable_names_.end() ? nullptr : durable->second;
    const bool keep_new = new_inode == old_inode || rng_.chance(options_.keep_unsynced);
    std::shared_ptr<Inode> chosen = keep_new ? new_inode : old_inode;
    if (chosen != nullptr) survived[path] = chosen;
  }
  std::set<Inode*> rolled;
  for (const auto& [path, inode] : survived) {
    if (!rolled.insert(inode.get()).second || inode->unsynced_sectors.empty()) continue;
    std::vector<u8>& durable = inode->durable;
    // The size is metadata: it is the old or the new one, as a whole.
    const bool new_size = rng_.chance(options_.keep_unsynced);
    durable.resize(new_size ? inode->now.size() : durable.size());
    for (u64 sector : inode->unsynced_sectors) {
      if (!rng_.chance(options_.keep_unsynced)) continue;
      const u64 from = sector * options_.sector_bytes;
      const u64 to =
          std::min<u64>({from + options_.sector_bytes, inode->now.size(), durable.size()});
      if (from < to)
        std::copy(inode->now.begin() + from, inode->now.begin() + to, durable.begin() + from);
    }
    inode->now = durable;
    inode->unsynced_sectors.clear();
  }
  names_ = survived;
  durable_names_ = survived;
  ++generation_;
  powered_off_ = false;
  power_off_at_.reset();
  fail_at_.reset();
}

void SimDisk::corrupt(const std::string& path, u64 offset, u8 mask) {
  auto found = names_.find(path);
  CHECK(found != names_.end() && offset < found->second->now.size());
  found->second->now[offset] ^= mask;
  if (offset < found->second->durable.size()) found->second->durable[offset] ^= mask;
}

Result<std::vector<u8>> SimDisk::contents(const std::string& path) {
  auto found = names_.find(path);
  if (found == names_.end()) return no_such(path);
  return found->second->now;
}

}  // namespace base
