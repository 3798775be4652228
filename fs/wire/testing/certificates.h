// Certificates for tests: an authority of our own, and what it signs. Thread-compatible.
#pragma once

#include "fs/wire/tls.h"

#include <memory>
#include <string>

namespace fs::wire::testing {

class Authority {
 public:
  Authority();
  ~Authority();
  // PEM, for --tls-ca.
  const std::string& certificate() const { return certificate_; }
  // `names` as OpenSSL writes them: "DNS:localhost,IP:127.0.0.1". `end_s`: seconds from now until
  // it expires, negative for the past.
  TlsIdentity sign(const std::string& names, long end_s = 3600) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  std::string certificate_;
};

}  // namespace fs::wire::testing
