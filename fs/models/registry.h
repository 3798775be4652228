// The list of models. Each has a number as in the table of fs/ARCHITECTURE.md, invariants in words,
// and mutants: one-line weakenings of what it models, each of which it must find. Mutant 0 is none.
#pragma once

#include "fs/models/explorer.h"
#include "fs/state/mutant.h"

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace fs::models {

struct Entry {
  int number = 0;
  std::string name;
  std::string code;  // what runs: the production class, or "abstract"
  std::vector<std::string> invariants;
  std::vector<std::string> mutants;  // mutant i is mutants[i - 1]
  std::function<Report(int mutant, u64 states_max)> run;
  // Models over production classes have large states; they are bounded lower.
  Entry bounded(u64 most) && {
    run = [inner = run, most](int mutant, u64 states_max) {
      return inner(mutant, states_max < most ? states_max : most);
    };
    return std::move(*this);
  }
};

// For a model class M(int mutant).
template <class M>
Entry entry(int number, std::string name, std::string code, std::vector<std::string> invariants,
            std::vector<std::string> mutants) {
  return {number,
          std::move(name),
          std::move(code),
          std::move(invariants),
          std::move(mutants),
          [](int mutant, u64 states_max) {
            M model(mutant);
            return Explorer<M>(model, states_max).run();
          }};
}

// Arms the production code's mutation point that belongs to mutant 1, 2, ... of a model, or none.
void activate(int mutant, std::initializer_list<Mutant> mutants);

void add_lease_models(std::vector<Entry>& all);
void add_fencing_models(std::vector<Entry>& all);
void add_journal_models(std::vector<Entry>& all);
void add_log_models(std::vector<Entry>& all);
void add_namespace_models(std::vector<Entry>& all);
void add_cache_models(std::vector<Entry>& all);
void add_kernel_models(std::vector<Entry>& all);
void add_data_models(std::vector<Entry>& all);
// By number.
std::vector<Entry> all_models();

}  // namespace fs::models
