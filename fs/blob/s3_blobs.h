// Blobs as objects of an S3-compatible store, over libcurl, which signs (AWS Signature 4). What the
// store answers with 5xx, 429 or not at all is tried again, with growing pauses, until
// `give_up_ms`; then it is one kUnavailable. A put names the SHA-256 of its bytes, so the store
// takes no others; a body that was cut off counts as no answer.
#pragma once

#include "base/http_client.h"
#include "fs/blob/blob.h"
#include "fs/blob/s3_url.h"

namespace fs {

struct S3Patience {
  i64 first_pause_ms = 50;  // doubled each time, up to 1 s, and spread by chance
  i64 give_up_ms = 8'000;   // no new try after that; below a lease's time
  i64 connect_timeout_ms = 3'000;
  i64 stall_timeout_ms = 4'000;
};

class S3Blobs : public BlobStore {
 public:
  S3Blobs(S3Url url, S3Credentials credentials, S3Patience patience = {})
      : url_(std::move(url)), credentials_(std::move(credentials)), patience_(patience) {}
  base::Status put(const std::string& name, std::string_view bytes) override;
  base::Result<std::unique_ptr<Blob>> open(const std::string& name) override;
  base::Status remove(const std::string& name) override;
  base::Result<std::vector<std::string>> list(const std::string& prefix) override;
  std::string address(const std::string& name) const override {
    return "s3://" + url_.bucket + "/" + url_.prefix + name;
  }
  // REQUIRES: the object has so many.
  base::Result<std::string> range(const std::string& name, u64 offset, u64 length);

 private:
  struct Ask {
    std::string method;
    std::string name;   // "": the bucket
    std::string query;  // encoded, sorted by name
    std::string range;
    std::string body = {};
  };
  base::HttpRequest request_of(const Ask& ask);
  // Errors: those of blob.h.
  base::Result<base::HttpResponse> exchange(const Ask& ask);
  base::Error refusal(const Ask& ask, const base::HttpResponse& response) const;

  S3Url url_;
  S3Credentials credentials_;
  S3Patience patience_;
  base::HttpConnections connections_;
};

}  // namespace fs
