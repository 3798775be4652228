// Records and segments may be damaged or hostile: decoders stay inside the bytes. The checksum of a
// batch is put right before it is decoded, so that the code behind it is reached.
#include "base/check.h"
#include "base/hash.h"
#include "fs/log/segment.h"

namespace {

bool inside(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void walk(std::string_view record) {
  if (!fs::decode_header(record)) return;
  (void)fs::for_each_change(record, [&](const fs::Change& change) {
    CHECK(inside(change.key, record) && inside(change.value, record));
    return true;
  });
}

void walk_batch(std::string bytes) {
  if (bytes.size() < fs::kBatchHeaderBytes) return;
  bytes.replace(0, 4, "AFSB");
  u64 records = base::load_le<u32>(bytes.data() + 20);
  if (records <= bytes.size() - fs::kBatchHeaderBytes) {
    auto checked = base::as_bytes(bytes).subspan(8, fs::kBatchHeaderBytes - 8 + records);
    base::store_le<u32>(bytes.data() + 4, base::crc32c(checked));
  }
  auto header = fs::decode_batch(base::as_bytes(bytes));
  if (!header) return;
  CHECK(fs::kBatchHeaderBytes + header->records_length + header->data_length <= bytes.size());
  std::string_view rest =
      std::string_view(bytes).substr(fs::kBatchHeaderBytes, header->records_length);
  while (auto record = fs::take_record(rest)) {
    CHECK(inside(record->record, bytes));
    walk(record->record);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  walk(bytes);
  (void)fs::decode_segment_header(base::as_bytes(bytes));
  walk_batch(std::string(bytes));
  return 0;
}
