// Recovery of a damaged log: a good segment is built, the input edits it (offset u16, xor u8, and
// again), and scan_log either refuses it or gives a prefix of what was written.
#include "base/check.h"
#include "base/sim_disk.h"
#include "fs/log/journal.h"

namespace {

constexpr u32 kWorkspace = 1;
constexpr fs::Seq kRecords = 6;

std::string record_of(fs::Seq seq) {
  std::string out;
  fs::RecordWriter writer(out);
  writer.start();
  writer.put("key" + std::to_string(seq), std::string(seq * 7, 'v'));
  fs::RecordHeader header;
  header.seq = seq;
  header.op = fs::RecordOp::kWrite;
  header.data = seq % 2 == 0 ? seq : 0;
  header.data_length = header.data != 0 ? 100 : 0;
  writer.finish(header);
  return out;
}

void write_log(base::SimDisk& disk) {
  CHECK(disk.make_directory("log").ok());
  fs::DataPlaces places;
  auto journal = fs::Journal::open({&disk, "log", kWorkspace, 3, 1u << 20}, {}, &places);
  CHECK(journal.ok());
  for (fs::Seq seq = 1; seq <= kRecords; ++seq) {
    std::string record = record_of(seq), data(100, static_cast<char>('a' + seq));
    bool has_data = seq % 2 == 0;
    (*journal)->append(*fs::decode_header(record), record,
                       has_data ? base::as_bytes(data) : base::ByteView());
    if (seq % 2 == 0) CHECK((*journal)->commit().ok());
    if (seq == 4) CHECK((*journal)->sync().ok());
  }
  CHECK((*journal)->commit().ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  base::SimDisk disk({});
  write_log(disk);
  auto segments = fs::list_segments(disk, "log");
  CHECK(segments.ok() && segments->size() == 1);
  const std::string& path = segments->front().path;
  size_t length = disk.contents(path)->size();
  for (size_t at = 0; at + 3 <= size; at += 3) {
    u64 offset = base::load_le<u16>(reinterpret_cast<const char*>(data) + at);
    if (offset < length) disk.corrupt(path, offset, data[at + 2]);
  }
  fs::DataPlaces places;
  fs::LogScan scan;
  scan.disk = &disk;
  scan.folder = "log";
  scan.workspace = kWorkspace;
  scan.places = &places;
  fs::Seq seen = 0;
  scan.visit = [&](const fs::RecordHeader& header, std::string_view record) -> base::Status {
    CHECK(header.seq == ++seen && record == record_of(seen));
    return {};
  };
  auto end = fs::scan_log(scan);
  if (!end.ok()) return 0;
  CHECK(end->last == seen);
  for (fs::Seq seq = 2; seq <= seen; seq += 2) {
    std::vector<u8> bytes(100);
    auto got = places.read(seq, 0, bytes);
    if (got.ok() && *got) CHECK(bytes[0] == 'a' + seq);
  }
  return 0;
}
