#pragma once

#include <functional>
#include <optional>

#include "async/event.h"
#include "base/scope_exit.h"

namespace nodepool {

// One value that is loaded once, on demand. Concurrent callers wait for one load; its failure is
// thrown to the caller that started it, and the next one tries again. (For many values by key:
// AsyncCache.) Value is copied; use a pointer for large ones.
template <class Value>
class AsyncValue {
 public:
  using Load = std::function<Task<Value>()>;

  explicit AsyncValue(Load load) : load_(std::move(load)) {}
  AsyncValue(const AsyncValue&) = delete;
  AsyncValue& operator=(const AsyncValue&) = delete;

  Task<Value> Get() {
    while (is_loading_) co_await loaded_.Wait();
    if (value_) co_return *value_;
    is_loading_ = true;
    ScopeExit done([this] {
      is_loading_ = false;
      loaded_.NotifyAll();
    });
    std::uint64_t generation = generation_;
    Value value = co_await load_();
    if (generation == generation_) value_ = value;
    co_return value;
  }

  // nullopt when it is not (yet) known.
  const std::optional<Value>& Find() const { return value_; }

  // The next Get() loads it again; the result of a load in progress is not stored.
  void Clear() {
    value_.reset();
    ++generation_;
  }

 private:
  Load load_;
  std::optional<Value> value_;
  bool is_loading_ = false;
  std::uint64_t generation_ = 0;
  WaitList loaded_;
};

}  // namespace nodepool
