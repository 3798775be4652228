// The user's key: 32 random bytes in a file, as 64 hex digits. It seals a store's data key and
// nothing else, so that it can be changed without touching the data. Errors: kPermission for a key
// that is not the store's, kInvalidArgument for a file that is none. Thread-safe.
#pragma once

#include "base/result.h"
#include "fs/seal/seal.h"

#include <string>

namespace fs {

struct UserKey {
  DataKey bytes{};
  std::string where;  // for people
};

// As `openssl rand -hex 32` writes it.
base::Result<UserKey> read_key_file(const std::string& path);
// Makes the file, of mode 0600, when it is not there; `made` says so.
base::Result<UserKey> read_or_make_key_file(const std::string& path, bool& made);

// A fresh data key, and any data key under a user's key.
DataKey random_data_key();
std::string wrap_key(const DataKey& key, const UserKey& user);
base::Result<DataKey> unwrap_key(const std::string& wrapped, const UserKey& user);

}  // namespace fs
