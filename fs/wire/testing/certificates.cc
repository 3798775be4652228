#include "fs/wire/testing/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace fs::wire::testing {

namespace {

template <class Write>
std::string pem(Write write) {
  BIO* bio = BIO_new(BIO_s_mem());
  CHECK(write(bio) == 1);
  char* bytes = nullptr;
  long length = BIO_get_mem_data(bio, &bytes);
  std::string text(bytes, static_cast<size_t>(length));
  BIO_free(bio);
  return text;
}

void extend(X509* certificate, int kind, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
  CHECK(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

X509* unsigned_certificate(EVP_PKEY* key, const char* common_name, long serial, long end_s) {
  constexpr long day_s = 24 * 3600;
  X509* certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -day_s);
  X509_gmtime_adj(X509_getm_notAfter(certificate), end_s);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const u8*>(common_name), -1, -1, 0);
  X509_set_pubkey(certificate, key);
  return certificate;
}

}  // namespace

struct Authority::Library {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = nullptr;
  ~Library() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
};

Authority::Authority() : library_(std::make_unique<Library>()) {
  // Of two with one name a checker would say that a signature is bad, not that it knows neither.
  static int count = 0;
  std::string name = "authority of tests " + std::to_string(++count);
  X509* own = unsigned_certificate(library_->key, name.c_str(), 1, 7200);
  library_->certificate = own;
  X509_set_issuer_name(own, X509_get_subject_name(own));
  extend(own, NID_basic_constraints, "critical,CA:TRUE");
  CHECK(X509_sign(own, library_->key, EVP_sha256()) > 0);
  certificate_ = pem([&](BIO* bio) { return PEM_write_bio_X509(bio, own); });
}

Authority::~Authority() = default;

TlsIdentity Authority::sign(const std::string& names, long end_s) const {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* made = unsigned_certificate(key, "a server of tests", 2, end_s);
  X509_set_issuer_name(made, X509_get_subject_name(library_->certificate));
  extend(made, NID_subject_alt_name, names);
  CHECK(X509_sign(made, library_->key, EVP_sha256()) > 0);
  TlsIdentity identity{
      pem([&](BIO* bio) { return PEM_write_bio_X509(bio, made); }), pem([&](BIO* bio) {
        return PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
      })};
  X509_free(made);
  EVP_PKEY_free(key);
  return identity;
}

}  // namespace fs::wire::testing
