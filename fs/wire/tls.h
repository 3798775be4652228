// TLS 1.3 for a connection, and nothing older. The library never touches the socket: bytes go in
// with feed() and come out of the calls that make some, so that who waits, and how long, stays with
// Connection. A cut is not told apart from an orderly end (no close_notify): frames carry their
// length, and a session that ends well says Goodbye.
//
// Errors: kPermission when the other side is not who it should be, kUnavailable for one that does
// not finish the handshake, kInvalidArgument and kNotFound for files that are no certificate or
// key.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <memory>
#include <string>
#include <string_view>

namespace fs::wire {

// A certificate (with its chain) and its private key, PEM.
struct TlsIdentity {
  std::string certificate;
  std::string key;

  // Signed by itself, for servers that are known by fingerprint. One text holds both parts.
  static std::string make_text();
  // `where` is for people.
  static base::Result<TlsIdentity> of_text(const std::string& text, const std::string& where);
  // The text in a file of mode 0600; made on first use.
  static base::Result<TlsIdentity> load_or_make(const std::string& path);
  static base::Result<TlsIdentity> load(const std::string& certificate_file,
                                        const std::string& key_file);
  // SHA-256 of the first certificate, 64 hex digits: `openssl x509 -fingerprint -sha256` without
  // colons.
  base::Result<std::string> fingerprint() const;
  // Whether only its fingerprint can tell that it is the right one.
  base::Result<bool> signed_by_itself() const;
};

// How a mount knows its server.
struct TlsTrust {
  bool use = false;         // false: the connection is plain
  std::string fingerprint;  // this certificate, whatever name and dates it has
  std::string ca_file;      // else signed by one of these; "": by one that the system trusts
};
// The 64 digits of what a person may write with colons and capitals. kInvalidArgument.
base::Result<std::string> parse_fingerprint(const std::string& text);

// What all connections of one side share. Thread-safe.
class TlsContext {
 public:
  static base::Result<std::shared_ptr<const TlsContext>> of_server(const TlsIdentity& identity);
  static base::Result<std::shared_ptr<const TlsContext>> of_client(const TlsTrust& trust);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsSession;
  struct Library;
  explicit TlsContext(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

// Records under one key before it is changed; AES-GCM allows 2^24 full ones (RFC 8446, 5.5).
inline constexpr u64 kRecordsPerKey = u64{1} << 22;

// One connection's state. Not thread-safe.
class TlsSession {
 public:
  // `host` is who a client wants to reach: a name or an IP address; "" for a server.
  TlsSession(std::shared_ptr<const TlsContext> context, const std::string& host,
             u64 records_per_key = kRecordsPerKey);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Goes on with what was fed. True when it is finished. `out` gets bytes for the other side, on
  // errors too.
  base::Result<bool> handshake(std::string& out);
  // Bytes that the other side sent.
  void feed(std::string_view bytes);
  // Plain bytes of what was fed; 0 when more must be fed first. kCorruption for bytes that were
  // changed on the way, kUnavailable after the other side's farewell.
  base::Result<size_t> open(char* out, size_t capacity);
  // Appends the sealed form to `out`.
  base::Status seal(std::string_view plain, std::string& out);

 private:
  void take_output(std::string& out);
  base::Error why_failed() const;
  struct Library;
  std::shared_ptr<const TlsContext> context_;
  std::unique_ptr<Library> library_;
  u64 records_per_key_;
  u64 records_ = 0;  // sealed with the present key
};

// Whether the first bytes of a client are TLS's and not a frame's. REQUIRES: kHeaderBytes bytes.
bool starts_tls(std::string_view bytes);

}  // namespace fs::wire
