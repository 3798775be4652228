// What a private mount keeps on its own machine: the journal of changes that the server may not
// have yet, and who it is to the server. One folder a mount; a second process is refused.
//
//   FOLDER/lock          held while a mount runs
//   FOLDER/state.json    {"client", "epoch", "number"}: identity, last lease, workspace number
//   FOLDER/log/...       journal segments (fs/log/journal.h)
//
// A daemon that died finds here all that it acknowledged. Single-threaded, but for journal().
#pragma once

#include "base/result.h"
#include "fs/log/journal.h"
#include "fs/state/types.h"

#include <memory>
#include <string>
#include <vector>

namespace fs {

struct JournalState {
  std::string client;  // random, for life
  Epoch epoch = 0;
  u32 number = 0;
};

struct LocalRecord {
  Seq seq = 0;
  std::string record;
  std::string data;
};

class LocalJournal {
 public:
  // Errors: kBusy when another mount uses the folder.
  static base::Result<std::unique_ptr<LocalJournal>> open(const std::string& folder);
  ~LocalJournal();

  const JournalState& state() const { return state_; }
  base::Status save(Epoch epoch, u32 number);
  // What an earlier life left, in order; its data too.
  base::Result<std::vector<LocalRecord>> leftover();
  // Throws the leftover away and starts after `head`.
  base::Status restart(Seq head);
  Journal& journal() { return *journal_; }
  // Forgets what the server has stored (data below `stored_data` too), once it is worth a new file.
  base::Status trim(Seq stored, DataId stored_data);
  // Nothing is left over any more. REQUIRES: no use of journal() after it.
  base::Status clear();

 private:
  LocalJournal(std::string folder, int lock_fd) : folder_(std::move(folder)), lock_fd_(lock_fd) {}
  std::string folder_;
  int lock_fd_;
  JournalState state_;
  std::unique_ptr<DataPlaces> places_;
  std::unique_ptr<Journal> journal_;
};

}  // namespace fs
