#pragma once

#include <functional>
#include <utility>

namespace nodepool {

// Keeps a callback subscribed while it lives. Destroying it ends the subscription at once: the
// callback is not called afterwards. It may outlive the object it subscribes to.
class [[nodiscard]] Subscription {
 public:
  Subscription() = default;
  explicit Subscription(std::move_only_function<void()> undo) : undo_(std::move(undo)) {}
  Subscription(Subscription&& other) noexcept : undo_(std::exchange(other.undo_, nullptr)) {}
  Subscription& operator=(Subscription&& other) noexcept {
    if (this != &other) {
      Reset();
      undo_ = std::exchange(other.undo_, nullptr);
    }
    return *this;
  }
  ~Subscription() { Reset(); }
  void Reset() {
    if (auto undo = std::exchange(undo_, nullptr)) undo();
  }

 private:
  std::move_only_function<void()> undo_;
};

}  // namespace nodepool
