// Which bucket, and how to get at it:
//
//   s3://BUCKET[/PREFIX][?endpoint=http://HOST:PORT&region=R&path_style=1&credentials=FILE&cache_mb=N]
//
// endpoint: https://s3.REGION.amazonaws.com if not given; path_style=1 (usual where an endpoint is
// given) puts the bucket into the path, 0 into the host's name; cache_mb bounds what is kept of it
// in the server's folder (1024; 0: nothing). Secrets are never part of the URL: they come from
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or from `credentials`, a file
// with lines aws_access_key_id = ... as AWS's tools keep them.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <string>

namespace fs {

struct S3Url {
  std::string bucket;
  std::string prefix;  // "" or ends with '/'
  std::string endpoint;
  std::string region;
  std::string credentials;  // a file, or ""
  bool path_style = true;
  u64 cache_bytes = 0;
  std::string base() const;  // of the bucket, without '/' at its end
};

struct S3Credentials {
  std::string key_id;
  std::string secret;
  std::string session_token;  // often ""
};

bool is_s3_url(const std::string& text);
base::Result<S3Url> parse_s3_url(const std::string& text);
base::Result<S3Credentials> find_s3_credentials(const S3Url& url);

}  // namespace fs
