#include "fs/wire/token.h"

#include "base/files.h"
#include "base/json.h"
#include "base/random.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>

namespace fs::wire {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

namespace {

constexpr size_t kSeedBytes = 32;
constexpr size_t kSignatureBytes = 64;
constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string to_base64url(std::string_view bytes) {
  std::string out;
  u32 bits = 0;
  int count = 0;
  for (char c : bytes) {
    bits = bits << 8 | static_cast<u8>(c);
    for (count += 8; count >= 6; count -= 6) out += kAlphabet[bits >> (count - 6) & 63];
  }
  if (count > 0) out += kAlphabet[bits << (6 - count) & 63];
  return out;
}

std::optional<std::string> from_base64url(std::string_view text) {
  std::string out;
  u32 bits = 0;
  int count = 0;
  for (char c : text) {
    const char* at = std::char_traits<char>::find(kAlphabet, 64, c);
    if (at == nullptr) return std::nullopt;
    bits = bits << 6 | static_cast<u32>(at - kAlphabet);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 255);
    }
  }
  // One text for one value: spare bits must be zero.
  if (to_base64url(out) != text) return std::nullopt;
  return out;
}

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

const u8* bytes_of(std::string_view text) {
  return reinterpret_cast<const u8*>(text.data());
}

Key key_of(const std::string& seed) {
  return Key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, bytes_of(seed), seed.size()));
}

Error refused(const char* why) {
  return Error(ErrorCode::kPermission,
               std::string("the token ") + why + "; make a new one with agentfs token");
}

}  // namespace

std::string fingerprint_in(const std::string& token) {
  auto text = from_base64url(std::string_view(token).substr(0, token.find('.')));
  if (!text) return "";
  auto json = Json::parse(*text);
  return json.ok() ? (*json)["tls"].as_string() : "";
}

std::string TokenKey::make_text() {
  std::string seed(kSeedBytes, 0);
  base::secure_random_bytes({reinterpret_cast<u8*>(seed.data()), seed.size()});
  return to_base64url(seed);
}

Result<TokenKey> TokenKey::of_text(const std::string& text, const std::string& where) {
  auto seed = from_base64url(text);
  if (seed && seed->size() == kSeedBytes) return TokenKey(*seed);
  return Error(ErrorCode::kCorruption,
               where + " is not a signing key; remove it to make a new one (old tokens end then)");
}

Result<TokenKey> TokenKey::load_or_make(const std::string& path) {
  if (base::file_exists(path)) return of_text(TRY(base::read_file(path)), path);
  std::string text = make_text();
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return base::errno_error(errno, "making the signing key " + path);
  bool stored = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                ::fsync(fd) == 0;
  ::close(fd);
  if (!stored) return Error(ErrorCode::kIo, "cannot store the signing key " + path);
  return of_text(text, path);
}

std::string TokenKey::sign(const Claims& claims) const {
  Json json = Json::object({{"workspace", claims.workspace},
                            {"write", claims.write},
                            {"agent", claims.agent},
                            {"expires", claims.expires_s}});
  if (!claims.fingerprint.empty()) json.set("tls", claims.fingerprint);
  std::string head = to_base64url(json.dump_canonical());
  Key key = key_of(seed_);
  Context context(EVP_MD_CTX_new());
  std::array<u8, kSignatureBytes> signature{};
  size_t length = signature.size();
  CHECK(key && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1);
  CHECK(EVP_DigestSign(context.get(), signature.data(), &length, bytes_of(head), head.size()) == 1);
  return head + "." + to_base64url({reinterpret_cast<char*>(signature.data()), length});
}

Result<Claims> TokenKey::verify(const std::string& token, i64 now_s) const {
  size_t dot = token.find('.');
  if (dot == std::string::npos) return refused("is not a token");
  std::string head = token.substr(0, dot);
  auto signature = from_base64url(std::string_view(token).substr(dot + 1));
  if (!signature || signature->size() != kSignatureBytes) return refused("is not a token");
  Key key = key_of(seed_);
  Context context(EVP_MD_CTX_new());
  CHECK(key && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1);
  if (EVP_DigestVerify(context.get(), bytes_of(*signature), signature->size(), bytes_of(head),
                       head.size()) != 1) {
    return refused("was not signed by this store");
  }
  auto text = from_base64url(head);
  if (!text) return refused("is not a token");
  Json json = TRY(Json::parse(*text));
  Claims claims{json["workspace"].as_string(), json["write"].as_bool(), json["agent"].as_string(),
                json["expires"].as_int(), json["tls"].as_string()};
  if (claims.expires_s <= now_s) return refused("has expired");
  return claims;
}

}  // namespace fs::wire
