// Errors as values. Result<T> holds a T or an Error; TRY hands the Error up.
//
//   Result<int> port_of(std::string_view text);
//   Result<Server> listen(std::string_view text) {
//     int port = TRY(port_of(text));
//     if (port == 0) return Error(ErrorCode::kInvalidArgument, "port 0 is not a port; use 1 to
//     65535"); return Server(port);
//   }
//
// The message is one sentence that tells a person what is wrong and what to do about it.
// Shaped like std::expected so that it can become one. Thread-compatible.
#pragma once

#include "base/check.h"

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace base {

enum class ErrorCode {
  kInvalidArgument,
  kNotFound,
  kExists,
  kBusy,        // try again later
  kConflict,    // somebody else was first
  kCorruption,  // stored bytes are not what was written
  kIo,
  kFull,      // no space left
  kDeadline,  // time ran out
  kCancelled,
  kPermission,
  kLimit,  // over a configured limit
  kUnsupported,
  kUnavailable,  // the other side cannot be reached
  kInternal,
};

// The name as it is printed, e.g. "not found".
const char* name_of(ErrorCode code);

class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // Says where it happened: "reading /a/b: permission denied".
  Error with(std::string_view context) && {
    message_ = std::string(context) + ": " + message_;
    return std::move(*this);
  }

 private:
  ErrorCode code_;
  std::string message_;
};

// From errno: code and the system's text. `doing` says what was tried, e.g. "opening /a/b".
Error errno_error(int errno_value, std::string_view doing);

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  template <class U>
    requires(std::is_convertible_v<U, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
             !std::is_same_v<std::remove_cvref_t<U>, Error> &&
             !std::is_same_v<std::remove_cvref_t<U>, Result>)
  Result(U&& value) : state_(std::in_place_index<0>, std::forward<U>(value)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    check_ok();
    return std::get<0>(state_);
  }
  const T& value() const& {
    check_ok();
    return std::get<0>(state_);
  }
  // By value, so that what a loop or a reference takes out of a temporary outlives it.
  T value() && {
    check_ok();
    return std::get<0>(std::move(state_));
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T value_or(T other) const& { return ok() ? value() : std::move(other); }

  const Error& error() const& { return std::get<1>(state_); }
  Error error() && { return std::get<1>(std::move(state_)); }

 private:
  void check_ok() const {
    if (!ok()) check_failed("Result", 0, error().message().c_str());
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  void value() const {
    if (!ok()) check_failed("Result", 0, error_->message().c_str());
  }
  const Error& error() const& { return *error_; }
  Error error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace base

// The value of a Result expression; on error, returns the Error from the enclosing function.
#define TRY(expression)                                         \
  ({                                                            \
    auto&& try_result = (expression);                           \
    if (!try_result.ok()) return std::move(try_result).error(); \
    std::move(try_result).value();                              \
  })
