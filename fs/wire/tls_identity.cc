// Certificates and keys: made, read, named.
#include "base/files.h"
#include "base/random.h"
#include "fs/wire/tls.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>

namespace fs::wire {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

struct Free {
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

constexpr char kKeyBegins[] = "-----BEGIN PRIVATE KEY-----";

std::string text_of(BIO* bio) {
  char* bytes = nullptr;
  long length = BIO_get_mem_data(bio, &bytes);
  return std::string(bytes, static_cast<size_t>(length));
}

Result<Owned<X509>> first_certificate(const std::string& pem) {
  Owned<BIO> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Owned<X509> certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate) return certificate;
  return Error(ErrorCode::kInvalidArgument, "there is no PEM certificate in it");
}

// Who meets it goes by its fingerprint, so it needs no name, and an end that never comes.
Owned<X509> certificate_for(EVP_PKEY* key) {
  Owned<X509> certificate(X509_new());
  std::array<u8, 16> serial{};
  base::secure_random_bytes(serial);
  serial[0] &= 0x7f;
  BIGNUM* number = BN_bin2bn(serial.data(), serial.size(), nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate.get()));
  BN_free(number);
  X509_set_version(certificate.get(), X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -24 * 3600);
  ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate.get()), "99991231235959Z");
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const u8*>("agentfs"), -1,
                             -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  X509_set_pubkey(certificate.get(), key);
  CHECK(X509_sign(certificate.get(), key, EVP_sha256()) > 0);
  return certificate;
}

}  // namespace

std::string TlsIdentity::make_text() {
  Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  CHECK(key);
  Owned<X509> certificate = certificate_for(key.get());
  Owned<BIO> bio(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_X509(bio.get(), certificate.get()) == 1);
  CHECK(PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                      nullptr) == 1);
  return text_of(bio.get());
}

Result<TlsIdentity> TlsIdentity::of_text(const std::string& text, const std::string& where) {
  size_t key = text.find(kKeyBegins);
  if (key != std::string::npos) return TlsIdentity{text.substr(0, key), text.substr(key)};
  return Error(ErrorCode::kInvalidArgument,
               where +
                   " is not a certificate with its key; remove it to make a new one (mounts "
                   "need new tokens then)");
}

Result<TlsIdentity> TlsIdentity::load_or_make(const std::string& path) {
  if (base::file_exists(path)) return of_text(TRY(base::read_file(path)), path);
  std::string text = make_text();
  // Beside it first: a crash must not leave half of it under the name.
  std::string fresh = path + ".new";
  ::unlink(fresh.c_str());
  int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return base::errno_error(errno, "making the certificate " + path);
  bool stored = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                ::fsync(fd) == 0;
  ::close(fd);
  // link() and not rename(): of two servers that start at once, both use the first one's.
  if (stored) stored = ::link(fresh.c_str(), path.c_str()) == 0 || errno == EEXIST;
  ::unlink(fresh.c_str());
  if (!stored) return Error(ErrorCode::kIo, "cannot store the certificate " + path);
  return of_text(TRY(base::read_file(path)), path);
}

Result<TlsIdentity> TlsIdentity::load(const std::string& certificate_file,
                                      const std::string& key_file) {
  return TlsIdentity{TRY(base::read_file(certificate_file)), TRY(base::read_file(key_file))};
}

Result<std::string> TlsIdentity::fingerprint() const {
  auto first = TRY(first_certificate(certificate));
  std::array<u8, 32> digest{};
  unsigned length = 0;
  CHECK(X509_digest(first.get(), EVP_sha256(), digest.data(), &length) == 1);
  std::string out;
  for (u8 byte : digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

Result<bool> TlsIdentity::signed_by_itself() const {
  auto first = TRY(first_certificate(certificate));
  return X509_self_signed(first.get(), 0) == 1;
}

Result<std::string> parse_fingerprint(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == ':' || c == '\n') continue;
    out += static_cast<char>(std::tolower(static_cast<u8>(c)));
  }
  if (out.size() == 64 && out.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return out;
  }
  return Error(ErrorCode::kInvalidArgument,
               "'" + text + "' is no fingerprint; agentfs serve prints its own, 64 hex digits");
}

}  // namespace fs::wire
