// Where requests leave for the wire: real HTTP, or a cassette of earlier exchanges. Thread-safe.
#pragma once

#include "base/http_client.h"

namespace team {

class Transport {
 public:
  virtual ~Transport() = default;
  // As base::http_stream: the head once, then the body in pieces. Errors: kUnavailable, kDeadline,
  // kCancelled, kInvalidArgument; a strict cassette adds kNotFound.
  virtual base::Result<base::HttpResponse> send(const base::HttpRequest& request,
                                                const base::HttpHeadSink& on_head,
                                                const base::HttpBodySink& on_body) = 0;
};

class HttpTransport : public Transport {
 public:
  base::Result<base::HttpResponse> send(const base::HttpRequest& request,
                                        const base::HttpHeadSink& on_head,
                                        const base::HttpBodySink& on_body) override;
};

}  // namespace team
