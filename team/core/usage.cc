#include "team/core/usage.h"

#include <algorithm>
#include <cstdio>

namespace team {

Usage& Usage::operator+=(const Usage& other) {
  in_fresh += other.in_fresh;
  in_cached += other.in_cached;
  in_written += other.in_written;
  out_text += other.out_text;
  out_reason += other.out_reason;
  estimated = estimated || other.estimated;
  return *this;
}

base::Json to_json(const Usage& usage) {
  return base::Json::object({{"in_fresh", usage.in_fresh},
                             {"in_cached", usage.in_cached},
                             {"in_written", usage.in_written},
                             {"out_text", usage.out_text},
                             {"out_reason", usage.out_reason},
                             {"estimated", usage.estimated}});
}

Usage usage_from_json(const base::Json& json) {
  Usage usage;
  usage.in_fresh = json["in_fresh"].as_int();
  usage.in_cached = json["in_cached"].as_int();
  usage.in_written = json["in_written"].as_int();
  usage.out_text = json["out_text"].as_int();
  usage.out_reason = json["out_reason"].as_int();
  usage.estimated = json["estimated"].as_bool();
  return usage;
}

i64 cost_nusd(const Usage& usage, const Price& price) {
  return usage.in_fresh * price.in_nusd + usage.in_cached * price.cached_nusd +
         usage.in_written * price.write_nusd + usage.output() * price.out_nusd;
}

i64 worst_cost_nusd(i64 input_tokens, i64 output_tokens_max, const Price& price) {
  i64 input = std::max({price.in_nusd, price.cached_nusd, price.write_nusd});
  return input_tokens * input + output_tokens_max * price.out_nusd;
}

std::string format_usd(i64 nusd) {
  f64 usd = static_cast<f64>(nusd) / 1e9;
  char text[48];
  std::snprintf(text, sizeof text, usd != 0 && usd < 0.1 ? "$%.4f" : "$%.2f", usd);
  return text;
}

}  // namespace team
