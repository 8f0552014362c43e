#pragma once

#include <utility>

namespace nodepool {

// Calls a function when the scope ends, however it ends.
//
//   ScopeExit done([&] { is_running_ = false; });
template <class Function>
class ScopeExit {
 public:
  explicit ScopeExit(Function function) : function_(std::move(function)) {}
  ~ScopeExit() { function_(); }
  ScopeExit(const ScopeExit&) = delete;
  ScopeExit& operator=(const ScopeExit&) = delete;

 private:
  Function function_;
};

}  // namespace nodepool
