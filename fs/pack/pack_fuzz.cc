// A pack file may be hostile: it is refused, or its slots are those that were written. The input
// edits the index and trailer of a good pack (offset from the end u16, xor u8, and again); their
// checksums are then put right, so that only the keyed checks stand between us and the slots.
#include "base/check.h"
#include "base/hash.h"
#include "base/sim_disk.h"
#include "fs/blob/folder_blobs.h"
#include "fs/pack/pack.h"

namespace {

constexpr size_t kTrailer = 28, kHeader = 64;

std::string slot_of(u64 id) {
  return id % 2 == 0 ? std::string(500, static_cast<char>('a' + id)) : "slot " + std::to_string(id);
}

void put_checksums_right(std::string& bytes) {
  char* trailer = bytes.data() + bytes.size() - kTrailer;
  u64 offset = base::load_le<u64>(trailer + 8);
  if (offset < bytes.size() - kTrailer) {
    auto index = base::as_bytes(bytes).subspan(offset, bytes.size() - kTrailer - offset);
    base::store_le<u32>(trailer + 20, base::crc32c(index));
  }
  base::store_le<u32>(trailer + 24, base::crc32c(base::as_bytes({trailer, 24})));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  base::SimDisk disk({});
  fs::StoreKey key{};
  CHECK(disk.make_directory("f").ok());
  fs::FolderBlobs blobs(disk, "f");
  fs::PackWriter writer(blobs, "p", key);
  for (u64 id = 1; id <= 5; ++id) writer.add(id, slot_of(id));
  CHECK(writer.finish().ok());
  auto contents = disk.contents("f/p");
  std::string bytes(contents->begin(), contents->end());
  for (size_t at = 0; at + 3 <= size; at += 3) {
    size_t back = base::load_le<u16>(reinterpret_cast<const char*>(data) + at);
    if (back < bytes.size() - kHeader)
      bytes[bytes.size() - 1 - back] ^= static_cast<char>(data[at + 2]);
  }
  put_checksums_right(bytes);
  CHECK(blobs.put("q", bytes).ok());
  auto reader = fs::PackReader::open(blobs, "q", key);
  if (!reader.ok()) return 0;
  for (u64 id : (*reader)->ids()) {
    auto slot = (*reader)->read(id);
    if (slot.ok() && *slot) CHECK(id >= 1 && id <= 5 && **slot == slot_of(id));
  }
  return 0;
}
