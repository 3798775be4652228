// An explicit-state explorer: breadth-first over everything a model can do, so that the
// counterexample it prints is a shortest one. A model is a class with
//
//   struct State;                            copyable
//   State initial() const;
//   void next(const State&, Emit emit) const;   emit(label, State&&) for every possible step
//   const char* broken(const State&) const;     the invariant that does not hold, or null
//   std::string key(const State&) const;        canonical bytes: equal states, equal keys
//   bool goal(const State&) const;              optional: must stay reachable from everywhere
//   (nothing
//                                               that happens may make it impossible)
// States are told apart by 64 bits of xxh3 of their key: with n states the chance of a missed
// one is about n * n / 2^65 (one million: 3 in 10^8). Single-threaded.
#pragma once

#include "base/bytes.h"
#include "base/hash.h"

#include <chrono>
#include <deque>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fs::models {

struct Report {
  u64 states = 0;
  u64 steps = 0;
  u64 depth = 0;
  bool complete = false;           // all reachable states seen
  std::string broken;              // invariant
  std::vector<std::string> trace;  // labels from the initial state
  double seconds = 0;
};

// For states that are plain bytes.
template <class State>
std::string bytes_of(const State& state) {
  static_assert(std::has_unique_object_representations_v<State>, "padding would differ");
  return std::string(reinterpret_cast<const char*>(&state), sizeof state);
}

template <class Model>
class Explorer {
 public:
  Explorer(const Model& model, u64 states_max) : model_(model), states_max_(states_max) {}

  Report run() {
    auto began = std::chrono::steady_clock::now();
    add(model_.initial(), 0, "");
    while (!open_.empty() && report_.broken.empty() && visited_.size() < states_max_) {
      auto [state, number] = std::move(open_.front());
      open_.pop_front();
      report_.depth = std::max(report_.depth, static_cast<u64>(depths_[number]));
      model_.next(state, [&](std::string label, typename Model::State&& after) {
        ++report_.steps;
        if (report_.broken.empty()) add(std::move(after), number, std::move(label));
      });
    }
    report_.complete = open_.empty() && report_.broken.empty();
    report_.states = visited_.size();
    if constexpr (kHasGoal) {
      if (report_.complete) check_goal();
    }
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    report_.seconds = took.count();
    return std::move(report_);
  }

 private:
  static constexpr bool kHasGoal = requires(const Model& m, const typename Model::State& s) {
    { m.goal(s) } -> std::convertible_to<bool>;
  };

  void add(typename Model::State&& state, u32 parent, std::string label) {
    u64 print = base::xxh3(base::as_bytes(model_.key(state)));
    u32 number = static_cast<u32>(parents_.size());
    auto [at, fresh] = visited_.emplace(print, number);
    if constexpr (kHasGoal) edges_.emplace_back(at->second, parent);
    if (!fresh) return;
    parents_.push_back(parent);
    labels_.push_back(label_number(label));
    depths_.push_back(number == 0 ? 0 : depths_[parent] + 1);
    if constexpr (kHasGoal) goals_.push_back(model_.goal(state));
    if (const char* broken = model_.broken(state)) {
      report_.broken = broken;
      trace(number);
      return;
    }
    open_.emplace_back(std::move(state), number);
  }

  u32 label_number(const std::string& label) {
    auto [at, fresh] = label_numbers_.emplace(label, static_cast<u32>(label_texts_.size()));
    if (fresh) label_texts_.push_back(label);
    return at->second;
  }

  void trace(u32 number) {
    for (; number != 0; number = parents_[number]) {
      report_.trace.insert(report_.trace.begin(), label_texts_[labels_[number]]);
    }
  }

  // Backwards from the goals; a state that is not met can never reach one.
  void check_goal() {
    std::vector<std::vector<u32>> into(parents_.size());
    for (auto [to, from] : edges_) into[to].push_back(from);
    std::vector<bool> can(goals_.begin(), goals_.end());
    std::vector<u32> work;
    for (u32 i = 0; i < can.size(); ++i) {
      if (can[i]) work.push_back(i);
    }
    while (!work.empty()) {
      u32 at = work.back();
      work.pop_back();
      for (u32 from : into[at]) {
        if (can[from]) continue;
        can[from] = true;
        work.push_back(from);
      }
    }
    for (u32 i = 0; i < can.size(); ++i) {
      if (can[i]) continue;
      report_.broken = "the goal stays reachable";
      report_.complete = false;
      trace(i);
      return;
    }
  }

  const Model& model_;
  u64 states_max_;
  Report report_;
  std::unordered_map<u64, u32> visited_;
  std::deque<std::pair<typename Model::State, u32>> open_;
  std::vector<u32> parents_;
  std::vector<u32> labels_;
  std::vector<u32> depths_;
  std::vector<bool> goals_;
  std::vector<std::pair<u32, u32>> edges_;
  std::unordered_map<std::string, u32> label_numbers_;
  std::vector<std::string> label_texts_;
};

}  // namespace fs::models
