#include "db/functions/function.h"

#include <cstdlib>
#include <new>

namespace db {

FunctionContext::~FunctionContext() {
  reset_state();
  for (Auxiliary& one : auxiliary_) {
    if (one.destroy != nullptr) one.destroy(one.data);
  }
}

void* FunctionContext::user_data() const {
  return function_.user_data;
}

void* FunctionContext::aggregate_state(size_t bytes) {
  if (state_ != nullptr || bytes == 0) return state_;
  state_ = std::calloc(1, bytes);
  if (state_ == nullptr) throw std::bad_alloc();
  return state_;
}

void FunctionContext::reset_state() {
  if (state_ == nullptr) return;
  if (state_destroy_ != nullptr) state_destroy_(state_);
  std::free(state_);
  state_ = nullptr;
}

void* FunctionContext::auxiliary(int argument) const {
  for (const Auxiliary& one : auxiliary_) {
    if (one.argument == argument) return one.data;
  }
  return nullptr;
}

void FunctionContext::set_auxiliary(int argument, void* data, void (*destroy)(void*)) {
  for (Auxiliary& one : auxiliary_) {
    if (one.argument != argument) continue;
    if (one.destroy != nullptr) one.destroy(one.data);
    one = {argument, data, destroy};
    return;
  }
  auxiliary_.push_back({argument, data, destroy});
}

void FunctionRegistry::add(Function function) {
  ++version_;
  auto it = functions_.find(std::string_view(function.name));
  if (it == functions_.end()) it = functions_.emplace(function.name, 0).first;
  for (auto& one : it->second) {
    if (one->arg_count == function.arg_count) {
      *one = std::move(function);
      return;
    }
  }
  it->second.push_back(std::make_unique<Function>(std::move(function)));
}

void FunctionRegistry::remove(std::string_view name, int arg_count) {
  ++version_;
  auto it = functions_.find(name);
  if (it == functions_.end()) return;
  std::erase_if(it->second, [&](const auto& one) { return one->arg_count == arg_count; });
}

const Function* FunctionRegistry::find(std::string_view name, int arg_count, bool* known) const {
  const Function* any = nullptr;
  auto it = functions_.find(name);
  if (it != functions_.end() && !it->second.empty()) {
    if (known != nullptr) *known = true;
    for (const auto& one : it->second) {
      if (one->arg_count == arg_count) return one.get();
      bool enough = one->arg_count == -1 || arg_count >= -2 - one->arg_count;
      if (one->arg_count < 0 && enough) any = one.get();
    }
  }
  if (builtins_ != nullptr) {
    const Function* found = builtins_->find(name, arg_count, known);
    if (found != nullptr && (any == nullptr || found->arg_count == arg_count)) return found;
  }
  return any;
}

std::vector<const Function*> FunctionRegistry::all() const {
  std::vector<const Function*> out;
  if (builtins_ != nullptr) out = builtins_->all();
  for (const auto& [name, list] : functions_) {
    for (const auto& one : list) out.push_back(one.get());
  }
  return out;
}

}  // namespace db
