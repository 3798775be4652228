// Errors of the engine: SQLite's result codes with a message, and Result<T> to carry them.
//
// The codes and the texts are part of the public interface (clients match on both), so the engine
// keeps SQLite's numbers from end to end instead of mapping base::ErrorCode at the border.
// TRY (base/result.h) works on db::Result. Thread-compatible.
#pragma once

#include "base/result.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace db {

// base::Error's code as SQLite numbers it (storage answers with base errors).
int rc_of(base::ErrorCode code);

// Primary and extended result codes, SQLite's numbers. `code & 0xff` is the primary code.
namespace rc {
inline constexpr int kOk = 0, kError = 1, kInternal = 2, kPerm = 3, kAbort = 4, kBusy = 5;
inline constexpr int kLocked = 6, kNoMem = 7, kReadOnly = 8, kInterrupt = 9, kIoErr = 10;
inline constexpr int kCorrupt = 11, kNotFound = 12, kFull = 13, kCantOpen = 14, kProtocol = 15;
inline constexpr int kEmpty = 16, kSchema = 17, kTooBig = 18, kConstraint = 19, kMismatch = 20;
inline constexpr int kMisuse = 21, kNoLfs = 22, kAuth = 23, kFormat = 24, kRange = 25;
inline constexpr int kNotADb = 26, kNotice = 27, kWarning = 28, kRow = 100, kDone = 101;
inline constexpr int kConstraintCheck = 275, kConstraintForeignKey = 787;
inline constexpr int kConstraintFunction = 1043, kConstraintNotNull = 1299;
inline constexpr int kConstraintPrimaryKey = 1555, kConstraintTrigger = 1811;
inline constexpr int kConstraintUnique = 2067, kConstraintRowid = 2579;
inline constexpr int kConstraintPinned = 2835, kConstraintDatatype = 3091;
inline constexpr int kBusyRecovery = 261, kBusySnapshot = 517, kAbortRollback = 516;
inline constexpr int kReadOnlyRecovery = 264, kCorruptIndex = 779, kReadOnlyDbMoved = 1032,
                     kErrorSnapshot = 769, kErrorMissingCollation = 257;
}  // namespace rc

class [[nodiscard]] Error {
 public:
  Error(int code, std::string message) : code_(code), message_(std::move(message)) {}
  Error(const base::Error& error) : code_(rc_of(error.code())), message_(error.message()) {}

  int code() const { return code_; }
  const std::string& message() const { return message_; }
  // Byte offset into the SQL text, or -1.
  int offset() const { return offset_; }
  Error at(int offset) && {
    offset_ = offset;
    return std::move(*this);
  }

 private:
  int code_;
  int offset_ = -1;
  std::string message_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  Result(const base::Error& error) : state_(std::in_place_index<1>, Error(error)) {}
  template <class U>
    requires(std::is_convertible_v<U, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
             !std::is_same_v<std::remove_cvref_t<U>, Error> &&
             !std::is_same_v<std::remove_cvref_t<U>, base::Error> &&
             !std::is_same_v<std::remove_cvref_t<U>, Result>)
  Result(U&& value) : state_(std::in_place_index<0>, std::forward<U>(value)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &value(); }
  T& operator*() & { return value(); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::make_unique<Error>(std::move(error))) {}
  Result(const base::Error& error) : error_(std::make_unique<Error>(error)) {}

  bool ok() const { return error_ == nullptr; }
  explicit operator bool() const { return ok(); }
  void value() const {}
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::unique_ptr<Error> error_;  // one pointer wide: success costs a register
};

using Status = Result<void>;

}  // namespace db
