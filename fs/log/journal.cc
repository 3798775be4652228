#include "fs/log/journal.h"

#include "base/check.h"
#include "base/hash.h"
#include "fs/log/segment.h"

#include <algorithm>
#include <cstring>

namespace fs {

void DataPlaces::add(DataId id, DataPlace place) {
  std::lock_guard lock(mutex_);
  places_[id] = std::move(place);
}

void DataPlaces::drop_below(u32 workspace, DataId bound) {
  std::lock_guard lock(mutex_);
  std::erase_if(places_, [&](const auto& item) {
    return workspace_of(item.first) != workspace || item.first < bound;
  });
}

std::optional<u32> DataPlaces::length(DataId id) const {
  std::lock_guard lock(mutex_);
  auto at = places_.find(id);
  if (at == places_.end()) return std::nullopt;
  return at->second.length;
}

size_t DataPlaces::size() const {
  std::lock_guard lock(mutex_);
  return places_.size();
}

base::Result<bool> read_place(const DataPlace& place, base::Bytes out) {
  if (TRY(place.file->read_at(place.offset, out)) != out.size()) return false;
  if (place.sealed == nullptr) return base::xxh3(out) == place.check;
  return place.sealed->key->open(place.sealed->nonce, {}, out, place.sealed->tag);
}

base::Result<bool> DataPlaces::read(DataId id, u32 offset, base::Bytes out) const {
  DataPlace place;
  std::shared_ptr<const std::string> whole;
  {
    std::lock_guard lock(mutex_);
    auto at = places_.find(id);
    if (at == places_.end()) return false;
    place = at->second;
    if (last_id_ == id) whole = last_;
  }
  base::Error damaged(base::ErrorCode::kCorruption,
                      "data " + std::to_string(id) + " in the log is damaged; run fsck");
  if (offset > place.length || out.size() > place.length - offset) return damaged;
  if (out.size() == place.length) {
    if (!TRY(read_place(place, out))) return damaged;
    return true;
  }
  // The check covers the whole, so a part needs the whole; the next part will want it, too.
  if (!whole) {
    auto bytes = std::make_shared<std::string>(place.length, '\0');
    base::Bytes target(reinterpret_cast<u8*>(bytes->data()), bytes->size());
    if (!TRY(read_place(place, target))) return damaged;
    whole = bytes;
    std::lock_guard lock(mutex_);
    last_id_ = id;
    last_ = whole;
  }
  std::memcpy(out.data(), whole->data() + offset, out.size());
  return true;
}

base::Result<std::unique_ptr<Journal>> Journal::open(Options options, const LogEnd& end,
                                                     DataPlaces* places) {
  base::Disk& disk = *options.disk;
  for (const std::string& path : end.torn_segments) TRY(disk.remove(path));
  // What recovery has seen must be durable before anything is built on it.
  for (const std::string& path : end.paths) {
    auto file = TRY(disk.open(path, {}));
    if (path == end.path && end.torn_bytes > 0) TRY(file->truncate(end.bytes));
    TRY(file->sync());
  }
  TRY(disk.sync_directory(options.folder));
  auto journal = std::unique_ptr<Journal>(new Journal(std::move(options), places));
  journal->chain_ = end.chain;
  journal->appended_ = journal->committed_ = journal->synced_ = end.last;
  if (journal->options_.seal != nullptr) {
    journal->salt_ = random_salt();
    journal->key_ = journal->options_.seal->key(StoreSeal::Use::kLog, journal->salt_);
  }
  TRY(journal->begin_segment());
  return journal;
}

base::Status Journal::begin_segment() {
  SegmentName name{options_.workspace, appended_ + 1, options_.epoch, {}};
  std::string path = segment_path(options_.folder, name);
  file_ = TRY(options_.disk->open(path, {.create = true}));
  TRY(file_->truncate(0));
  std::string header = encode_segment_header({options_.workspace, options_.epoch, chain_});
  TRY(file_->write_at(0, base::as_bytes(header)));
  offset_ = kSegmentHeaderBytes;
  std::lock_guard lock(mutex_);
  ++segments_begun_;
  unsynced_.push_back(file_);
  return {};
}

void Journal::append(const RecordHeader& header, std::string_view record, base::ByteView data) {
  CHECK(header.seq == appended_ + 1 && data.size() == header.data_length);
  if (batch_.empty()) {
    batch_.assign(kBatchHeaderBytes, '\0');
    if (sealing()) batch_.append(reinterpret_cast<const char*>(salt_.data()), salt_.size());
    batch_first_ = header.seq;
  }
  u64 check = data.empty() || sealing() ? 0 : base::xxh3(data);
  u64 prefix_at = batch_.size();
  char prefix[kSealedRecordPrefixBytes] = {};  // the tag comes when the batch is sealed
  base::store_le<u32>(prefix, static_cast<u32>(record.size()));
  base::store_le<u64>(prefix + 4, check);
  batch_.append(prefix, sealing() ? kSealedRecordPrefixBytes : kRecordPrefixBytes).append(record);
  std::shared_ptr<SealedData> sealed;
  if (sealing() && !data.empty()) {
    sealed = std::make_shared<SealedData>(SealedData{key_, {batch_first_, 1 + batch_count_}, {}});
  }
  ++batch_count_;
  appended_ = header.seq;
  if (data.empty()) return;
  std::lock_guard lock(mutex_);
  pending_.push_back({header.data, data_.size(), header.data_length, check, prefix_at, sealed});
  data_.append(base::as_text(data));
}

base::Status Journal::fail(base::Error error) {
  std::lock_guard lock(mutex_);
  failure_ = error.message();
  return error;
}

// Seals the records in batch_; gives the sealed data. data_ stays readable until it is written.
std::string Journal::seal_batch(BatchHeader& header) {
  std::string data = data_;
  u8* bytes = reinterpret_cast<u8*>(data.data());
  for (const Pending& item : pending_) {
    item.sealed->tag = key_->seal(item.sealed->nonce, {}, {bytes + item.offset, item.length});
    std::memcpy(batch_.data() + item.prefix_at + 4, item.sealed->tag.data(), kSealTagBytes);
  }
  header.sealed = true;
  header.records_length += static_cast<u32>(kSealTagBytes);
  constexpr size_t start = kBatchHeaderBytes + kSaltBytes;
  base::Bytes records(reinterpret_cast<u8*>(batch_.data()) + start, batch_.size() - start);
  SealTag tag = key_->seal({header.first, 0}, bound_of(header, options_.workspace), records);
  batch_.append(reinterpret_cast<const char*>(tag.data()), tag.size());
  return data;
}

base::Status Journal::write_batch(const BatchHeader& header, const std::string& data) {
  u64 data_offset = offset_ + batch_.size();
  u64 padding = header.total() - batch_.size() - data.size();
  constexpr size_t kJoinMax = 64 * 1024;
  if (data.size() <= kJoinMax) {
    batch_.append(data).append(padding, '\0');
    return file_->write_at(offset_, base::as_bytes(batch_));
  }
  // Data first: a batch whose header is there but whose data is not would be a tear all the same.
  TRY(file_->write_at(data_offset, base::as_bytes(data)));
  TRY(file_->write_at(offset_, base::as_bytes(batch_)));
  if (padding == 0) return {};
  std::string zeros(padding, '\0');
  return file_->write_at(data_offset + data.size(), base::as_bytes(zeros));
}

base::Status Journal::commit() {
  {
    std::lock_guard lock(mutex_);
    if (!failure_.empty()) {
      return base::Error(base::ErrorCode::kIo, "the journal failed before (" + failure_ +
                                                   "); unmount, and mount again to recover");
    }
  }
  if (batch_.empty()) return {};
  BatchHeader header;
  header.first = batch_first_;
  header.count = batch_count_;
  header.records_length = static_cast<u32>(batch_.size() - kBatchHeaderBytes);
  header.data_length = data_.size();
  header.synced = synced();
  std::string sealed;
  if (sealing()) sealed = seal_batch(header);
  header.chain = next_chain(chain_, base::as_bytes(batch_).subspan(kBatchHeaderBytes));
  finish_batch(header, batch_);
  u64 data_offset = offset_ + batch_.size();
  auto wrote = write_batch(header, sealing() ? sealed : data_);
  if (!wrote.ok()) return fail(std::move(wrote).error());
  if (options_.committed) {
    options_.committed({file_, offset_, header.total(), header.first,
                        header.first + header.count - 1, chain_, header.chain});
  }
  offset_ += header.total();
  chain_ = header.chain;
  batch_.clear();
  batch_count_ = 0;
  register_data(file_, data_offset);
  if (offset_ >= options_.segment_bytes) return begin_segment();
  return {};
}

void Journal::register_data(std::shared_ptr<base::DiskFile> file, u64 data_offset) {
  std::lock_guard lock(mutex_);
  for (const Pending& item : pending_) {
    places_->add(item.id, {file, data_offset + item.offset, item.length, item.check, item.sealed});
  }
  pending_.clear();
  data_.clear();
  committed_ = appended_;
}

Seq Journal::committed() const {
  std::lock_guard lock(mutex_);
  return committed_;
}

Seq Journal::synced() const {
  std::lock_guard lock(mutex_);
  return synced_;
}

base::Status Journal::sync() {
  std::unique_lock one(sync_mutex_);
  std::vector<std::shared_ptr<base::DiskFile>> files;
  Seq target = 0;
  u64 begun = 0;
  {
    std::lock_guard lock(mutex_);
    if (!failure_.empty()) {
      return base::Error(base::ErrorCode::kIo, "the journal failed before (" + failure_ +
                                                   "); unmount, and mount again to recover");
    }
    if (synced_ == committed_) return {};
    files = unsynced_;
    target = committed_;
    begun = segments_begun_ == segments_named_durably_ ? 0 : segments_begun_;
  }
  for (const auto& file : files) {
    if (auto done = file->sync(); !done.ok()) return fail(std::move(done).error());
  }
  if (begun > 0) {
    if (auto done = options_.disk->sync_directory(options_.folder); !done.ok()) {
      return fail(std::move(done).error());
    }
  }
  std::lock_guard lock(mutex_);
  synced_ = target;
  if (begun > 0) segments_named_durably_ = begun;
  // The last file goes on being written; those before it are done.
  unsynced_.erase(unsynced_.begin(),
                  unsynced_.begin() + static_cast<std::ptrdiff_t>(files.size()) - 1);
  return {};
}

base::Status Journal::rotate() {
  TRY(commit());
  if (offset_ == kSegmentHeaderBytes) return {};
  auto begun = begin_segment();
  if (!begun.ok()) return fail(std::move(begun).error());
  return {};
}

base::Result<bool> Journal::read(DataId id, u32 offset, base::Bytes out) {
  {
    std::lock_guard lock(mutex_);
    for (const Pending& item : pending_) {
      if (item.id != id) continue;
      if (offset > item.length || out.size() > item.length - offset) {
        return base::Error(base::ErrorCode::kCorruption, "a read leaves its data; run fsck");
      }
      std::memcpy(out.data(), data_.data() + item.offset + offset, out.size());
      return true;
    }
  }
  return places_->read(id, offset, out);
}

base::Result<u64> Journal::drop_segments_before(Seq first_needed) {
  auto segments = TRY(list_segments(*options_.disk, options_.folder));
  std::erase_if(segments, [&](const SegmentName& s) { return s.workspace != options_.workspace; });
  u64 dropped = 0;
  for (size_t i = 0; i + 1 < segments.size(); ++i) {
    if (segments[i + 1].first > first_needed) break;
    TRY(options_.disk->remove(segments[i].path));
    ++dropped;
  }
  return dropped;
}

}  // namespace fs
