// A mount that holds the lease sends records, and it may be hostile: whatever the changes say, the
// serialiser refuses them or goes on, and never leaves its memory. The input is a list of changes:
// kind u8, key kind u8, ino u8, length u8, bytes of name and value.
#include "base/check.h"
#include "fs/serialiser/serialiser.h"

namespace {

fs::Request request_of(fs::Operation operation) {
  fs::Request request;
  request.now_ns = 1;
  request.operation = std::move(operation);
  return request;
}

// A key of one of the known kinds about one of a few inodes, so that changes meet.
std::string key_of(u8 kind, fs::Ino ino, std::string_view name) {
  switch (kind % 6) {
    case 0:
      return fs::entry_key(ino, name);
    case 1:
      return fs::inode_key(ino);
    case 2:
      return fs::extent_key(ino, name.size());
    case 3:
      return fs::xattr_key(ino, name);
    case 4:
      return fs::orphan_key(ino);
    default:
      return std::string(fs::kUsageKey);
  }
}

std::string record_of(fs::Seq seq, const std::uint8_t* data, std::size_t size) {
  std::string out;
  fs::RecordWriter writer(out);
  writer.start();
  for (size_t at = 0; at + 4 <= size;) {
    fs::Ino ino = data[at + 2] % 8;
    if (ino > 1) ino += fs::first_id_of(1);
    size_t length = std::min<size_t>(data[at + 3], size - at - 4);
    std::string_view bytes(reinterpret_cast<const char*>(data) + at + 4, length);
    std::string key = key_of(data[at + 1], ino, bytes.substr(0, 2));
    if (data[at] % 2 == 0) {
      writer.put(key, bytes);
    } else {
      writer.remove(key);
    }
    at += 4 + length;
  }
  fs::RecordHeader header;
  header.seq = seq;
  header.op = fs::RecordOp::kCreate;
  writer.finish(header);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fs::Serialiser serialiser({}, nullptr, 0);
  fs::Effects effects;
  serialiser.create_root(request_of(fs::Statfs{}), 0755, effects);
  serialiser.step(request_of(fs::Create{fs::kRootIno, "a", 0644, false, false}), effects);
  serialiser.step(request_of(fs::Mkdir{fs::kRootIno, "d", 0755}), effects);
  size_t half = size / 2;
  for (const auto& [part, length] : {std::pair{data, half}, std::pair{data + half, size - half}}) {
    if (!serialiser.apply(record_of(serialiser.last_seq() + 1, part, length)).ok()) return 0;
  }
  serialiser.step(request_of(fs::Readdir{fs::kRootIno}), effects);
  serialiser.step(request_of(fs::Lookup{fs::kRootIno, "a"}), effects);
  fs::Ino file = effects.reply.ino;
  serialiser.step(request_of(fs::Read{file, 0, 4096}), effects);
  serialiser.step(request_of(fs::Setattr{.ino = file, .size = 10}), effects);
  serialiser.step(request_of(fs::Unlink{fs::kRootIno, "a"}), effects);
  serialiser.step(request_of(fs::Rmdir{fs::kRootIno, "d"}), effects);
  serialiser.step(request_of(fs::EndSession{}), effects);
  (void)serialiser.dump();
  return 0;
}
