#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "async/task.h"
#include "base/scope_exit.h"

namespace nodepool {

// The tasks waiting for something. A wait ends by a notification or, with kCancelled, when the
// waiting task is cancelled or the list is destroyed. Notified tasks run later on the loop, never
// inside the notifying call.
class WaitList {
 public:
  WaitList();
  ~WaitList();
  WaitList(const WaitList&) = delete;
  WaitList& operator=(const WaitList&) = delete;

  Task<> Wait();
  void NotifyOne();  // the one that waits longest
  void NotifyAll();
  bool empty() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Something that happened; it stays set until Reset().
class Event {
 public:
  // `name`, a literal, says in a task dump what the waiting tasks wait for.
  explicit Event(const char* name = "an event") : name_(name) {}
  void Set() {
    is_set_ = true;
    waiters_.NotifyAll();
  }
  void Reset() { is_set_ = false; }
  bool is_set() const { return is_set_; }
  Task<> Wait();

 private:
  const char* name_;
  bool is_set_ = false;
  WaitList waiters_;
};

// A result that is delivered once. The sender and the receiver share the object; a second delivery
// is ignored.
template <class T>
class OneShot {
 public:
  void Set(T value) {
    if (is_done()) return;
    value_.emplace(std::move(value));
    done_.Set();
  }
  void Fail(std::exception_ptr error) {
    if (is_done()) return;
    error_ = std::move(error);
    done_.Set();
  }
  bool is_done() const { return done_.is_set(); }

  // Moves the result out; to be called once.
  Task<T> Take() {
    co_await done_.Wait();
    if (error_) std::rethrow_exception(error_);
    co_return std::move(*value_);
  }

 private:
  Event done_;
  std::optional<T> value_;
  std::exception_ptr error_;
};

// A first-in, first-out queue between tasks of the loop.
template <class T>
class Queue {
 public:
  void Push(T item) {
    items_.push_back(std::move(item));
    waiters_.NotifyOne();
  }
  Task<T> Pop() {
    while (items_.empty()) co_await waiters_.Wait();
    T item = std::move(items_.front());
    items_.pop_front();
    co_return item;
  }
  std::size_t size() const { return items_.size(); }

 private:
  std::deque<T> items_;
  WaitList waiters_;
};

// A number that grows, and the tasks that wait until it has reached theirs. Each of them is woken
// once, when it has: a step costs only as much as the tasks it wakes, however many wait for later
// ones.
class Progress {
 public:
  // `name`, a literal, says in a task dump what the waiting tasks wait for.
  explicit Progress(const char* name) : name_(name) {}

  // Ends when `number` is reached, at once when it has been.
  Task<> WaitFor(std::uint64_t number);
  // All numbers up to `number` are reached. It never decreases.
  void Reach(std::uint64_t number);

 private:
  const char* name_;
  std::uint64_t reached_ = 0;
  std::map<std::uint64_t, WaitList> waiting_;  // by the number that they wait for
};

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
