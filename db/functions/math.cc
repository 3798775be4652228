// The math functions: NULL unless the argument is a number or text that is one.
#include "db/functions/builtins.h"

#include <cmath>
#include <numbers>

namespace db {
namespace {

using Args = std::span<Value>;
using Unary = f64 (*)(f64);
using Binary = f64 (*)(f64, f64);

// user_data is the address of a Unary.
void unary_call(FunctionContext& context, Args args) {
  Value value = numeric_of(args[0]);
  if (!value.is_number()) return;
  context.result.set_real((*static_cast<const Unary*>(context.user_data()))(value.to_real()));
}

void binary_call(FunctionContext& context, Args args) {
  Value a = numeric_of(args[0]);
  Value b = numeric_of(args[1]);
  if (!a.is_number() || !b.is_number()) return;
  context.result.set_real(
      (*static_cast<const Binary*>(context.user_data()))(a.to_real(), b.to_real()));
}

// ceil, floor, trunc: integers stay what they are.
void rounding_call(FunctionContext& context, Args args) {
  Value value = numeric_of(args[0]);
  if (value.is_integer()) {
    context.result = value;
  } else if (value.is_real()) {
    context.result.set_real((*static_cast<const Unary*>(context.user_data()))(value.raw_real()));
  }
}

constexpr f64 kNan = __builtin_nan("");  // becomes NULL

f64 log_or_nan(f64 x, f64 (*log)(f64)) {
  return x <= 0 ? kNan : log(x);
}

void log_call(FunctionContext& context, Args args) {
  Value x = numeric_of(args.back());
  if (!x.is_number()) return;
  if (args.size() == 1) return context.result.set_real(log_or_nan(x.to_real(), std::log10));
  Value base = numeric_of(args[0]);
  if (!base.is_number()) return;
  f64 divisor = log_or_nan(base.to_real(), std::log);
  if (!(divisor > 0)) return;
  context.result.set_real(log_or_nan(x.to_real(), std::log) / divisor);
}

void pi_call(FunctionContext& context, Args) {
  context.result.set_real(std::numbers::pi);
}

struct UnaryEntry {
  const char* name;
  Unary call;
};

constexpr UnaryEntry kUnary[] = {
    {"acos", [](f64 x) { return std::acos(x); }},
    {"acosh", [](f64 x) { return std::acosh(x); }},
    {"asin", [](f64 x) { return std::asin(x); }},
    {"asinh", [](f64 x) { return std::asinh(x); }},
    {"atan", [](f64 x) { return std::atan(x); }},
    {"atanh", [](f64 x) { return std::atanh(x); }},
    {"cos", [](f64 x) { return std::cos(x); }},
    {"cosh", [](f64 x) { return std::cosh(x); }},
    {"degrees", [](f64 x) { return x * (180.0 / std::numbers::pi); }},
    {"exp", [](f64 x) { return std::exp(x); }},
    {"ln", [](f64 x) { return log_or_nan(x, std::log); }},
    {"log10", [](f64 x) { return log_or_nan(x, std::log10); }},
    {"log2", [](f64 x) { return log_or_nan(x, std::log2); }},
    {"radians", [](f64 x) { return x * (std::numbers::pi / 180.0); }},
    {"sin", [](f64 x) { return std::sin(x); }},
    {"sinh", [](f64 x) { return std::sinh(x); }},
    {"sqrt", [](f64 x) { return std::sqrt(x); }},
    {"tan", [](f64 x) { return std::tan(x); }},
    {"tanh", [](f64 x) { return std::tanh(x); }},
};

constexpr UnaryEntry kRounding[] = {
    {"ceil", [](f64 x) { return std::ceil(x); }},
    {"ceiling", [](f64 x) { return std::ceil(x); }},
    {"floor", [](f64 x) { return std::floor(x); }},
    {"trunc", [](f64 x) { return std::trunc(x); }},
};

struct BinaryEntry {
  const char* name;
  Binary call;
};

constexpr BinaryEntry kBinaryCalls[] = {
    {"atan2", [](f64 y, f64 x) { return std::atan2(y, x); }},
    {"mod", [](f64 x, f64 y) { return std::fmod(x, y); }},
    {"pow", [](f64 x, f64 y) { return std::pow(x, y); }},
    {"power", [](f64 x, f64 y) { return std::pow(x, y); }},
};

}  // namespace

void add_math_functions(FunctionRegistry& registry) {
  for (const auto& entry : kUnary)
    add_scalar(registry, entry.name, 1, unary_call, kPure, &entry.call);
  for (const auto& entry : kRounding) {
    add_scalar(registry, entry.name, 1, rounding_call, kPure, &entry.call);
  }
  for (const auto& entry : kBinaryCalls) {
    add_scalar(registry, entry.name, 2, binary_call, kPure, &entry.call);
  }
  add_scalar(registry, "log", 1, log_call);
  add_scalar(registry, "log", 2, log_call);
  add_scalar(registry, "pi", 0, pi_call);
}

}  // namespace db
