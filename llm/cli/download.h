// Fetches one file over HTTP so that it is whole or not there: into FILE.partial first, renamed
// when its size and checksum hold. A broken-off transfer is gone on with from where it was, also by
// a later run, provided the server proves that the file is still the same one (a strong ETag that
// If-Range sends back, or a known SHA-256); otherwise it starts again. Redirects are followed.
// One download a file: a second one is told kBusy. Thread-safe.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"

#include <functional>
#include <string>

namespace llm {

struct DownloadOptions {
  std::string sha256;  // hexadecimal; "": what the server says, if it does
  int attempts = 6;    // in a row that bring nothing
  base::Clock* clock = &base::system_clock();
  // Bytes so far and of all; 0 while unknown.
  std::function<void(u64 done, u64 total)> progress;
};

struct Downloaded {
  u64 bytes = 0;
  u64 resumed_at = 0;    // bytes that an earlier run had left
  std::string sha256;    // of the file as it is now
  bool checked = false;  // against a checksum that was given or sent
};

// Errors: kNotFound (404), kUnavailable (the server, after all attempts), kCorruption (another size
// or checksum; the partial file is removed), kBusy, kIo, kFull.
base::Result<Downloaded> download(const std::string& url, const std::string& path,
                                  const DownloadOptions& options);

}  // namespace llm
