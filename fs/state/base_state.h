// What lies below a serialiser's working set: an immutable map from keys (fs/state/keys.h) to
// values. The checkpoint tree implements it; tests use a std::map. Because it never changes,
// reading it does not make the serialiser impure. One that must fetch first answers kBusy: the step
// changed nothing and is repeated once the page is here. Errors: kBusy, kIo, kCorruption.
#pragma once

#include "base/result.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace fs {

class BaseState {
 public:
  virtual ~BaseState() = default;
  virtual base::Result<std::optional<std::string>> get(std::string_view key) const = 0;
  using Visit = std::function<void(std::string_view key, std::string_view value)>;
  // All keys that start with `prefix`, in order.
  virtual base::Status scan(std::string_view prefix, const Visit& visit) const = 0;
};

}  // namespace fs
