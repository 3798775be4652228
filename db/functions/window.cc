#include "db/functions/window.h"

#include "db/functions/builtins.h"

namespace db {
namespace {

struct Entry {
  const char* name;
  int arg_count;
  WindowKernel kernel;
};

constexpr Entry kEntries[] = {
    {"row_number", 0, WindowKernel::kRowNumber},
    {"rank", 0, WindowKernel::kRank},
    {"dense_rank", 0, WindowKernel::kDenseRank},
    {"percent_rank", 0, WindowKernel::kPercentRank},
    {"cume_dist", 0, WindowKernel::kCumeDist},
    {"ntile", 1, WindowKernel::kNtile},
    {"lag", 1, WindowKernel::kLag},
    {"lag", 2, WindowKernel::kLag},
    {"lag", 3, WindowKernel::kLag},
    {"lead", 1, WindowKernel::kLead},
    {"lead", 2, WindowKernel::kLead},
    {"lead", 3, WindowKernel::kLead},
    {"first_value", 1, WindowKernel::kFirstValue},
    {"last_value", 1, WindowKernel::kLastValue},
    {"nth_value", 2, WindowKernel::kNthValue},
};

// Only the executor computes these; a call any other way is the user's mistake.
void misuse(FunctionContext& context) {
  std::string upper = context.function().name;
  context.fail("misuse of window function " + upper + "()");
}
void misuse_step(FunctionContext& context, std::span<Value>) {
  misuse(context);
}

}  // namespace

WindowKernel window_kernel_of(const Function& function) {
  if (function.step != misuse_step) return WindowKernel::kNone;
  return static_cast<const Entry*>(function.user_data)->kernel;
}

Value rank_value(WindowKernel kernel, const WindowPlace& place) {
  auto real = [](i64 value) { return static_cast<f64>(value); };
  switch (kernel) {
    case WindowKernel::kRowNumber:
      return Value::integer(place.row + 1);
    case WindowKernel::kRank:
      return Value::integer(place.peers_begin + 1);
    case WindowKernel::kDenseRank:
      return Value::integer(place.group + 1);
    case WindowKernel::kPercentRank:
      return Value::real(place.rows > 1 ? real(place.peers_begin) / real(place.rows - 1) : 0.0);
    case WindowKernel::kCumeDist:
      return Value::real(real(place.peers_end) / real(place.rows));
    default:
      return Value();
  }
}

Value ntile_value(i64 buckets, const WindowPlace& place) {
  i64 small = place.rows / buckets;
  i64 large_buckets = place.rows % buckets;
  i64 in_large = large_buckets * (small + 1);
  if (place.row < in_large) return Value::integer(place.row / (small + 1) + 1);
  return Value::integer(large_buckets + (place.row - in_large) / small + 1);
}

void add_window_functions(FunctionRegistry& registry) {
  for (const Entry& entry : kEntries) {
    Function function;
    function.name = entry.name;
    function.arg_count = entry.arg_count;
    function.flags = kPure;
    function.step = misuse_step;
    function.inverse = misuse_step;
    function.value = misuse;
    function.user_data = const_cast<Entry*>(&entry);
    registry.add(std::move(function));
  }
}

}  // namespace db
