// A workspace whose serialiser runs elsewhere: in the mount that holds its lease. The store's side
// follows: it takes the records that the holder made, in order, into the journal and into its own
// serialiser, so that viewers, forks, checkpoints and the next holder start from here at once.
//
// While there is a holder nobody else may change the workspace: two histories would share sequence
// and data numbers. WriterRow remembers the holder across restarts of the server. A writer that
// never gave its lease back may still have changes that nobody here has seen; before anybody else
// writes, shut_out() keeps the point where its history ends and goes on under a new workspace
// number, so that both histories can be stored side by side.
// Errors: as Workspace. Thread-safety: as Workspace::perform.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "fs/serialiser/serialiser.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fs {

// Row writer/NAME of the engine.
struct WriterRow {
  Epoch epoch = 0;  // of the last grant
  std::string client;
  std::string agent;
  bool open = false;  // it never gave the lease back
};
std::string encode_row(const WriterRow& row);
std::optional<WriterRow> decode_writer_row(std::string_view value);

// From where a holder starts: the tree, and the log that follows it.
struct ReplicaBase {
  u32 number = 0;
  PageId root = 0;
  Seq root_seq = 0;
  Seq head = 0;
  u64 bytes_quota = 0;
  u64 inodes_quota = 0;
};

class Replica {
 public:
  virtual ~Replica() = default;
  virtual ReplicaBase base() const = 0;
  // Checks the record and takes it; commit() writes it to the journal. What other kernels must
  // forget is appended to `changed`. kInvalidArgument for a record that no serialiser makes:
  // nothing has changed. kCorruption: this replica is of no use any more, see abandon().
  virtual base::Status take(std::string_view record, base::ByteView data,
                            std::vector<Invalidation>& changed) = 0;
  // Bytes of a page of the tree or of a piece of data. kNotFound when it is gone or never was.
  virtual base::Result<std::shared_ptr<const std::string>> fetch(u64 id) = 0;
  // The log behind the root, from record `from` on. `visit` may stop with an error of its own.
  using Visit = std::function<base::Status(std::string_view record)>;
  virtual base::Status records(Seq from, const Visit& visit) = 0;
  virtual base::Result<WriterRow> writer() = 0;
  virtual base::Status set_writer(const WriterRow& row) = 0;
  // Gives the store's lease back and stores nothing.
  virtual void abandon() = 0;
};

}  // namespace fs
