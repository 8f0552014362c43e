#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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

// The listeners of changes. They may be added and removed during a call; a registration may outlive
// the object.
template <class... Args>
class Listeners {
 public:
  using Listener = std::function<void(Args...)>;

  Subscription Add(Listener listener) const {
    std::uint64_t id = ++state_->last_id;
    state_->by_id.emplace(id, std::make_shared<const Listener>(std::move(listener)));
    std::weak_ptr<State> state = state_;
    return Subscription([state, id] {
      if (std::shared_ptr<State> alive = state.lock()) alive->by_id.erase(id);
    });
  }

  // Calls those that exist now, in the order in which they were added.
  void Notify(Args... args) const {
    std::shared_ptr<State> state = state_;
    std::uint64_t newest = state->last_id;
    auto it = state->by_id.begin();
    while (it != state->by_id.end() && it->first <= newest) {
      std::uint64_t id = it->first;
      std::shared_ptr<const Listener> listener = it->second;  // it may remove itself
      (*listener)(args...);
      it = state->by_id.upper_bound(id);
    }
  }

 private:
  struct State {
    std::map<std::uint64_t, std::shared_ptr<const Listener>> by_id;
    std::uint64_t last_id = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace nodepool
