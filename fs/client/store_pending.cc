// Stands in until the store is here: says so instead of failing to link.
#include "fs/store/store.h"

namespace fs {

base::Status Store::format(const std::string&, const StoreOptions&) {
  return base::Error(base::ErrorCode::kUnsupported,
                     "this build has no store; use agentfs mount --memory MNT");
}

base::Result<std::unique_ptr<Store>> Store::open(const std::string&, StoreOptions) {
  return base::Error(base::ErrorCode::kUnsupported,
                     "this build has no store; use agentfs mount --memory MNT");
}

}  // namespace fs
