// Bearer tokens: who may mount which workspace, how, and until when. A token is
// base64url(claims as JSON) "." base64url(Ed25519 signature of the first part); whoever has the
// store's private key signs, the server checks. Errors: kPermission with a sentence. Thread-safe.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <string>

namespace fs::wire {

struct Claims {
  std::string workspace;  // "*": every one
  bool write = false;
  std::string agent;  // who it was given to, for the audit trail
  i64 expires_s = 0;  // seconds since 1970
  // The server's certificate (fs/wire/tls.h), so that a mount needs nothing else to know it by; "":
  // the server had none, or one that others vouch for.
  std::string fingerprint;
};

// For whoever holds a token: the fingerprint in it, or "". Only the server can check the rest.
std::string fingerprint_in(const std::string& token);

// The store's signing key, a PEM file of mode 0600; made on first use.
class TokenKey {
 public:
  static base::Result<TokenKey> load_or_make(const std::string& path);
  // The same for a key that is kept elsewhere: a fresh one as text, and back. `where` is for
  // people.
  static std::string make_text();
  static base::Result<TokenKey> of_text(const std::string& text, const std::string& where);
  std::string sign(const Claims& claims) const;
  // Checks signature, form and time.
  base::Result<Claims> verify(const std::string& token, i64 now_s) const;

 private:
  explicit TokenKey(std::string seed) : seed_(std::move(seed)) {}
  std::string seed_;  // 32 bytes
};

}  // namespace fs::wire
