#include "fs/models/registry.h"

namespace fs::models {

std::vector<Entry> all_models() {
  std::vector<Entry> all;
  add_lease_models(all);
  add_journal_models(all);
  add_namespace_models(all);
  add_cache_models(all);
  add_data_models(all);
  return all;
}

}  // namespace fs::models
