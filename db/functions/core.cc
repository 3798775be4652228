// Functions on types and numbers, the scalar min and max, random numbers, facts about the library.
#include "base/random.h"
#include "db/functions/builtins.h"
#include "db/functions/version.h"
#include "db/value/decimal.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace db {

void TextOf::write_number(const Value& value) {
  switch (value.type()) {
    case Type::kInteger:
      view_ = {buffer_, format_integer(value.raw_integer(), buffer_)};
      break;
    case Type::kReal:
      view_ = {buffer_, format_real(value.raw_real(), buffer_)};
      break;
    default:
      break;
  }
}

Value numeric_of(const Value& value) {
  if (!value.is_text()) return value;
  ParsedNumber number = parse_number(value.bytes());
  if (number.type == Type::kNull || !number.whole) return value;
  return number.type == Type::kInteger ? Value::integer(number.integer) : Value::real(number.real);
}

void too_big(FunctionContext& context) {
  context.fail("string or blob too big", rc::kTooBig);
}

namespace {

using Args = std::span<Value>;

void abs_call(FunctionContext& context, Args args) {
  if (args[0].is_null()) return;
  if (!args[0].is_integer()) return context.result.set_real(std::fabs(args[0].to_real()));
  i64 value = args[0].raw_integer();
  if (value == INT64_MIN) return context.fail("integer overflow");
  context.result.set_integer(value < 0 ? -value : value);
}

void sign_call(FunctionContext& context, Args args) {
  Value value = numeric_of(args[0]);
  if (!value.is_number()) return;
  f64 x = value.to_real();
  context.result.set_integer(x < 0 ? -1 : x > 0 ? 1 : 0);
}

void round_call(FunctionContext& context, Args args) {
  i64 places = 0;
  if (args.size() == 2) {
    if (args[1].is_null()) return;
    places = std::clamp<i64>(args[1].to_integer(), 0, 30);
  }
  if (args[0].is_null()) return;
  f64 x = args[0].to_real();
  constexpr f64 kNoFraction = 4503599627370496.0;  // from 2^52 on every double is whole
  if (x >= -kNoFraction && x <= kNoFraction) {
    if (places == 0) {
      x = static_cast<f64>(static_cast<i64>(x + (x < 0 ? -0.5 : 0.5)));
    } else {
      Decimal d = decimal_of(x, -static_cast<int>(places), 26);
      std::string text = "0." + std::string(d.digits, static_cast<size_t>(d.count)) + "e" +
                         std::to_string(d.point);
      f64 rounded = 0;
      std::from_chars(text.data(), text.data() + text.size(), rounded);
      x = d.negative ? -rounded : rounded;
    }
  }
  context.result.set_real(x);
}

void typeof_call(FunctionContext& context, Args args) {
  static constexpr std::string_view kNames[] = {"null", "integer", "real", "text", "blob"};
  context.result = Value::borrowed_text(kNames[static_cast<size_t>(args[0].type())]);
}

void subtype_call(FunctionContext& context, Args args) {
  context.result.set_integer(args[0].subtype());
}

void identity(FunctionContext& context, Args args) {
  context.result = args[0];
}

void likelihood_call(FunctionContext& context, Args args) {
  context.result = args[0];
}

void coalesce_call(FunctionContext& context, Args args) {
  for (const Value& arg : args) {
    if (arg.is_null()) continue;
    context.result = arg;
    return;
  }
}

void iif_call(FunctionContext& context, Args args) {
  size_t at = 0;
  for (; at + 1 < args.size(); at += 2) {
    if (args[at].to_truth() == 1) {
      context.result = args[at + 1];
      return;
    }
  }
  if (at < args.size()) context.result = args[at];
}

void nullif_call(FunctionContext& context, Args args) {
  if (args[1].is_null() || args[0].is_null() ||
      compare(args[0], args[1], context.collation()) != 0) {
    context.result = args[0];
  }
}

// min(a, b, ...) and max(a, b, ...); user_data is not null for max.
void extreme(FunctionContext& context, Args args) {
  bool is_max = context.user_data() != nullptr;
  size_t best = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_null()) return;
    int order = compare(args[i], args[best], context.collation());
    // Of equal values max() keeps the first and min() takes the last, as SQLite does.
    if (is_max ? order > 0 : order <= 0) best = i;
  }
  context.result = args[best];
}

base::Rng& generator() {
  static thread_local base::Rng rng(base::random_seed());
  return rng;
}

void random_call(FunctionContext& context, Args) {
  i64 value = static_cast<i64>(generator().next());
  // abs(random()) must not overflow.
  context.result.set_integer(value == INT64_MIN ? 0 : value);
}

void randomblob_call(FunctionContext& context, Args args) {
  i64 size = std::max<i64>(args[0].to_integer(), 1);
  if (size > static_cast<i64>(kValueBytesMax)) return too_big(context);
  context.result = Value::buffer(Type::kBlob, static_cast<size_t>(size));
  char* out = context.result.mutable_data();
  for (i64 i = 0; i < size; ++i) out[i] = static_cast<char>(generator().next() >> 32);
}

void zeroblob_call(FunctionContext& context, Args args) {
  i64 size = std::max<i64>(args[0].to_integer(), 0);
  if (size > static_cast<i64>(kValueBytesMax)) return too_big(context);
  context.result = Value::buffer(Type::kBlob, static_cast<size_t>(size));
  std::memset(context.result.mutable_data(), 0, static_cast<size_t>(size));
}

void version_call(FunctionContext& context, Args) {
  context.result = Value::borrowed_text(kSqliteVersion);
}

void source_id_call(FunctionContext& context, Args) {
  context.result = Value::borrowed_text(kSqliteSourceId);
}

void option_used_call(FunctionContext& context, Args args) {
  if (args[0].is_null()) return;
  context.result.set_integer(is_compile_option(TextOf(args[0])) ? 1 : 0);
}

void option_get_call(FunctionContext& context, Args args) {
  i64 index = args[0].to_integer();
  if (index < 0 || index >= static_cast<i64>(kCompileOptions.size())) return;
  context.result = Value::borrowed_text(kCompileOptions[static_cast<size_t>(index)]);
}

void log_call(FunctionContext&, Args) {}

}  // namespace

void add_core_functions(FunctionRegistry& registry) {
  using namespace function_flag;
  static constexpr u32 kOnce = kInnocuous | kBuiltIn;
  static const char kMax = 1;
  add_scalar(registry, "abs", 1, abs_call);
  add_scalar(registry, "sign", 1, sign_call);
  add_scalar(registry, "round", 1, round_call);
  add_scalar(registry, "round", 2, round_call);
  add_scalar(registry, "typeof", 1, typeof_call);
  add_scalar(registry, "subtype", 1, subtype_call, kPure | kSubtype);
  add_scalar(registry, "likely", 1, identity);
  add_scalar(registry, "unlikely", 1, identity);
  add_scalar(registry, "likelihood", 2, likelihood_call);
  add_scalar(registry, "coalesce", -4, coalesce_call);
  add_scalar(registry, "ifnull", 2, coalesce_call);
  add_scalar(registry, "iif", -4, iif_call);
  add_scalar(registry, "if", -4, iif_call);
  add_scalar(registry, "nullif", 2, nullif_call, kPure | kUsesCollation);
  add_scalar(registry, "min", -3, extreme, kPure | kUsesCollation);
  add_scalar(registry, "max", -3, extreme, kPure | kUsesCollation, &kMax);
  add_scalar(registry, "random", 0, random_call, kOnce);
  add_scalar(registry, "randomblob", 1, randomblob_call, kOnce);
  add_scalar(registry, "zeroblob", 1, zeroblob_call);
  add_scalar(registry, "sqlite_version", 0, version_call);
  add_scalar(registry, "sqlite_source_id", 0, source_id_call);
  add_scalar(registry, "sqlite_compileoption_used", 1, option_used_call);
  add_scalar(registry, "sqlite_compileoption_get", 1, option_get_call);
  add_scalar(registry, "sqlite_log", 2, log_call, kOnce);
}

const FunctionRegistry& builtin_functions() {
  static const FunctionRegistry* const kRegistry = [] {
    auto* registry = new FunctionRegistry();
    add_core_functions(*registry);
    add_text_functions(*registry);
    add_like_functions(*registry);
    add_math_functions(*registry);
    add_date_functions(*registry);

    add_json_functions(*registry);
    add_aggregate_functions(*registry);
    add_window_functions(*registry);
    return registry;
  }();
  return *kRegistry;
}

}  // namespace db
