#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "async/async_value.h"
#include "async/loop.h"
#include "driver/cloud/api/api_error.h"

namespace nodepool::driver::cloud::api {

// A credential that lasts for a while: a token, temporary keys. Fetched at first use, again 120 s before it
// expires, and when a service did not accept it; callers wait meanwhile for the same fetch. When the cloud
// refuses a credential (ApiError), it is not asked again for 15 s, however many callers there are, so that
// the account does not get locked.
//
// Credential has a member `WallTime expires`; WallTime::max(): never.
template <class Credential>
class CredentialSource {
 public:
  using Pointer = std::shared_ptr<const Credential>;
  using Fetch = std::function<Task<Credential>()>;

  // The loop outlives the source.
  CredentialSource(Loop& loop, Fetch fetch)
      : loop_(loop), fetch_(std::move(fetch)), known_([this] { return Load(); }) {}

  // Errors: those of the fetch, or the last refusal.
  Task<Pointer> Get() {
    if (known_.Find() && HasExpired(**known_.Find())) known_.Clear();
    return known_.Get();
  }

  // The credential is no longer valid: the next Get() fetches another one.
  void Discard(const Pointer& credential) {
    if (known_.Find() == credential) known_.Clear();
  }

 private:
  static constexpr Duration kRenewBefore = std::chrono::seconds(120);
  static constexpr Duration kRefusalLasts = std::chrono::seconds(15);

  bool HasExpired(const Credential& credential) const {
    return loop_.Now() + kRenewBefore >= credential.expires;
  }

  Task<Pointer> Load() {
    if (refusal_ && loop_.SteadyNow() < refused_until_) throw Error(*refusal_);
    Outcome<Credential> fetched = co_await Attempt(fetch_());
    bool is_refused = StatusOf(fetched) != 0;
    if (is_refused) {
      refusal_.emplace(fetched.error().verdict(), fetched.error().message());
      refused_until_ = loop_.SteadyNow() + kRefusalLasts;
    }
    if (!fetched) fetched.error().Rethrow();
    co_return std::make_shared<const Credential>(std::move(*fetched));
  }

  Loop& loop_;
  Fetch fetch_;
  AsyncValue<Pointer> known_;
  std::optional<Error> refusal_;
  SteadyTime refused_until_{};
};

}  // namespace nodepool::driver::cloud::api
