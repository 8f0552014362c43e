#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <optional>

#include "async/task.h"

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

}  // namespace nodepool
