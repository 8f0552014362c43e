#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/subscription.h"
#include "zk/client.h"

namespace nodepool::store {

// The listeners of changes. They may be added and removed during a call; a registration may outlive
// the object.
template <class... Args>
class Listeners {
 public:
  using Listener = std::function<void(Args...)>;

  Subscription Add(Listener listener) const {
    std::uint64_t id = ++state_->last_id;
    state_->by_id.emplace(id, std::move(listener));
    std::weak_ptr<State> state = state_;
    return Subscription([state, id] {
      if (std::shared_ptr<State> alive = state.lock()) alive->by_id.erase(id);
    });
  }

  void Notify(Args... args) const {
    std::vector<std::uint64_t> ids;
    for (const auto& [id, listener] : state_->by_id) ids.push_back(id);
    for (std::uint64_t id : ids) {
      auto it = state_->by_id.find(id);
      if (it == state_->by_id.end()) continue;
      Listener listener = it->second;  // it may remove itself
      listener(args...);
    }
  }

 private:
  struct State {
    std::map<std::uint64_t, Listener> by_id;
    std::uint64_t last_id = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace nodepool::store
