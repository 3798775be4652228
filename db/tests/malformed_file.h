// Database files for fuzzing: a database, its WAL and its rollback journal in one string of bytes,
// and ways to damage them that keep checksums right, so that the damage is read and not just
// refused. Single-threaded.
#pragma once

#include "base/random.h"

#include <array>
#include <string>
#include <string_view>

namespace db_fuzz {

// The three files in one input: for each its length in four bytes, then its bytes. Whatever bytes
// are given, unpack() makes three files of them.
struct DatabaseFiles {
  std::array<std::string, 3> files;  // database, WAL, journal; empty when there is none

  std::string& database() { return files[0]; }
  std::string& wal() { return files[1]; }
  std::string& journal() { return files[2]; }

  std::string pack() const;
  static DatabaseFiles unpack(std::string_view input);
};

// The suffixes of the three files' names.
inline constexpr std::array<const char*, 3> kFileSuffixes = {"", "-wal", "-journal"};

// Page size that the database's header states, or 512 when it states none.
size_t stated_page_bytes(std::string_view database);

// Computes the checksums of the WAL's header and frames again; its salts are copied to every frame.
void sign_wal(std::string& wal);

// A hot rollback journal that takes `after` back to `before`, both of `page_bytes`.
std::string make_journal(std::string_view before, size_t page_bytes, u32 nonce);
// Computes the checksums of the journal's pages again.
void sign_journal(std::string& journal);

// Damages one to six places: page headers and cell pointers above all, the header of the file,
// schema texts, whole pages, the lengths of the files.
void damage(DatabaseFiles& files, base::Rng& rng);

}  // namespace db_fuzz
