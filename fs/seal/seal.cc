#include "fs/seal/seal.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/random.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstring>

namespace fs {

namespace {

constexpr size_t kNonceBytes = 12;
constexpr size_t kRecentMax = 256;

std::array<u8, kNonceBytes> bytes_of(SealKey::Nonce nonce) {
  std::array<u8, kNonceBytes> bytes{};
  base::store_le<u64>(bytes.data(), nonce.major);
  base::store_le<u32>(bytes.data() + 8, nonce.minor);
  return bytes;
}

int length_of(base::ByteView bytes) {
  CHECK(bytes.size() <= u64{1} << 30);
  return static_cast<int>(bytes.size());
}

std::optional<std::string> from_hex(std::string_view hex) {
  std::string out;
  if (hex.size() % 2 != 0) return std::nullopt;
  for (size_t i = 0; i < hex.size(); i += 2) {
    unsigned byte = 0;
    for (char c : hex.substr(i, 2)) {
      bool digit = c >= '0' && c <= '9', letter = c >= 'a' && c <= 'f';
      if (!digit && !letter) return std::nullopt;
      byte = byte * 16 + static_cast<unsigned>(digit ? c - '0' : c - 'a' + 10);
    }
    out += static_cast<char>(byte);
  }
  return out;
}

}  // namespace

Salt random_salt() {
  Salt salt;
  base::secure_random_bytes(salt);
  return salt;
}

// One context a direction: setting a key up costs more than sealing a small record.
struct SealKey::Library {
  mutable std::mutex seal_mutex, open_mutex;
  EVP_CIPHER_CTX* sealing = EVP_CIPHER_CTX_new();
  EVP_CIPHER_CTX* opening = EVP_CIPHER_CTX_new();
  ~Library() {
    EVP_CIPHER_CTX_free(sealing);
    EVP_CIPHER_CTX_free(opening);
  }
};

SealKey::SealKey(const DataKey& key) : library_(std::make_unique<Library>()) {
  const EVP_CIPHER* cipher = EVP_aes_256_gcm();
  CHECK(EVP_EncryptInit_ex(library_->sealing, cipher, nullptr, key.data(), nullptr) == 1);
  CHECK(EVP_DecryptInit_ex(library_->opening, cipher, nullptr, key.data(), nullptr) == 1);
}

SealKey::~SealKey() = default;

SealTag SealKey::seal(Nonce nonce, base::ByteView bound, base::Bytes bytes) const {
  auto iv = bytes_of(nonce);
  SealTag tag;
  int length = 0;
  std::lock_guard lock(library_->seal_mutex);
  EVP_CIPHER_CTX* context = library_->sealing;
  bool good = EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, iv.data()) == 1 &&
              (bound.empty() ||
               EVP_EncryptUpdate(context, nullptr, &length, bound.data(), length_of(bound)) == 1) &&
              (bytes.empty() || EVP_EncryptUpdate(context, bytes.data(), &length, bytes.data(),
                                                  length_of(bytes)) == 1) &&
              EVP_EncryptFinal_ex(context, tag.data(), &length) == 1 &&
              EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, kSealTagBytes, tag.data()) == 1;
  CHECK(good);
  return tag;
}

bool SealKey::open(Nonce nonce, base::ByteView bound, base::Bytes bytes, const SealTag& tag) const {
  auto iv = bytes_of(nonce);
  SealTag given = tag;
  u8 none[1];
  int length = 0;
  std::lock_guard lock(library_->open_mutex);
  EVP_CIPHER_CTX* context = library_->opening;
  bool good = EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr, iv.data()) == 1 &&
              (bound.empty() ||
               EVP_DecryptUpdate(context, nullptr, &length, bound.data(), length_of(bound)) == 1) &&
              (bytes.empty() || EVP_DecryptUpdate(context, bytes.data(), &length, bytes.data(),
                                                  length_of(bytes)) == 1) &&
              EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, kSealTagBytes, given.data()) == 1;
  CHECK(good);
  return EVP_DecryptFinal_ex(context, none, &length) == 1;
}

std::shared_ptr<const SealKey> StoreSeal::key(Use use, const Salt& salt) const {
  std::lock_guard lock(mutex_);
  auto& found = recent_[{use, salt}];
  if (found) return found;
  std::array<u8, 1 + kSaltBytes> names{};
  names[0] = static_cast<u8>(use);
  std::memcpy(names.data() + 1, salt.data(), salt.size());
  DataKey derived{};
  unsigned length = 0;
  CHECK(HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()), names.data(), names.size(),
             derived.data(), &length) != nullptr);
  auto made = std::make_shared<const SealKey>(derived);
  OPENSSL_cleanse(derived.data(), derived.size());
  // Rarely many, and whoever needs one holds it.
  if (recent_.size() > kRecentMax) recent_.clear();
  recent_[{use, salt}] = made;
  return made;
}

std::string StoreSeal::seal_text(std::string_view name, std::string_view text) const {
  Salt salt = random_salt();
  std::string bytes(text);
  SealTag tag =
      key(Use::kText, salt)
          ->seal({}, base::as_bytes(name), {reinterpret_cast<u8*>(bytes.data()), bytes.size()});
  return base::to_hex(salt) + base::to_hex(tag) + base::to_hex(base::as_bytes(bytes));
}

std::optional<std::string> StoreSeal::open_text(std::string_view name,
                                                std::string_view sealed) const {
  auto bytes = from_hex(sealed);
  if (!bytes || bytes->size() < kSaltBytes + kSealTagBytes) return std::nullopt;
  Salt salt;
  SealTag tag;
  std::memcpy(salt.data(), bytes->data(), salt.size());
  std::memcpy(tag.data(), bytes->data() + kSaltBytes, tag.size());
  std::string text = bytes->substr(kSaltBytes + kSealTagBytes);
  bool good =
      key(Use::kText, salt)
          ->open({}, base::as_bytes(name), {reinterpret_cast<u8*>(text.data()), text.size()}, tag);
  if (!good) return std::nullopt;
  return text;
}

}  // namespace fs
