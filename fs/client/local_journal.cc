#include "fs/client/local_journal.h"

#include "base/files.h"
#include "base/json.h"
#include "base/random.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using base::Status;

namespace {
constexpr u64 kTrimBytes = 32u << 20;
}

Result<std::unique_ptr<LocalJournal>> LocalJournal::open(const std::string& folder) {
  TRY(base::make_directories(folder + "/log"));
  int fd = ::open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return base::errno_error(errno, "opening " + folder + "/lock");
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    ::close(fd);
    return Error(ErrorCode::kBusy, "another mount keeps its journal in " + folder +
                                       "; give this one a folder of its own with --journal");
  }
  std::unique_ptr<LocalJournal> local(new LocalJournal(folder, fd));
  auto text = base::read_file(folder + "/state.json");
  if (text.ok()) {
    Json json = TRY(Json::parse(*text));
    local->state_ = {json["client"].as_string(), static_cast<Epoch>(json["epoch"].as_int()),
                     static_cast<u32>(json["number"].as_int())};
  }
  if (local->state_.client.empty()) {
    u8 bytes[12];
    base::secure_random_bytes(bytes);
    for (u8 byte : bytes) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", byte);
      local->state_.client += digits;
    }
    TRY(local->save(0, 0));
  }
  return local;
}

LocalJournal::~LocalJournal() {
  ::close(lock_fd_);
}

Status LocalJournal::save(Epoch epoch, u32 number) {
  state_.epoch = epoch;
  state_.number = number;
  Json json =
      Json::object({{"client", state_.client}, {"epoch", state_.epoch}, {"number", state_.number}});
  return base::replace_file(folder_ + "/state.json", json.dump() + "\n");
}

Result<std::vector<LocalRecord>> LocalJournal::leftover() {
  std::vector<LocalRecord> all;
  base::Disk& disk = base::posix_disk();
  Seq first = 0;
  for (const SegmentName& segment : TRY(list_segments(disk, folder_ + "/log"))) {
    if (segment.workspace == state_.number && first == 0) first = segment.first;
  }
  if (first == 0) return all;
  DataPlaces places;
  LogScan scan;
  scan.disk = &disk;
  scan.folder = folder_ + "/log";
  scan.workspace = state_.number;
  scan.from = first;
  scan.places = &places;
  scan.visit = [&](const RecordHeader& header, std::string_view record) -> Status {
    LocalRecord item{header.seq, std::string(record), std::string(header.data_length, '\0')};
    if (header.data != 0) {
      base::Bytes out(reinterpret_cast<u8*>(item.data.data()), item.data.size());
      TRY(places.read(header.data, 0, out));
    }
    all.push_back(std::move(item));
    return {};
  };
  TRY(scan_log(scan));
  return all;
}

Status LocalJournal::restart(Seq head) {
  TRY(clear());
  places_ = std::make_unique<DataPlaces>();
  LogEnd end;
  end.last = head;
  Journal::Options options;
  options.disk = &base::posix_disk();
  options.folder = folder_ + "/log";
  options.workspace = state_.number;
  options.epoch = state_.epoch;
  journal_ = TRY(Journal::open(options, end, places_.get()));
  return {};
}

Status LocalJournal::clear() {
  base::Disk& disk = base::posix_disk();
  for (const SegmentName& segment : TRY(list_segments(disk, folder_ + "/log"))) {
    TRY(disk.remove(segment.path));
  }
  return {};
}

Status LocalJournal::trim(Seq stored, DataId stored_data) {
  if (journal_->bytes_since_rotate() < kTrimBytes) return {};
  TRY(journal_->rotate());
  TRY(journal_->drop_segments_before(stored + 1));
  places_->drop_below(state_.number, stored_data);
  return {};
}

}  // namespace fs
