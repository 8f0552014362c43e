#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "model/raw_json.h"

namespace nodepool {

// The longest reason that an operator may give for a pause or a hold, in bytes.
inline constexpr std::size_t kMaxOperatorReason = 1000;

// The switch of a provider that is paused (http-actions.md 1). The provider's name is the znode's. That the
// record exists pauses the provider, whatever is in it.
struct ProviderPause {
  std::optional<std::string> reason;  // for people
  bool is_drained = false;            // its unused nodes are deleted, too
  std::string paused_by;              // a token's name, or "alice@host"
  std::optional<WallTime> paused_time;
  Foreign foreign;
};

// The error says what is wrong with which key.
Expected<ProviderPause> ParseProviderPause(std::string_view json);
std::string ToJson(const ProviderPause& pause);

// "alice@host: the cloud is upgraded": who paused it, and why if that is known, shortened, without characters
// that a terminal would obey.
std::string WhoAndWhy(const ProviderPause& pause);

}  // namespace nodepool
