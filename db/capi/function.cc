// Functions and collations that the application defines.
#include "db/capi/handle.h"

#include <cstring>
#include <new>

using db::Function;
using db::FunctionContext;
using db::Type;
using db::Value;
using db::capi::context_of;
using db::capi::Entered;
using db::capi::is_live;

namespace {

// What the application registered. Lives as long as any Function that names it.
struct UserFunction {
  sqlite3* db = nullptr;
  void* app = nullptr;
  void (*call)(sqlite3_context*, int, sqlite3_value**) = nullptr;
  void (*step)(sqlite3_context*, int, sqlite3_value**) = nullptr;
  void (*final)(sqlite3_context*) = nullptr;
  void (*value)(sqlite3_context*) = nullptr;
  void (*inverse)(sqlite3_context*, int, sqlite3_value**) = nullptr;
  void (*destroy)(void*) = nullptr;
  ~UserFunction() {
    if (destroy != nullptr) destroy(app);
  }
};

const UserFunction& user_of(const FunctionContext& context) {
  return *static_cast<const UserFunction*>(context.user_data());
}

sqlite3_context* handle_of(FunctionContext& context) {
  return reinterpret_cast<sqlite3_context*>(&context);
}

// The arguments as the C API wants them: an array of pointers.
class Arguments {
 public:
  explicit Arguments(std::span<Value> args) : count_(static_cast<int>(args.size())) {
    sqlite3_value** at = few_;
    if (args.size() > std::size(few_)) {
      many_.resize(args.size());
      at = many_.data();
    }
    for (size_t i = 0; i < args.size(); ++i) at[i] = db::capi::handle_of(&args[i]);
    values_ = at;
  }
  int count() const { return count_; }
  sqlite3_value** values() { return values_; }

 private:
  int count_;
  sqlite3_value* few_[8];
  std::vector<sqlite3_value*> many_;
  sqlite3_value** values_;
};

void call_scalar(FunctionContext& context, std::span<Value> args) {
  Arguments arguments(args);
  user_of(context).call(handle_of(context), arguments.count(), arguments.values());
}

void call_step(FunctionContext& context, std::span<Value> args) {
  Arguments arguments(args);
  user_of(context).step(handle_of(context), arguments.count(), arguments.values());
}

void call_inverse(FunctionContext& context, std::span<Value> args) {
  Arguments arguments(args);
  user_of(context).inverse(handle_of(context), arguments.count(), arguments.values());
}

void call_final(FunctionContext& context) {
  user_of(context).final(handle_of(context));
}
void call_value(FunctionContext& context) {
  user_of(context).value(handle_of(context));
}

u32 flags_of(int flags) {
  u32 out = 0;
  if ((flags & SQLITE_DETERMINISTIC) != 0) out |= db::function_flag::kDeterministic;
  if ((flags & SQLITE_DIRECTONLY) != 0) out |= db::function_flag::kDirectOnly;
  if ((flags & SQLITE_INNOCUOUS) != 0) out |= db::function_flag::kInnocuous;
  if ((flags & SQLITE_SUBTYPE) != 0) out |= db::function_flag::kSubtype;
  if ((flags & SQLITE_RESULT_SUBTYPE) != 0) out |= db::function_flag::kResultSubtype;
  return out;
}

// Registers `user`, or removes the function when it has no callbacks. `user` is destroyed in any
// case when nothing refers to it any more, a refused registration included.
int register_function(sqlite3* db, const char* name, int args, int flags,
                      std::shared_ptr<UserFunction> user) {
  constexpr size_t kNameBytesMax = 255;
  constexpr int kArgsMax = 1000;
  if (!is_live(db) || name == nullptr || std::strlen(name) > kNameBytesMax || args < -1 ||
      args > kArgsMax) {
    return SQLITE_MISUSE;
  }
  const bool aggregate = user->step != nullptr || user->final != nullptr;
  const bool window = user->value != nullptr || user->inverse != nullptr;
  if ((user->call != nullptr && aggregate) || (user->step == nullptr) != (user->final == nullptr) ||
      (user->value == nullptr) != (user->inverse == nullptr) || (window && !aggregate)) {
    return SQLITE_MISUSE;
  }
  Entered entered(db);
  user->db = db;
  if (user->call == nullptr && !aggregate) {
    db->connection->functions().remove(name, args);
    return SQLITE_OK;
  }
  Function function;
  function.name = name;
  function.arg_count = args;
  function.flags = flags_of(flags);
  function.user_data = user.get();
  if (user->call != nullptr) function.scalar = call_scalar;
  if (aggregate) {
    function.step = call_step;
    function.final = call_final;
  }
  if (window) {
    function.value = call_value;
    function.inverse = call_inverse;
  }
  function.owner = std::move(user);
  db->connection->functions().add(std::move(function));
  return SQLITE_OK;
}

}  // namespace

int sqlite3_create_function_v2(sqlite3* db, const char* name, int args, int flags, void* app,
                               void (*call)(sqlite3_context*, int, sqlite3_value**),
                               void (*step)(sqlite3_context*, int, sqlite3_value**),
                               void (*final)(sqlite3_context*), void (*destroy)(void*)) {
  auto user = std::make_shared<UserFunction>();
  user->app = app;
  user->call = call;
  user->step = step;
  user->final = final;
  user->destroy = destroy;
  return register_function(db, name, args, flags, std::move(user));
}

int sqlite3_create_function(sqlite3* db, const char* name, int args, int flags, void* app,
                            void (*call)(sqlite3_context*, int, sqlite3_value**),
                            void (*step)(sqlite3_context*, int, sqlite3_value**),
                            void (*final)(sqlite3_context*)) {
  return sqlite3_create_function_v2(db, name, args, flags, app, call, step, final, nullptr);
}

int sqlite3_create_function16(sqlite3* db, const void* name, int args, int flags, void* app,
                              void (*call)(sqlite3_context*, int, sqlite3_value**),
                              void (*step)(sqlite3_context*, int, sqlite3_value**),
                              void (*final)(sqlite3_context*)) {
  if (name == nullptr) return SQLITE_MISUSE;
  const std::string narrow =
      db::capi::utf16_to_utf8(name, db::capi::utf16_length(name), db::Encoding::kUtf16le);
  return sqlite3_create_function_v2(db, narrow.c_str(), args, flags, app, call, step, final,
                                    nullptr);
}

int sqlite3_create_window_function(sqlite3* db, const char* name, int args, int flags, void* app,
                                   void (*step)(sqlite3_context*, int, sqlite3_value**),
                                   void (*final)(sqlite3_context*), void (*value)(sqlite3_context*),
                                   void (*inverse)(sqlite3_context*, int, sqlite3_value**),
                                   void (*destroy)(void*)) {
  auto user = std::make_shared<UserFunction>();
  user->app = app;
  user->step = step;
  user->final = final;
  user->value = value;
  user->inverse = inverse;
  user->destroy = destroy;
  return register_function(db, name, args, flags, std::move(user));
}

static void refuse_overload(sqlite3_context* context, int, sqlite3_value**) {
  const std::string message =
      "unable to use function " + context_of(context).function().name + " in the requested context";
  sqlite3_result_error(context, message.c_str(), -1);
}

int sqlite3_overload_function(sqlite3* db, const char* name, int args) {
  if (!is_live(db) || name == nullptr || args < -2) return SQLITE_MISUSE;
  if (db->connection->functions().find(name, args) != nullptr) return SQLITE_OK;
  return sqlite3_create_function_v2(db, name, args, 0, nullptr, refuse_overload, nullptr, nullptr,
                                    nullptr);
}

// --- Collations ----------------------------------------------------------------------------------

int sqlite3_create_collation_v2(sqlite3* db, const char* name, int encoding, void* app,
                                int (*compare)(void*, int, const void*, int, const void*),
                                void (*destroy)(void*)) {
  if (!is_live(db) || name == nullptr) return SQLITE_MISUSE;
  Entered entered(db);
  if (encoding != SQLITE_UTF8 && compare != nullptr) {
    return db::capi::fail(db, SQLITE_ERROR, "collations must take UTF-8 in this library");
  }
  db::Status created = db->connection->create_collation(name, compare, app, destroy);
  return created.ok() ? SQLITE_OK
                      : db::capi::fail(db, created.error().code(), created.error().message());
}

int sqlite3_create_collation(sqlite3* db, const char* name, int encoding, void* app,
                             int (*compare)(void*, int, const void*, int, const void*)) {
  return sqlite3_create_collation_v2(db, name, encoding, app, compare, nullptr);
}

int sqlite3_create_collation16(sqlite3* db, const void* name, int encoding, void* app,
                               int (*compare)(void*, int, const void*, int, const void*)) {
  if (name == nullptr) return SQLITE_MISUSE;
  const std::string narrow =
      db::capi::utf16_to_utf8(name, db::capi::utf16_length(name), db::Encoding::kUtf16le);
  return sqlite3_create_collation_v2(db, narrow.c_str(), encoding, app, compare, nullptr);
}

int sqlite3_collation_needed(sqlite3* db, void* app,
                             void (*needed)(void*, sqlite3*, int, const char*)) {
  if (!is_live(db)) return SQLITE_MISUSE;
  Entered entered(db);
  auto& hook = db->connection->hooks().collation_needed;
  hook = nullptr;
  if (needed != nullptr) {
    hook = [=](std::string_view name) { needed(app, db, SQLITE_UTF8, std::string(name).c_str()); };
  }
  return SQLITE_OK;
}

int sqlite3_collation_needed16(sqlite3* db, void* app,
                               void (*needed)(void*, sqlite3*, int, const void*)) {
  if (!is_live(db)) return SQLITE_MISUSE;
  Entered entered(db);
  auto& hook = db->connection->hooks().collation_needed;
  hook = nullptr;
  if (needed != nullptr) {
    hook = [=](std::string_view name) {
      needed(app, db, SQLITE_UTF8, db::capi::utf8_to_utf16(name).c_str());
    };
  }
  return SQLITE_OK;
}

// --- Inside a function
// -----------------------------------------------------------------------------

void* sqlite3_user_data(sqlite3_context* c) {
  return user_of(context_of(c)).app;
}
sqlite3* sqlite3_context_db_handle(sqlite3_context* c) {
  return user_of(context_of(c)).db;
}

void* sqlite3_aggregate_context(sqlite3_context* c, int bytes) {
  try {
    return context_of(c).aggregate_state(bytes <= 0 ? 0 : static_cast<size_t>(bytes));
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(c);
    return nullptr;
  }
}

int sqlite3_aggregate_count(sqlite3_context*) {
  return 0;
}
void* sqlite3_get_auxdata(sqlite3_context* c, int argument) {
  return context_of(c).auxiliary(argument);
}

void sqlite3_set_auxdata(sqlite3_context* c, int argument, void* data, void (*destroy)(void*)) {
  context_of(c).set_auxiliary(argument, data, destroy);
}

// --- Results
// ---------------------------------------------------------------------------------------

static void give(sqlite3_context* c, Value value) {
  value.keep();  // what the application lent lives no longer than its function
  context_of(c).result = std::move(value);
}

void sqlite3_result_blob(sqlite3_context* c, const void* data, int bytes, void (*free)(void*)) {
  give(c, db::capi::take_bytes(Type::kBlob, data, bytes < 0 ? 0 : bytes, free));
}
void sqlite3_result_blob64(sqlite3_context* c, const void* data, sqlite3_uint64 bytes,
                           void (*free)(void*)) {
  give(c, db::capi::take_bytes(Type::kBlob, data, static_cast<sqlite3_int64>(bytes), free));
}
void sqlite3_result_double(sqlite3_context* c, double value) {
  context_of(c).result.set_real(value);
}
void sqlite3_result_int(sqlite3_context* c, int value) {
  context_of(c).result.set_integer(value);
}
void sqlite3_result_int64(sqlite3_context* c, sqlite3_int64 value) {
  context_of(c).result.set_integer(value);
}
void sqlite3_result_null(sqlite3_context* c) {
  context_of(c).result.set_null();
}

void sqlite3_result_text(sqlite3_context* c, const char* text, int bytes, void (*free)(void*)) {
  give(c, db::capi::take_bytes(Type::kText, text, bytes, free));
}
void sqlite3_result_text64(sqlite3_context* c, const char* text, sqlite3_uint64 bytes,
                           void (*free)(void*), unsigned char encoding) {
  const auto size = static_cast<sqlite3_int64>(bytes);
  if (encoding == SQLITE_UTF8) {
    give(c, db::capi::take_bytes(Type::kText, text, size, free));
  } else {
    const auto order = encoding == SQLITE_UTF16BE ? db::Encoding::kUtf16be : db::Encoding::kUtf16le;
    give(c, db::capi::take_text16(text, size, free, order));
  }
}
void sqlite3_result_text16(sqlite3_context* c, const void* text, int bytes, void (*free)(void*)) {
  give(c, db::capi::take_text16(text, bytes, free, db::Encoding::kUtf16le));
}
void sqlite3_result_text16le(sqlite3_context* c, const void* text, int bytes, void (*free)(void*)) {
  sqlite3_result_text16(c, text, bytes, free);
}
void sqlite3_result_text16be(sqlite3_context* c, const void* text, int bytes, void (*free)(void*)) {
  give(c, db::capi::take_text16(text, bytes, free, db::Encoding::kUtf16be));
}

void sqlite3_result_value(sqlite3_context* c, sqlite3_value* value) {
  give(c, db::capi::value_of(value));
}
void sqlite3_result_pointer(sqlite3_context* c, void* pointer, const char* type,
                            void (*free)(void*)) {
  context_of(c).result = Value::pointer(pointer, type != nullptr ? type : "", free);
}

int sqlite3_result_zeroblob64(sqlite3_context* c, sqlite3_uint64 bytes) {
  constexpr sqlite3_uint64 kBytesMax = 1'000'000'000;
  if (bytes > kBytesMax) {
    sqlite3_result_error_toobig(c);
    return SQLITE_TOOBIG;
  }
  Value zeros = Value::buffer(Type::kBlob, bytes);
  std::memset(zeros.mutable_data(), 0, bytes);
  context_of(c).result = std::move(zeros);
  return SQLITE_OK;
}
void sqlite3_result_zeroblob(sqlite3_context* c, int bytes) {
  sqlite3_result_zeroblob64(c, bytes < 0 ? 0 : static_cast<sqlite3_uint64>(bytes));
}
void sqlite3_result_subtype(sqlite3_context* c, unsigned int subtype) {
  context_of(c).result.set_subtype(static_cast<u8>(subtype));
}

void sqlite3_result_error(sqlite3_context* c, const char* message, int bytes) {
  context_of(c).fail(bytes < 0 ? std::string(message)
                               : std::string(message, static_cast<size_t>(bytes)));
}
void sqlite3_result_error16(sqlite3_context* c, const void* message, int bytes) {
  const size_t size = bytes < 0 ? db::capi::utf16_length(message) : static_cast<size_t>(bytes);
  context_of(c).fail(db::capi::utf16_to_utf8(message, size, db::Encoding::kUtf16le));
}
void sqlite3_result_error_toobig(sqlite3_context* c) {
  context_of(c).fail("string or blob too big", SQLITE_TOOBIG);
}
void sqlite3_result_error_nomem(sqlite3_context* c) {
  context_of(c).fail("out of memory", SQLITE_NOMEM);
}
void sqlite3_result_error_code(sqlite3_context* c, int code) {
  FunctionContext& context = context_of(c);
  const bool has_message = context.error_code() != 0;
  context.fail(has_message ? context.error_message() : sqlite3_errstr(code), code);
}
