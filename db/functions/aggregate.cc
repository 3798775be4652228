// The aggregates. Sums of reals are compensated (Kahan, Babuska, Neumaier), as SQLite's are, so
// that both give the same digits. Each can also run as a window: inverse() takes back the oldest
// row that step() saw.
#include "db/functions/builtins.h"

#include <cmath>
#include <deque>

namespace db {
namespace {

using Args = std::span<Value>;

// ---------------------------------------------------------------- count

struct Count {
  i64 rows;
};

void count_step(FunctionContext& context, Args args) {
  auto* state = static_cast<Count*>(context.aggregate_state(sizeof(Count)));
  if (args.empty() || !args[0].is_null()) ++state->rows;
}

void count_inverse(FunctionContext& context, Args args) {
  auto* state = static_cast<Count*>(context.aggregate_state(sizeof(Count)));
  if (args.empty() || !args[0].is_null()) --state->rows;
}

void count_value(FunctionContext& context) {
  const auto* state = static_cast<Count*>(context.aggregate_state(0));
  context.result.set_integer(state == nullptr ? 0 : state->rows);
}

// ---------------------------------------------------------------- sum, total, avg

struct Sum {
  f64 sum;
  f64 error;
  i64 integer;
  i64 count;
  bool approximate;  // a real was seen, or the integers overflowed
  bool overflow;

  void add(f64 value) {
    f64 total = sum + value;
    error += std::fabs(sum) > std::fabs(value) ? (sum - total) + value : (value - total) + sum;
    sum = total;
  }
  // In two parts when the integer does not fit into a double exactly.
  void add_integer(i64 value) {
    constexpr i64 kExact = i64{1} << 52;
    if (value > -kExact && value < kExact) return add(static_cast<f64>(value));
    i64 low = value % 16384;
    add(static_cast<f64>(value - low));
    add(static_cast<f64>(low));
  }
  void become_approximate() {
    approximate = true;
    sum = 0;
    error = 0;
    add_integer(integer);
  }
  f64 real() const {
    if (!approximate) return static_cast<f64>(integer);
    return std::isfinite(error) ? sum + error : sum;
  }
};

void sum_step(FunctionContext& context, Args args) {
  auto* state = static_cast<Sum*>(context.aggregate_state(sizeof(Sum)));
  Value value = numeric_of(args[0]);
  if (value.is_null()) return;
  ++state->count;
  bool integer = value.is_integer();
  if (!state->approximate && integer) {
    i64 total = 0;
    if (!__builtin_add_overflow(state->integer, value.raw_integer(), &total)) {
      state->integer = total;
      return;
    }
    state->overflow = true;
    state->become_approximate();
    return state->add_integer(value.raw_integer());
  }
  if (!state->approximate) state->become_approximate();
  if (integer) return state->add_integer(value.raw_integer());
  state->overflow = false;
  state->add(value.to_real());
}

void sum_inverse(FunctionContext& context, Args args) {
  auto* state = static_cast<Sum*>(context.aggregate_state(sizeof(Sum)));
  Value value = numeric_of(args[0]);
  if (value.is_null()) return;
  --state->count;
  if (!state->approximate) {
    i64 total = 0;
    if (!__builtin_sub_overflow(state->integer, value.raw_integer(), &total)) {
      state->integer = total;
      return;
    }
    state->overflow = true;
    state->become_approximate();
  }
  if (value.is_integer()) {
    i64 integer = value.raw_integer();
    if (integer != INT64_MIN) return state->add_integer(-integer);
    state->add_integer(INT64_MAX);
    return state->add_integer(1);
  }
  state->add(-value.to_real());
}

void sum_value(FunctionContext& context) {
  const auto* state = static_cast<Sum*>(context.aggregate_state(0));
  if (state == nullptr || state->count == 0) return;
  if (!state->approximate) return context.result.set_integer(state->integer);
  if (state->overflow) return context.fail("integer overflow");
  context.result.set_real(state->real());
}

void total_value(FunctionContext& context) {
  const auto* state = static_cast<Sum*>(context.aggregate_state(0));
  context.result.set_real(state == nullptr ? 0.0 : state->real());
}

void avg_value(FunctionContext& context) {
  const auto* state = static_cast<Sum*>(context.aggregate_state(0));
  if (state == nullptr || state->count == 0) return;
  context.result.set_real(state->real() / static_cast<f64>(state->count));
}

// ---------------------------------------------------------------- min, max

// As an aggregate only the best value stays. As a window (the context says so) the candidates form
// a queue, best first: a row that a later, better row outlives can never be the answer again.
struct Extreme {
  std::deque<std::pair<i64, Value>> candidates;
  i64 stepped = 0;
  i64 removed = 0;
};

Extreme* extreme_state(FunctionContext& context) {
  auto** holder = static_cast<Extreme**>(context.aggregate_state(sizeof(Extreme*)));
  if (*holder == nullptr) {
    *holder = new Extreme();
    context.set_state_destroy([](void* state) { delete *static_cast<Extreme**>(state); });
  }
  return *holder;
}

void extreme_step(FunctionContext& context, Args args) {
  Extreme* state = extreme_state(context);
  i64 number = state->stepped++;
  if (args[0].is_null()) return;
  bool is_max = context.user_data() != nullptr;
  auto& queue = state->candidates;
  // Of equal values the first stays the answer, as in SQLite.
  while (!queue.empty()) {
    int order = compare(args[0], queue.back().second, context.collation());
    if (is_max ? order <= 0 : order >= 0) break;
    queue.pop_back();
  }
  if (!queue.empty() && !context.windowed()) return;
  Value value = args[0];
  value.keep();
  queue.emplace_back(number, std::move(value));
}

void extreme_inverse(FunctionContext& context, Args) {
  Extreme* state = extreme_state(context);
  i64 number = state->removed++;
  if (!state->candidates.empty() && state->candidates.front().first == number) {
    state->candidates.pop_front();
  }
}

void extreme_value(FunctionContext& context) {
  auto** holder = static_cast<Extreme**>(context.aggregate_state(0));
  if (holder == nullptr || *holder == nullptr || (*holder)->candidates.empty()) return;
  context.result = (*holder)->candidates.front().second;
}

// ---------------------------------------------------------------- group_concat, string_agg

struct Concat {
  std::string text;
  std::deque<std::pair<size_t, size_t>> pieces;  // bytes of separator before it, of the text
  size_t begin = 0;                              // what inverse() has cut off
};

Concat* concat_state(FunctionContext& context) {
  auto** holder = static_cast<Concat**>(context.aggregate_state(sizeof(Concat*)));
  if (*holder == nullptr) {
    *holder = new Concat();
    context.set_state_destroy([](void* state) { delete *static_cast<Concat**>(state); });
  }
  return *holder;
}

void concat_step(FunctionContext& context, Args args) {
  if (args[0].is_null()) return;
  Concat* state = concat_state(context);
  size_t separator = 0;
  if (!state->pieces.empty()) {
    size_t before = state->text.size();
    if (args.size() == 2) {
      state->text += TextOf(args[1]).view();
    } else {
      state->text += ',';
    }
    separator = state->text.size() - before;
  }
  TextOf text(args[0]);
  state->text += text.view();
  state->pieces.emplace_back(separator, text.view().size());
  if (state->text.size() > kValueBytesMax) too_big(context);
}

void concat_inverse(FunctionContext& context, Args args) {
  if (args[0].is_null()) return;
  Concat* state = concat_state(context);
  if (state->pieces.empty()) return;
  state->begin += state->pieces.front().second;
  state->pieces.pop_front();
  if (!state->pieces.empty()) {
    state->begin += state->pieces.front().first;
    state->pieces.front().first = 0;
  } else {
    state->begin = 0;
    state->text.clear();
  }
  if (state->begin > 4096 && state->begin > state->text.size() / 2) {
    state->text.erase(0, state->begin);
    state->begin = 0;
  }
}

void concat_value(FunctionContext& context) {
  auto** holder = static_cast<Concat**>(context.aggregate_state(0));
  if (holder == nullptr || *holder == nullptr || (*holder)->pieces.empty()) return;
  context.result = Value::text(std::string_view((*holder)->text).substr((*holder)->begin));
}

void add(FunctionRegistry& registry, const char* name, int arg_count, StepCall step,
         StepCall inverse, FinalCall value, u32 flags, const void* user_data = nullptr) {
  Function function;
  function.name = name;
  function.arg_count = arg_count;
  function.flags = kPure | flags;
  function.step = step;
  function.inverse = inverse;
  function.value = value;
  function.final = value;
  function.user_data = const_cast<void*>(user_data);
  registry.add(std::move(function));
}

}  // namespace

void add_aggregate_functions(FunctionRegistry& registry) {
  using namespace function_flag;
  static const char kMax = 1;
  add(registry, "count", 0, count_step, count_inverse, count_value, kCount);
  add(registry, "count", 1, count_step, count_inverse, count_value, kCount);
  add(registry, "sum", 1, sum_step, sum_inverse, sum_value, 0);
  add(registry, "total", 1, sum_step, sum_inverse, total_value, 0);
  add(registry, "avg", 1, sum_step, sum_inverse, avg_value, 0);
  add(registry, "min", 1, extreme_step, extreme_inverse, extreme_value, kMinMax | kUsesCollation);
  add(registry, "max", 1, extreme_step, extreme_inverse, extreme_value, kMinMax | kUsesCollation,
      &kMax);
  for (int count : {1, 2}) {
    add(registry, "group_concat", count, concat_step, concat_inverse, concat_value, 0);
  }
  add(registry, "string_agg", 2, concat_step, concat_inverse, concat_value, 0);
}

}  // namespace db
