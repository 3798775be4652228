// Folding log into tree. The tails of a point hold absolute values, so the last change of each key
// is all that matters: they go into the tree in one pass, and only data they still refer to goes
// into packs (what was overwritten or deleted before the checkpoint never gets there). Order: packs
// durable -> one commit publishes packs and root together -> the old log may go.
#include "fs/state/keys.h"
#include "fs/store/collect.h"
#include "fs/store/workspace_impl.h"

#include <algorithm>
#include <set>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

constexpr u64 kCheckpointBytes = 128u << 20;
constexpr Seq kCheckpointRecords = 500'000;
constexpr size_t kResidentNodesMax = 400'000;

// Data that a value refers to.
void collect_data(std::string_view key, std::string_view value, std::set<DataId>& data) {
  if (key.empty()) return;
  if (key[0] == 'I') {
    auto inode = decode_inode(value);
    if (!inode) return;
    for (const Extent& extent : inode->extents) data.insert(extent.data);
  } else if (key[0] == 'C') {
    auto extent = decode_extent(0, value);
    if (extent) data.insert(extent->data);
  }
}

// Writes slots into as many packs as they need.
class PackStream {
 public:
  PackStream(StoreImpl& store, const PackingRow& packer, StoreImpl::Folded& folded,
             const std::function<void()>& between)
      : store_(store), packer_(packer), folded_(folded), between_(between) {}

  Status add(u64 id, std::string_view bytes) {
    if (writer_ && writer_->bytes() >= kPackBytes) TRY(finish());
    if (!writer_) TRY(begin());
    // Data and pages come each in order: a pack has a range of either.
    bool page = (id & kCounterMask) >= kFirstPage;
    auto& range = page ? pages_ : data_;
    range.first = range.first == 0 ? id : std::min(range.first, id);
    range.second = std::max(range.second, id);
    writer_->add(id, bytes);
    return {};
  }

  Status finish() {
    if (!writer_) return {};
    TRY(writer_->finish());
    PackInfo info{number_.row, {}, writer_->bytes(), writer_->slots()};
    for (const auto& range : {data_, pages_}) {
      if (range.first != 0) info.ranges.push_back(range);
    }
    folded_.writes.push_back({pack_key(info.number), encode_row(info), 0});
    folded_.writes.push_back({number_.key, std::nullopt, number_.version});
    folded_.packs.push_back(std::move(info));
    writer_.reset();
    data_ = pages_ = {};
    if (between_) between_();
    return {};
  }

 private:
  Status begin() {
    number_ = TRY(store_.take_pack_number(packer_));
    writer_ = std::make_unique<PackWriter>(store_.blobs(), PackSet::name_of(number_.row),
                                           store_.key(), store_.seal());
    return {};
  }
  StoreImpl& store_;
  PackingRow packer_;
  StoreImpl::Folded& folded_;
  const std::function<void()>& between_;
  std::unique_ptr<PackWriter> writer_;
  Versioned<u64> number_;
  std::pair<u64, u64> data_;
  std::pair<u64, u64> pages_;
};

}  // namespace

Result<Versioned<u64>> StoreImpl::take_pack_number(const PackingRow& packer) {
  for (;;) {
    Row row = TRY(engine_->get(kMetaKey));
    auto meta = decode_meta_row(row.value);
    if (!meta) return Error(ErrorCode::kCorruption, "row meta/store of the engine is damaged");
    u64 number = meta->next_pack++;
    Status done = commit_surely(*engine_, {{packing_key(number), encode_row(packer), 0},
                                           {row.key, encode_row(*meta), row.version}});
    if (done.ok()) return Versioned<u64>{packing_key(number), number, 1};
    if (done.error().code() != ErrorCode::kConflict) return std::move(done).error();
  }
}

Result<StoreImpl::Folded> StoreImpl::fold_point(const Point& point, PageId next_page,
                                                const PackingRow& packer,
                                                const std::function<void()>& between) {
  DataPlaces places;
  TreeChanges changes;
  TRY(scan_tails(
      point, &places,
      [&](std::string_view record) {
        return for_each_change(record, [&](const Change& change) {
          auto& value = changes[std::string(change.key)];
          if (change.put)
            value = std::string(change.value);
          else
            value = std::nullopt;
          return true;
        });
      },
      packer.workspace));
  Folded folded;
  PackStream packs(*this, packer, folded, between);
  std::set<DataId> data;
  for (const auto& [key, value] : changes) {
    if (value) collect_data(key, *value, data);
  }
  std::string bytes;
  for (DataId id : data) {
    std::optional<u32> length = places.length(id);
    if (!length) continue;  // older than the tails: in a pack already
    bytes.resize(*length);
    TRY(places.read(id, 0, {reinterpret_cast<u8*>(bytes.data()), bytes.size()}));
    TRY(packs.add(id, bytes));
  }
  PageSink sink = [&](std::string_view page) -> Result<PageId> {
    PageId id = next_page++;
    TRY(packs.add(id, page));
    return id;
  };
  folded.root = TRY(fold(*pages_, point.root, changes, sink));
  TRY(packs.finish());
  folded.next_page = next_page;
  return folded;
}

bool WorkspaceImpl::wants_checkpoint() const {
  std::lock_guard lock(state_mutex_);
  constexpr u64 shipped_segments = 10'000;  // a round trip for every 64 when it is opened elsewhere
  return log_bytes_ > kCheckpointBytes || (shipper_ && shipper_->segments() > shipped_segments) ||
         serialiser_->last_seq() - row_.row.point.root_seq > kCheckpointRecords;
}

Status WorkspaceImpl::checkpoint() {
  std::lock_guard one(checkpoint_mutex_);
  Point point;
  DataId next_data = 0;
  u64 bytes_before = 0;
  PageId next_page = 0;
  {
    std::lock_guard lock(state_mutex_);
    TRY(journal_->rotate());
    point = row_.row.point;
    Seq head = serialiser_->last_seq();
    if (head > point.end()) point.tails.push_back({row_.row.number, point.end() + 1, head});
    next_data = serialiser_->usage().next_data;
    next_page = row_.row.next_page;
    bytes_before = log_bytes_;
  }
  if (point.tails.empty()) return {};
  TRY(make_durable());
  // The lease goes on meanwhile; whether it did is asked below.
  auto folded = TRY(store_.fold_point(point, next_page, PackingRow{row_.row.number, lease_.epoch},
                                      [this] { (void)keep(); }));

  std::lock_guard lock(state_mutex_);
  TRY(check_lease());
  WorkspaceRow row = row_.row;
  row.point = Point{folded.root, point.end(), {}};
  row.head = std::max(row.head, point.end());
  row.next_page = folded.next_page;
  std::vector<RowWrite> writes{{row_.key, encode_row(row), row_.version}};
  writes.insert(writes.end(), folded.writes.begin(), folded.writes.end());
  TRY(commit_surely(store_.engine(), writes));
  for (const PackInfo& pack : folded.packs) store_.packs().add(pack);
  row_.row = row;
  ++row_.version;
  log_bytes_ -= bytes_before;
  serialiser_->set_base(store_.tree(folded.root), row.point.root_seq);
  serialiser_->evict(kResidentNodesMax);
  places_.drop_below(row.number, droppable_data_);
  droppable_data_ = next_data;
  return drop_folded_log();
}

Status WorkspaceImpl::drop_folded_log() {
  // Forks and snapshots of before may still stand on our log. A new one can only come from a row
  // that is there now, so what no row needs is not needed later either.
  Seq needed = row_.row.point.root_seq + 1;
  for (const Root& root : TRY(all_roots(store_.engine()))) {
    for (const Tail& tail : root.point.tails) {
      if (tail.workspace == row_.row.number) needed = std::min(needed, tail.from);
    }
  }
  TRY(journal_->drop_segments_before(needed));
  if (shipper_) {
    shipper_->reset_segments();
    TRY(store_.engine().drop_segments(row_.row.number, needed));
  }
  return {};
}

}  // namespace fs
