// What a model call used and what it cost. Token counts are disjoint (fresh, cached and written
// input never overlap), normalised once, in the adapter of each wire protocol. Money is integer
// nano-dollars, so sums are exact. Thread-safe: plain values.
#pragma once

#include "base/json.h"
#include "base/types.h"

#include <string>

namespace team {

struct Usage {
  i64 in_fresh = 0;        // input tokens read anew
  i64 in_cached = 0;       // input tokens served from the back end's prefix cache
  i64 in_written = 0;      // input tokens written to that cache (billed apart by some)
  i64 out_text = 0;        // output tokens without reasoning
  i64 out_reason = 0;      // reasoning tokens
  bool estimated = false;  // the back end did not say; counted from bytes

  i64 input() const { return in_fresh + in_cached + in_written; }
  i64 output() const { return out_text + out_reason; }
  Usage& operator+=(const Usage& other);
  bool operator==(const Usage& other) const = default;
};

base::Json to_json(const Usage& usage);
Usage usage_from_json(const base::Json& json);

// Nano-USD per token. A back end declared free has a Price of zeros; a back end without a Price may
// not be called.
struct Price {
  std::string id;  // "zai/glm-5.2@2026-07", named in every usage row
  i64 in_nusd = 0;
  i64 cached_nusd = 0;
  i64 write_nusd = 0;
  i64 out_nusd = 0;
};

i64 cost_nusd(const Usage& usage, const Price& price);
// The most a call can cost: what to reserve before it is sent.
i64 worst_cost_nusd(i64 input_tokens, i64 output_tokens_max, const Price& price);

// "$1.24", "$0.0031".
std::string format_usd(i64 nusd);

}  // namespace team
