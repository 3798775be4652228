#include "fs/wire/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>

namespace fs::wire {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

struct Free {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

// What the library said last, for people; empties its queue.
std::string library_says() {
  const char* reason = ERR_reason_error_string(ERR_get_error());
  ERR_clear_error();
  return reason == nullptr ? "no reason given" : reason;
}

Owned<BIO> reader(const std::string& pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

Owned<SSL_CTX> fresh_context(const SSL_METHOD* method) {
  Owned<SSL_CTX> context(SSL_CTX_new(method));
  CHECK(context);
  CHECK(SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1);
  // Nobody comes back to a session; tickets would only be bytes that nobody reads.
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  return context;
}

Status use_identity(SSL_CTX* context, const TlsIdentity& identity) {
  Owned<BIO> certificates = reader(identity.certificate);
  Owned<X509> first(PEM_read_bio_X509(certificates.get(), nullptr, nullptr, nullptr));
  if (!first || SSL_CTX_use_certificate(context, first.get()) != 1) {
    return Error(ErrorCode::kInvalidArgument,
                 "the TLS certificate cannot be used (" + library_says() + "); it must be PEM");
  }
  while (X509* next = PEM_read_bio_X509(certificates.get(), nullptr, nullptr, nullptr)) {
    CHECK(SSL_CTX_add0_chain_cert(context, next) == 1);  // takes it
  }
  ERR_clear_error();
  Owned<BIO> keys = reader(identity.key);
  // A key with a password would make the library ask on the terminal.
  auto no_password = [](char*, int, int, void*) { return -1; };
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(keys.get(), nullptr, no_password, nullptr));
  if (!key) {
    return Error(ErrorCode::kInvalidArgument, "the TLS key cannot be used (" + library_says() +
                                                  "); it must be PEM without a password");
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) == 1) return {};
  ERR_clear_error();
  return Error(ErrorCode::kInvalidArgument, "the TLS key is not the certificate's");
}

// In place of the chain's check: this very certificate, or none.
int is_pinned(X509_STORE_CTX* check, void* pinned) {
  std::array<u8, 32> digest{};
  unsigned length = 0;
  X509* shown = X509_STORE_CTX_get0_cert(check);
  if (shown != nullptr && X509_digest(shown, EVP_sha256(), digest.data(), &length) == 1 &&
      digest == *static_cast<const std::array<u8, 32>*>(pinned)) {
    X509_STORE_CTX_set_error(check, X509_V_OK);
    return 1;
  }
  X509_STORE_CTX_set_error(check, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

}  // namespace

struct TlsContext::Library {
  Owned<SSL_CTX> context;
  bool server = false;
  bool check_host = false;
  std::array<u8, 32> pinned{};
};

struct TlsSession::Library {
  Owned<SSL> ssl;
  BIO* in = nullptr;   // the session's
  BIO* out = nullptr;  // the session's
};

TlsContext::TlsContext(std::unique_ptr<Library> library) : library_(std::move(library)) {}
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<const TlsContext>> TlsContext::of_server(const TlsIdentity& identity) {
  auto library = std::make_unique<Library>();
  library->server = true;
  library->context = fresh_context(TLS_server_method());
  TRY(use_identity(library->context.get(), identity));
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(library)));
}

Result<std::shared_ptr<const TlsContext>> TlsContext::of_client(const TlsTrust& trust) {
  auto library = std::make_unique<Library>();
  library->context = fresh_context(TLS_client_method());
  SSL_CTX* context = library->context.get();
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (!trust.fingerprint.empty()) {
    std::string digits = TRY(parse_fingerprint(trust.fingerprint));
    for (size_t i = 0; i < library->pinned.size(); i++) {
      library->pinned[i] = static_cast<u8>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
    }
    SSL_CTX_set_cert_verify_callback(context, is_pinned, library->pinned.data());
  } else {
    library->check_host = true;
    bool loaded = trust.ca_file.empty()
                      ? SSL_CTX_set_default_verify_paths(context) == 1
                      : SSL_CTX_load_verify_file(context, trust.ca_file.c_str()) == 1;
    if (!loaded) {
      return Error(ErrorCode::kInvalidArgument,
                   "there are no PEM certificates in " +
                       (trust.ca_file.empty() ? "the system's folder" : trust.ca_file) + " (" +
                       library_says() + ")");
    }
  }
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(library)));
}

TlsSession::TlsSession(std::shared_ptr<const TlsContext> context, const std::string& host,
                       u64 records_per_key)
    : context_(std::move(context)),
      library_(std::make_unique<Library>()),
      records_per_key_(records_per_key) {
  const TlsContext::Library& shared = *context_->library_;
  library_->ssl.reset(SSL_new(shared.context.get()));
  SSL* ssl = library_->ssl.get();
  library_->in = BIO_new(BIO_s_mem());
  library_->out = BIO_new(BIO_s_mem());
  CHECK(ssl != nullptr && library_->in != nullptr && library_->out != nullptr);
  SSL_set_bio(ssl, library_->in, library_->out);
  if (shared.server) {
    SSL_set_accept_state(ssl);
    return;
  }
  SSL_set_connect_state(ssl);
  std::array<u8, 16> address{};
  bool numeric = ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
                 ::inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
  if (!numeric) SSL_set_tlsext_host_name(ssl, host.c_str());
  if (!shared.check_host) return;
  if (numeric) {
    CHECK(X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1);
  } else {
    CHECK(SSL_set1_host(ssl, host.c_str()) == 1);
  }
}

TlsSession::~TlsSession() = default;

void TlsSession::take_output(std::string& out) {
  // Not BIO_reset(), which clears all that the buffer ever held.
  size_t pending = BIO_ctrl_pending(library_->out), at = out.size();
  out.resize(at + pending);
  size_t got = 0;
  if (pending > 0) BIO_read_ex(library_->out, out.data() + at, pending, &got);
  out.resize(at + got);
}

Error TlsSession::why_failed() const {
  long verdict = SSL_get_verify_result(library_->ssl.get());
  switch (verdict) {
    case X509_V_OK:
      return Error(ErrorCode::kUnavailable, "the TLS handshake failed (" + library_says() + ")");
    case X509_V_ERR_APPLICATION_VERIFICATION:
      ERR_clear_error();
      return Error(ErrorCode::kPermission,
                   "the server's certificate is not the one whose fingerprint was given; if it "
                   "has a new one, get a new token");
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      ERR_clear_error();
      return Error(ErrorCode::kPermission,
                   "the server's certificate is for another name than the address; use the name "
                   "that is in it");
    case X509_V_ERR_CERT_HAS_EXPIRED:
      ERR_clear_error();
      return Error(ErrorCode::kPermission,
                   "the server's certificate has expired; its owner must renew it");
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
      ERR_clear_error();
      return Error(ErrorCode::kPermission,
                   "nobody whom this machine trusts signed the server's certificate; use a token "
                   "made since agentfs serve --tls, or --tls-ca FILE or --tls-fingerprint");
    default:
      ERR_clear_error();
      return Error(ErrorCode::kPermission, std::string("the server's certificate is refused: ") +
                                               X509_verify_cert_error_string(verdict));
  }
}

Result<bool> TlsSession::handshake(std::string& out) {
  ERR_clear_error();
  int done = SSL_do_handshake(library_->ssl.get());
  int why = SSL_get_error(library_->ssl.get(), done);
  take_output(out);
  if (done == 1) return true;
  if (why == SSL_ERROR_WANT_READ) return false;
  return why_failed();
}

void TlsSession::feed(std::string_view bytes) {
  CHECK(BIO_write(library_->in, bytes.data(), static_cast<int>(bytes.size())) ==
        static_cast<int>(bytes.size()));
}

Result<size_t> TlsSession::open(char* out, size_t capacity) {
  ERR_clear_error();
  size_t got = 0;
  if (SSL_read_ex(library_->ssl.get(), out, capacity, &got) == 1) return got;
  switch (SSL_get_error(library_->ssl.get(), 0)) {
    case SSL_ERROR_WANT_READ:
      return size_t{0};
    case SSL_ERROR_ZERO_RETURN:
      return Error(ErrorCode::kUnavailable, "the connection ended");
    default:
      return Error(ErrorCode::kCorruption,
                   "bytes of the connection were changed on the way (" + library_says() + ")");
  }
}

Status TlsSession::seal(std::string_view plain, std::string& out) {
  ERR_clear_error();
  SSL* ssl = library_->ssl.get();
  while (!plain.empty()) {
    std::string_view piece = plain.substr(0, SSL3_RT_MAX_PLAIN_LENGTH);
    if (records_++ == records_per_key_) {
      records_ = 1;
      CHECK(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1);
    }
    size_t taken = 0;
    if (SSL_write_ex(ssl, piece.data(), piece.size(), &taken) != 1 || taken != piece.size()) {
      return Error(ErrorCode::kUnavailable,
                   "the connection cannot be used (" + library_says() + ")");
    }
    take_output(out);
    plain.remove_prefix(piece.size());
  }
  return {};
}

bool starts_tls(std::string_view bytes) {
  // A handshake record that holds a ClientHello; in a frame's header the sixth byte is zero.
  return bytes[0] == 0x16 && bytes[1] == 0x03 && bytes[5] == 0x01;
}

}  // namespace fs::wire
