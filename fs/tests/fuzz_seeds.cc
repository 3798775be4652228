// Writes a few good inputs for each fuzz target into FOLDER/TARGET/: fuzzing starts from what the
// encoders make instead of from nothing, and no binary file has to be kept.
#include "base/files.h"
#include "fs/log/segment.h"
#include "fs/tree/page.h"
#include "fs/wire/message.h"

#include <cstdio>
#include <string>

namespace fs {
namespace {

class Seeds {
 public:
  explicit Seeds(std::string folder) : folder_(std::move(folder)) {}
  void add(const std::string& target, std::string_view bytes) {
    std::string folder = folder_ + "/" + target;
    good_ = good_ && base::make_directories(folder).ok() &&
            base::write_file(folder + "/" + std::to_string(count_++), bytes).ok();
  }
  bool good() const { return good_; }
  int count() const { return count_; }

 private:
  std::string folder_;
  int count_ = 0;
  bool good_ = true;
};

std::string a_record() {
  Attributes attr;
  attr.mode = 0100644;
  attr.size = 5;
  std::string inode, entry, out;
  encode_inode(attr, "", {{0, 5, 0, 9}}, inode);
  encode_entry({2, 3, FileType::kRegular}, entry);
  RecordWriter writer(out);
  writer.start();
  writer.put(entry_key(kRootIno, "name"), entry);
  writer.put(inode_key(2), inode);
  writer.remove(orphan_key(2));
  RecordHeader header;
  header.seq = 1;
  header.op = RecordOp::kCreate;
  writer.finish(header);
  return out;
}

void state_seeds(Seeds& seeds) {
  Attributes attr;
  attr.mode = 0120777;
  std::string link, extent, entry, usage;
  encode_inode(attr, "target", {}, link);
  encode_extent({4096, 10, 2, 7}, extent);
  encode_entry({2, 3, FileType::kRegular}, entry);
  encode_usage({1, 2, 3, 4}, usage);
  for (const std::string& value : {link, extent, entry, usage, entry_key(1, "n"), inode_key(2),
                                   extent_key(2, 4096), xattr_key(2, "user.a"), orphan_key(2)}) {
    seeds.add("state_fuzz", value);
  }
}

void log_seeds(Seeds& seeds) {
  std::string record = a_record();
  seeds.add("record_fuzz", record);
  std::string batch(kBatchHeaderBytes, '\0');
  char prefix[kRecordPrefixBytes] = {};
  base::store_le<u32>(prefix, static_cast<u32>(record.size()));
  batch.append(prefix, sizeof prefix).append(record);
  BatchHeader header;
  header.first = header.count = 1;
  header.records_length = static_cast<u32>(batch.size() - kBatchHeaderBytes);
  finish_batch(header, batch);
  seeds.add("record_fuzz", batch);
  seeds.add("journal_fuzz", std::string("\x50\x00\x01", 3));
  seeds.add("pack_fuzz", std::string("\x08\x00\x01\x20\x00\x04", 6));
  seeds.add("apply_fuzz", std::string("\x00\x01\x02\x04name\x01\x00\x01\x01z", 13));
}

void page_seeds(Seeds& seeds) {
  PageBuilder leaf(0), inner(1);
  leaf.add_value("a", "1");
  leaf.add_value("ab", "22");
  inner.add_child("a", 5);
  inner.add_child("b", 6);
  seeds.add("page_fuzz", leaf.take());
  seeds.add("page_fuzz", inner.take());
}

void wire_seeds(Seeds& seeds) {
  seeds.add("wire_fuzz", wire::encode_hello({wire::kVersion, "token", "main", false, {}, ""}));
  seeds.add("wire_fuzz", wire::encode_welcome({wire::kVersion, 7, 9, "main"}));
  seeds.add("wire_fuzz", wire::encode_invalidations({{Invalidation::Kind::kEntry, 1, "name"}}));
  Request request;
  request.operation = Write{2, 0, 5, false, false};
  seeds.add("wire_fuzz", wire::encode_call(request, base::as_bytes("hello")));
  request.operation = Rename{1, "from", 2, "to", 0};
  seeds.add("wire_fuzz", wire::encode_call(request, {}));
  seeds.add("wire_fuzz", wire::encode_lease({LeaseMessage::Kind::kRenew, 1, 2, 3, true, 4}));
  std::string record = a_record();
  seeds.add("wire_fuzz", wire::encode_batch({1, 1, {{record, "data"}}}));
  Effects effects;
  effects.reply.pieces = {{1, 0, 5}};
  seeds.add("wire_fuzz", wire::encode_answer(effects, "hello"));
}

}  // namespace
}  // namespace fs

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: agentfs-fuzz-seeds FOLDER\n");
    return 2;
  }
  fs::Seeds seeds(argv[1]);
  fs::state_seeds(seeds);
  fs::log_seeds(seeds);
  fs::page_seeds(seeds);
  fs::wire_seeds(seeds);
  std::printf("%d inputs in %s\n", seeds.count(), argv[1]);
  return seeds.good() ? 0 : 1;
}
