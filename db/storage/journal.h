// The rollback journal: what pages were before the running transaction, in SQLite's format, so that
// either engine can roll the other's crash back.
//
//   header, padded to a sector:  magic 8, records 4, nonce 4, pages of the database 4, sector 4,
//   page 4 record:                      page number 4, the page, checksum 4 at the end, for
//   transactions over several files: the super-journal's name (see super_name_of)
//
// We write a journal in one go at commit: the original pages are kept in memory until then. Until
// the journal is durable its record count is zero, so a torn one plays back nothing.
// Single-threaded. Errors: kIo, kFull, kCorruption never (a malformed journal just ends early).
#pragma once

#include "db/storage/format.h"
#include "db/storage/vfs.h"

#include <memory>
#include <string>
#include <vector>

namespace db {

struct JournalPage {
  PageNo number;
  const u8* image;
};

struct JournalWrite {
  u32 page_bytes;
  PageNo page_count;  // of the database before the transaction
  bool sync;          // the journal must be durable
  bool sync_twice;    // records first, then the header that makes them count
  std::string super_journal;
};

// Writes the journal. `file` is the open journal, at whatever length it has.
base::Status write_journal(VfsFile& file, const std::vector<JournalPage>& pages,
                           const JournalWrite& how);

struct PlaybackResult {
  bool played = false;  // false: the journal held nothing
  u32 page_bytes = 0;
  PageNo page_count = 0;  // the database was cut to this
};

// Writes the original pages back into the database file, cuts it, syncs it.
base::Result<PlaybackResult> play_back(VfsFile& journal, VfsFile& database);

// The super-journal that a journal names at its end, or nothing.
base::Result<std::string> super_name_of(VfsFile& journal);

// Removes a super-journal that no journal of its transaction names any more.
base::Status remove_super_if_done(Vfs& vfs, const std::string& super);

}  // namespace db
