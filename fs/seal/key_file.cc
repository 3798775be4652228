#include "fs/seal/key_file.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/random.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr std::string_view kName = "data key";

}  // namespace

Result<UserKey> read_key_file(const std::string& path) {
  std::string text = TRY(base::read_file(path));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  UserKey key;
  key.where = path;
  bool good = text.size() == 2 * key.bytes.size() &&
              text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (!good) {
    return Error(ErrorCode::kInvalidArgument,
                 path + " holds no key of 64 hex digits; openssl rand -hex 32 makes one");
  }
  for (size_t i = 0; i < key.bytes.size(); i++) {
    key.bytes[i] = static_cast<u8>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return key;
}

Result<UserKey> read_or_make_key_file(const std::string& path, bool& made) {
  made = false;
  if (base::file_exists(path)) return read_key_file(path);
  std::string text = base::to_hex(random_data_key()) + "\n";
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return base::errno_error(errno, "making the key " + path);
  bool stored = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                ::fsync(fd) == 0;
  ::close(fd);
  if (!stored) {
    ::unlink(path.c_str());
    return Error(ErrorCode::kIo, "cannot store the key " + path);
  }
  made = true;
  return read_key_file(path);
}

DataKey random_data_key() {
  DataKey key;
  base::secure_random_bytes(key);
  return key;
}

std::string wrap_key(const DataKey& key, const UserKey& user) {
  return StoreSeal(user.bytes).seal_text(kName, base::as_text(key));
}

Result<DataKey> unwrap_key(const std::string& wrapped, const UserKey& user) {
  auto text = StoreSeal(user.bytes).open_text(kName, wrapped);
  DataKey key;
  if (!text || text->size() != key.size()) {
    return Error(ErrorCode::kPermission, "the key in " + user.where + " is not this store's");
  }
  std::memcpy(key.data(), text->data(), key.size());
  return key;
}

}  // namespace fs
