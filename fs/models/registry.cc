#include "fs/models/registry.h"

#include <algorithm>

namespace fs::models {

void activate(int mutant, std::initializer_list<Mutant> mutants) {
  bool production = mutant > 0 && static_cast<size_t>(mutant) <= mutants.size();
  active_mutant = production ? mutants.begin()[mutant - 1] : Mutant::kNone;
}

std::vector<Entry> all_models() {
  std::vector<Entry> all;
  add_lease_models(all);
  add_fencing_models(all);
  add_journal_models(all);
  add_log_models(all);
  add_namespace_models(all);
  add_cache_models(all);
  add_kernel_models(all);
  add_data_models(all);
  std::sort(all.begin(), all.end(),
            [](const Entry& a, const Entry& b) { return a.number < b.number; });
  return all;
}

}  // namespace fs::models
