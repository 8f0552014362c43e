#pragma once

#include <deque>
#include <memory>
#include <utility>

#include "async/event.h"

namespace nodepool {

// Limits how many tasks are inside at a time; the rest wait in order of arrival. Outlives all tasks
// that are inside or wait.
class Gate {
 public:
  explicit Gate(int places) : free_(places) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // A place inside, released by its destruction.
  class Pass {
   public:
    Pass() = default;
    explicit Pass(Gate* gate) : gate_(gate) {}
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&& other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Pass() {
      if (gate_ != nullptr) gate_->Leave();
    }

   private:
    Gate* gate_ = nullptr;
  };

  Task<Pass> Enter();

 private:
  struct Waiter {
    Event is_let_in;
  };

  void Leave();
  void Withdraw(const std::shared_ptr<Waiter>& waiter);

  int free_;
  std::deque<std::shared_ptr<Waiter>> waiting_;
};

}  // namespace nodepool
