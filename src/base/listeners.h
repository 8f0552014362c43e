#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/subscription.h"

namespace nodepool {

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
