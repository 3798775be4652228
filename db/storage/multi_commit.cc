#include "db/storage/multi_commit.h"

#include "base/random.h"

#include <algorithm>
#include <cstdio>

namespace db {

using base::Result;
using base::Status;

static bool needs_super(Store& store) {
  Pager& pager = store.pager();
  JournalMode mode = pager.journal_mode();
  bool on_disk = mode == JournalMode::kDelete || mode == JournalMode::kTruncate ||
                 mode == JournalMode::kPersist;
  return !store.in_memory() && on_disk && pager.synchronous() != Synchronous::kOff;
}

// Writes the list of journals, durably; its path.
static Result<std::string> write_super(Vfs& vfs, const std::vector<Store*>& stores) {
  for (;;) {
    u32 random;
    base::secure_random_bytes({reinterpret_cast<u8*>(&random), 4});
    char suffix[16];
    std::snprintf(suffix, sizeof(suffix), "-mj%06X9%02X", (random >> 8) & 0xffffff, random & 0xff);
    std::string path = stores[0]->path() + suffix;
    if (TRY(vfs.exists(path))) continue;
    std::string names;
    for (Store* store : stores) names += store->path() + "-journal" + '\0';
    std::unique_ptr<VfsFile> file = TRY(vfs.open(path, {.create = true, .exclusive = true}));
    Status written = file->write_at(0, base::as_bytes(names));
    if (written.ok()) written = file->sync(false);
    if (written.ok()) written = vfs.sync_directory_of(path);
    if (!written.ok()) {
      (void)vfs.remove(path, false);
      return std::move(written).error();
    }
    return path;
  }
}

// Undoes what phase one did to the files of one super-journal.
static void give_up(const std::vector<Store*>& together, const std::string& super) {
  if (super.empty()) return;
  for (Store* store : together) (void)store->rollback(false);
  (void)together[0]->pager().vfs().remove(super, false);
}

Status commit_together(std::span<Store* const> stores) {
  std::vector<Store*> together;
  std::vector<Store*> alone;
  for (Store* store : stores) {
    if (store->state() != TransactionState::kWrite) continue;
    (needs_super(*store) ? together : alone).push_back(store);
  }
  std::string super;
  if (together.size() > 1) {
    Vfs& vfs = together[0]->pager().vfs();
    super = TRY(write_super(vfs, together));
  }
  for (Store* store : together) {
    Status done = store->commit_phase_one(super);
    if (done.ok()) continue;
    give_up(together, super);
    return done;
  }
  for (Store* store : alone) {
    Status done = store->commit_phase_one("");
    if (done.ok()) continue;
    give_up(together, super);
    return done;
  }
  // The moment of commit.
  if (!super.empty()) TRY(together[0]->pager().vfs().remove(super, true));
  Status first;
  for (std::vector<Store*>* group : {&together, &alone}) {
    for (Store* store : *group) {
      Status done = store->commit_phase_two();
      if (!done.ok() && super.empty() && first.ok()) first = std::move(done);
    }
  }
  return first;
}

}  // namespace db
