#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "async/cleanup.h"

namespace nodepool::store {

// A task that ends at once with the default of its type.
template <class T = void>
Task<T> Default() {
  if constexpr (std::is_void_v<T>) {
    co_return;
  } else {
    co_return T();
  }
}

// Acquires a lock, or a locked record, by `acquire`, awaits the task of `use(held)` and then that
// of `release(held)`, whether the use succeeded, failed or was cancelled, also when the task is
// cancelled at the moment when it has acquired. Where `acquire` returns nullopt, neither is called
// and the result is the type's default (false, nullopt).
template <class Held, class Use, class Release>
auto Holding(Task<std::optional<Held>> acquire, Use use, Release release) {
  using Result = typename std::invoke_result_t<Use&, Held&>::value_type;
  auto use_if_held = [use = std::move(use)](std::optional<Held>& held) mutable {
    return held ? use(*held) : Default<Result>();
  };
  auto release_if_held = [release = std::move(release)](std::optional<Held>& held) mutable {
    return held ? release(*held) : Default<>();
  };
  return Bracket(std::move(acquire), std::move(use_if_held), std::move(release_if_held));
}

}  // namespace nodepool::store
