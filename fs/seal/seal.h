// Encryption at rest: AES-256-GCM with keys that are derived from the store's one data key.
//
// GCM breaks when two messages are sealed with the same key and nonce, so this is the rule: whoever
// writes takes a fresh random salt of kSaltBytes, stores it beside what it writes, derives a key of
// its own from it, and counts nonces under that key. A salt belongs to one PackWriter or one
// Journal object and dies with it:
//   - A crash: the next one to open the file or the log has another object, so another salt. What
//     the dead one wrote is read, copied as it is or cut off, and never sealed again with its key.
//   - A failed write: Journal and PackWriter refuse everything afterwards.
//   - A fork is a workspace of its own, with journals of its own. Two servers, or a fenced writer
//     beside its successor, may write the same seq; they have different salts.
//   - Copying sealed bytes (to the engine and back) makes no new message.
// Two salts are equal with probability 2^-64 after 2^32 of them. Not covered: a virtual machine
// that is copied while it runs, whose twin goes on with the same salt and counters.
//
// Errors are of the callers: open() only says that bytes are not what was sealed. Thread-safe.
#pragma once

#include "base/bytes.h"
#include "base/types.h"

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace fs {

inline constexpr size_t kSaltBytes = 16;
inline constexpr size_t kSealTagBytes = 16;
using Salt = std::array<u8, kSaltBytes>;
using SealTag = std::array<u8, kSealTagBytes>;
using DataKey = std::array<u8, 32>;

Salt random_salt();

// The key that belongs to one salt.
class SealKey {
 public:
  struct Nonce {
    u64 major = 0;
    u32 minor = 0;
  };
  explicit SealKey(const DataKey& key);
  ~SealKey();
  SealKey(const SealKey&) = delete;
  SealKey& operator=(const SealKey&) = delete;

  // Encrypts `bytes` in place. `bound` is not encrypted, but must be the same when it is opened.
  // REQUIRES: no other message with this nonce.
  SealTag seal(Nonce nonce, base::ByteView bound, base::Bytes bytes) const;
  // Decrypts in place; false, with `bytes` ruined, unless they are what was sealed.
  bool open(Nonce nonce, base::ByteView bound, base::Bytes bytes, const SealTag& tag) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

// Everything that a store seals.
class StoreSeal {
 public:
  enum class Use : u8 { kLog = 1, kPack = 2, kText = 3 };
  explicit StoreSeal(const DataKey& key) : key_(key) {}
  std::shared_ptr<const SealKey> key(Use use, const Salt& salt) const;
  // A short text as hex digits, bound to its name; nullopt for what was not made by it.
  std::string seal_text(std::string_view name, std::string_view text) const;
  std::optional<std::string> open_text(std::string_view name, std::string_view sealed) const;

 private:
  DataKey key_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::map<std::pair<Use, Salt>, std::shared_ptr<const SealKey>> recent_;
};
using SealPointer = std::shared_ptr<const StoreSeal>;  // null: nothing is encrypted

}  // namespace fs
