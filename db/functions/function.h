// SQL functions as the engine calls them: scalar, aggregate and window, built in or the user's.
//
// A function reads its arguments (views that live for the call; keep() what must stay) and sets
// context.result, or calls context.fail(). Aggregates keep their state in a block of memory that
// aggregate_state() hands out zeroed at the first step and frees after final; final is called also
// for groups without rows (then aggregate_state(0) is null). Windows add value() and inverse().
// Thread-compatible.
#pragma once

#include "db/value/result.h"
#include "db/value/value.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace db {

struct Session;
struct Function;

namespace function_flag {
inline constexpr u32 kDeterministic = 1;  // same arguments, same result: may be folded
inline constexpr u32 kDirectOnly = 2;     // not from views, triggers, checks, indexes
inline constexpr u32 kInnocuous = 4;
inline constexpr u32 kUsesCollation = 8;  // min, max, nullif: the first argument's collation
inline constexpr u32 kSlowChange = 16;    // CURRENT_TIME, date('now'): constant within a statement
inline constexpr u32 kSubtype = 32;       // reads argument subtypes
inline constexpr u32 kMinMax = 64;        // min/max: bare columns come from its row
inline constexpr u32 kCount = 128;        // count(): count(*) needs no arguments
inline constexpr u32 kResultSubtype = 256;
inline constexpr u32 kBuiltIn = 512;
inline constexpr u32 kLike = 1024;  // like/glob: may drive an index prefix search
}  // namespace function_flag

class FunctionContext {
 public:
  FunctionContext(const Function& function, Session* session)
      : function_(function), session_(session) {}
  FunctionContext(const FunctionContext&) = delete;
  FunctionContext& operator=(const FunctionContext&) = delete;
  ~FunctionContext();

  Value result;
  // A buffer that a result is done with, for the next one.
  Value spare;
  // Makes the result a text of `bytes` bytes, to be filled.
  char* make_text(size_t bytes) {
    result = Value::buffer(Type::kText, bytes, spare);
    return result.mutable_data();
  }
  // ... these bytes.
  void set_text(std::string_view text) {
    char* to = make_text(text.size());
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
  }

  const Function& function() const { return function_; }
  void* user_data() const;
  Session* session() const { return session_; }
  const Collation* collation() const { return collation_; }
  void set_collation(const Collation* collation) { collation_ = collation; }

  // SQLite's text without prefix; the result no longer counts.
  void fail(std::string message, int code = rc::kError) {
    error_code_ = code;
    error_message_ = std::move(message);
  }
  int error_code() const { return error_code_; }
  const std::string& error_message() const { return error_message_; }
  void clear_error() {
    error_code_ = 0;
    error_message_.clear();
  }

  // The group's state, `bytes` zeroed bytes at the first call; null when bytes is 0 and none is
  // there yet. Throws std::bad_alloc. The memory is freed without a destructor unless
  // set_state_destroy() gave one.
  void* aggregate_state(size_t bytes);
  void set_state_destroy(void (*destroy)(void*)) { state_destroy_ = destroy; }
  void reset_state();

  // Set before the first step when inverse() may be called: min() and max() then keep more.
  bool windowed() const { return windowed_; }
  void set_windowed(bool windowed) { windowed_ = windowed; }

  // Data that stays with a constant argument from row to row (compiled patterns).
  void* auxiliary(int argument) const;
  void set_auxiliary(int argument, void* data, void (*destroy)(void*));

 private:
  struct Auxiliary {
    int argument;
    void* data;
    void (*destroy)(void*);
  };
  const Function& function_;
  Session* session_;
  const Collation* collation_ = &kBinary;
  int error_code_ = 0;
  std::string error_message_;
  void* state_ = nullptr;
  void (*state_destroy_)(void*) = nullptr;
  bool windowed_ = false;
  std::vector<Auxiliary> auxiliary_;
};

using ScalarCall = void (*)(FunctionContext& context, std::span<Value> args);
using StepCall = void (*)(FunctionContext& context, std::span<Value> args);
using FinalCall = void (*)(FunctionContext& context);

struct Function {
  std::string name;
  int arg_count = -1;  // -1: any, -2 - n: at least n, as pragma_function_list shows it
  u32 flags = 0;
  ScalarCall scalar = nullptr;
  StepCall step = nullptr;     // aggregates
  StepCall inverse = nullptr;  // windows
  FinalCall value = nullptr;   // windows: the result so far
  FinalCall final = nullptr;   // aggregates: the result
  void* user_data = nullptr;
  std::shared_ptr<void> owner;  // keeps user_data alive

  bool is_aggregate() const { return step != nullptr; }
  bool is_window_capable() const { return inverse != nullptr && value != nullptr; }
  bool has(u32 flag) const { return (flags & flag) != 0; }
};

class FunctionRegistry {
 public:
  // A registry that falls back to `builtins` (shared by all connections, never changed).
  explicit FunctionRegistry(const FunctionRegistry* builtins = nullptr) : builtins_(builtins) {}

  // Replaces a function of the same name and argument count.
  void add(Function function);
  void remove(std::string_view name, int arg_count);
  // The best match: exact argument count, else one that takes any. `known` (may be null) says
  // whether the name exists at all, with whatever count.
  const Function* find(std::string_view name, int arg_count, bool* known = nullptr) const;
  // For PRAGMA function_list.
  std::vector<const Function*> all() const;
  // Changes whenever the set does; prepared statements compare it.
  u64 version() const { return version_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const {
      size_t h = 1469598103934665603u;
      for (char c : text) h = (h ^ (static_cast<u8>(c) | 0x20)) * 1099511628211u;
      return h;
    }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const { return equal_nocase(a, b); }
  };
  const FunctionRegistry* builtins_;
  std::unordered_map<std::string, std::vector<std::unique_ptr<Function>>, Hash, Equal> functions_;
  u64 version_ = 0;
};

// All of SQLite's built-in functions, made once per process.
const FunctionRegistry& builtin_functions();

}  // namespace db
