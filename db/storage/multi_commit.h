// One commit over several files: all of them or none, whatever happens in between.
//
// A super-journal names the rollback journals of all files; each journal names the super-journal.
// While the super-journal is there, every journal is hot; the moment it is removed, none is. Files
// in WAL mode commit each for itself, as in SQLite, and so do files whose journal is off or in
// memory.
#pragma once

#include "db/storage/btree.h"

#include <span>

namespace db {

// Commits the write transactions among `stores`; others are left alone. On error nothing is
// committed in the rollback-mode files, and they are rolled back; roll the rest back too. A single
// file that is busy keeps its transaction, so that the commit can be tried again.
base::Status commit_together(std::span<Store* const> stores);

}  // namespace db
