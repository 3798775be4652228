// Reading segments back: names, validity, the torn-tail rule.
#include "base/hash.h"
#include "fs/log/segment.h"
#include "fs/state/mutant.h"

#include <algorithm>
#include <cstdio>

namespace fs {

namespace {

base::Error damaged(const std::string& path, u64 offset, std::string_view what) {
  return base::Error(base::ErrorCode::kCorruption,
                     path + ": " + std::string(what) + " at byte " + std::to_string(offset) +
                         ", in a part that was durable; restore the file from a copy");
}

base::Result<std::vector<u8>> read_whole(base::DiskFile& file) {
  u64 size = TRY(file.size());
  std::vector<u8> bytes(size);
  size_t got = TRY(file.read_at(0, bytes));
  bytes.resize(got);
  return bytes;
}

// The highest seq that some batch in here says was durable before it was written.
Seq synced_claim(base::ByteView bytes, u64 from) {
  Seq claim = 0;
  u64 at = (from + kBatchAlign - 1) / kBatchAlign * kBatchAlign;
  for (; at + kBatchHeaderBytes <= bytes.size(); at += kBatchAlign) {
    auto header = decode_batch(bytes.subspan(at));
    if (header) claim = std::max(claim, header->synced);
  }
  return claim;
}

class Scanner {
 public:
  explicit Scanner(const LogScan& scan) : scan_(scan) {
    end_.last = scan.from - 1;
    next_ = scan.from;
  }

  base::Result<LogEnd> run() {
    auto segments = scan_.segments;
    if (!scan_.folder.empty()) segments = TRY(list_segments(*scan_.disk, scan_.folder));
    std::erase_if(segments, [&](const SegmentName& s) { return s.workspace != scan_.workspace; });
    for (size_t i = 0; i < segments.size() && end_.last < scan_.to; ++i) {
      Seq stop = i + 1 < segments.size() ? segments[i + 1].first : ~Seq{0};
      if (stop <= scan_.from && i + 1 < segments.size()) continue;
      if (!torn_) {
        TRY(read_segment(segments[i], stop));
      } else {
        TRY(check_after_tear(segments[i]));
      }
    }
    return end_;
  }

 private:
  base::Status read_segment(const SegmentName& name, Seq stop) {
    auto opened = TRY(scan_.disk->open(name.path, {.read_only = true}));
    std::shared_ptr<base::DiskFile> file = std::move(opened);
    std::vector<u8> bytes = TRY(read_whole(*file));
    auto header = decode_segment_header(bytes);
    // A name that was never synced may be lost while a later one is there.
    bool gap = name.first > end_.last + 1;
    bool foreign = header && header->workspace != scan_.workspace;
    bool breaks = header && started_ && name.first == end_.last + 1 && header->chain != end_.chain;
    if (!header || gap || foreign || breaks) return tear(name.path, bytes, 0, true);
    if (!started_) {
      end_.chain = header->chain;
      started_ = true;
      next_ = name.first;
    }
    end_.path = name.path;
    end_.paths.push_back(name.path);
    end_.bytes = kSegmentHeaderBytes;
    end_.torn_bytes = 0;
    return read_batches(name.path, file, bytes, stop);
  }

  base::Status read_batches(const std::string& path, const std::shared_ptr<base::DiskFile>& file,
                            const std::vector<u8>& bytes, Seq stop) {
    u64 at = kSegmentHeaderBytes;
    while (at < bytes.size() && next_ < stop && next_ <= scan_.to) {
      base::ByteView rest = base::ByteView(bytes).subspan(at);
      auto batch = decode_batch(rest);
      bool good = batch && batch->first == next_;
      if (good) {
        auto section = rest.subspan(kBatchHeaderBytes, batch->records_length);
        bool chained = next_chain(end_.chain, section) == batch->chain || FS_MUTANT(kChainIgnored);
        if (chained) TRY(open_batch(path, *batch, section, at));
        good = chained && data_is_good(rest, *batch);
      }
      if (!good) return tear(path, bytes, at, false);
      TRY(visit_batch(file, *batch, at, stop));
      at += batch->total();
      end_.bytes = std::min<u64>(at, bytes.size());
    }
    return {};
  }

  // The records of a batch whose checksum and chain are good into `records_`.
  base::Status open_batch(const std::string& path, const BatchHeader& batch, base::ByteView section,
                          u64 at) {
    key_.reset();
    records_ = base::as_text(section);
    if (!batch.sealed && scan_.seal == nullptr) return {};
    if (batch.sealed && scan_.seal != nullptr) {
      auto opened = open_records(batch, scan_.workspace, section, *scan_.seal);
      if (opened) {
        opened_ = std::move(opened->records);
        records_ = opened_;
        key_ = std::move(opened->key);
        return {};
      }
    }
    // No tear makes such bytes.
    return damaged(path, at, "a batch was changed by somebody who does not have the store's key");
  }

  bool data_is_good(base::ByteView rest, const BatchHeader& batch) {
    std::string_view records = records_;
    u64 at = kBatchHeaderBytes + u64{batch.records_length};
    u64 data_end = at + batch.data_length;
    for (u32 i = 0; i < batch.count; ++i) {
      auto record = take_record(records, batch.sealed);
      if (!record || record->header.seq != batch.first + i) return false;
      u64 length = record->header.data_length;
      if (length > data_end - at) return false;
      bool check = scan_.check_data && length > 0 && !FS_MUTANT(kTornDataAccepted);
      if (check && !piece_is_good(rest.subspan(at, length), batch, i, *record)) return false;
      at += length;
    }
    return records.empty() && at == data_end;
  }

  bool piece_is_good(base::ByteView bytes, const BatchHeader& batch, u32 which,
                     const BatchRecord& record) {
    if (!batch.sealed) return base::xxh3(bytes) == record.data_check;
    std::vector<u8> copy(bytes.begin(), bytes.end());
    return key_->open({batch.first, 1 + which}, {}, copy, record.data_tag);
  }

  base::Status visit_batch(const std::shared_ptr<base::DiskFile>& file, const BatchHeader& batch,
                           u64 batch_at, Seq stop) {
    std::string_view records = records_;
    u64 data_at = batch_at + kBatchHeaderBytes + batch.records_length;
    for (u32 i = 0; i < batch.count && next_ < stop && next_ <= scan_.to; ++i, ++next_) {
      auto record = take_record(records, batch.sealed);
      const RecordHeader& header = record->header;
      if (header.seq >= scan_.from) {
        if (scan_.places != nullptr && header.data != 0) {
          DataPlace place{file, data_at, header.data_length, record->data_check, nullptr};
          if (batch.sealed) {
            place.sealed = std::make_shared<const SealedData>(
                SealedData{key_, {batch.first, 1 + i}, record->data_tag});
          }
          scan_.places->add(header.data, std::move(place));
        }
        if (scan_.visit) TRY(scan_.visit(header, record->record));
        end_.last = header.seq;
      }
      data_at += header.data_length;
    }
    if (scan_.batch && next_ == batch.first + batch.count) {
      scan_.batch({file, batch_at, batch.total(), batch.first, next_ - 1, end_.chain, batch.chain});
    }
    end_.chain = batch.chain;
    return {};
  }

  // The valid prefix ends here. `whole`: nothing of this segment counts.
  base::Status tear(const std::string& path, base::ByteView bytes, u64 at, bool whole) {
    torn_ = true;
    if (synced_claim(bytes, at) >= next_) return damaged(path, at, "a batch is damaged");
    if (whole) {
      end_.torn_segments.push_back(path);
    } else {
      end_.bytes = at;
      end_.torn_bytes = bytes.size() - at;
    }
    return {};
  }

  base::Status check_after_tear(const SegmentName& name) {
    auto file = TRY(scan_.disk->open(name.path, {.read_only = true}));
    std::vector<u8> bytes = TRY(read_whole(*file));
    if (synced_claim(bytes, 0) >= next_)
      return damaged(end_.path, end_.bytes, "a batch is damaged");
    end_.torn_segments.push_back(name.path);
    return {};
  }

  const LogScan& scan_;
  LogEnd end_;
  Seq next_ = 1;
  // Of the batch that is read now.
  std::string opened_;
  std::string_view records_;
  std::shared_ptr<const SealKey> key_;
  bool started_ = false;
  bool torn_ = false;
};

}  // namespace

std::string segment_path(const std::string& folder, const SegmentName& name) {
  char text[64];
  std::snprintf(text, sizeof text, "/%06x-%016llx-%08llx.log", name.workspace,
                static_cast<unsigned long long>(name.first),
                static_cast<unsigned long long>(name.epoch));
  return folder + text;
}

base::Result<std::vector<SegmentName>> list_segments(base::Disk& disk, const std::string& folder) {
  std::vector<SegmentName> segments;
  for (const std::string& entry : TRY(disk.list(folder))) {
    SegmentName name;
    unsigned long long first = 0;
    unsigned long long epoch = 0;
    int used = 0;
    int fields = std::sscanf(entry.c_str(), "%6x-%16llx-%8llx.log%n", &name.workspace, &first,
                             &epoch, &used);
    if (fields != 3 || static_cast<size_t>(used) != entry.size()) continue;
    name.first = first;
    name.epoch = epoch;
    name.path = folder + "/" + entry;
    segments.push_back(std::move(name));
  }
  std::sort(segments.begin(), segments.end(), [](const SegmentName& a, const SegmentName& b) {
    return std::tie(a.workspace, a.first, a.epoch) < std::tie(b.workspace, b.first, b.epoch);
  });
  return segments;
}

base::Result<LogEnd> scan_log(const LogScan& scan) {
  return Scanner(scan).run();
}

}  // namespace fs
