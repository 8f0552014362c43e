#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "async/async_value.h"
#include "async/loop.h"
#include "driver/cloud/api/api_error.h"

namespace nodepool::driver::cloud::api {

// A credential that lasts for a while: a token, temporary keys. Fetched at first use, again some time before
// it expires, and when a service did not accept it; callers wait meanwhile for the same fetch. One that
// cannot be replaced is used until it expires. When the cloud refuses a credential (ApiError), it is not
// asked again for 15 s, however many callers there are, so that the account does not get locked. One whose
// time is over when it comes is used all the same, since the issuer or a clock may be at fault, and replaced
// some minutes later, whether services accept it or not.
//
// Credential has a member `WallTime expires`; WallTime::max(): never.
template <class Credential>
class CredentialSource {
 public:
  using Pointer = std::shared_ptr<const Credential>;
  using Fetch = std::function<Task<Credential>()>;

  // The loop outlives the source. A credential is replaced this long before it expires, but not in the first
  // half of its life.
  CredentialSource(Loop& loop, Fetch fetch, Duration renew_before = std::chrono::seconds(120))
      : loop_(loop),
        fetch_(std::move(fetch)),
        renew_before_(renew_before),
        known_([this] { return Load(); }) {}

  // Errors: those of the fetch, or the last refusal.
  Task<Pointer> Get() {
    if (known_.Find() && loop_.Now() >= renew_at_) {
      replaced_ = *known_.Find();
      known_.Clear();
    }
    return known_.Get();
  }

  // The credential is no longer valid: the next Get() fetches another one.
  void Discard(const Pointer& credential) {
    bool has_come_too_late = loop_.Now() >= credential->expires && loop_.Now() < renew_at_;
    if (has_come_too_late && known_.Find() == credential) return;
    if (replaced_ == credential) replaced_ = nullptr;
    if (known_.Find() == credential) known_.Clear();
  }

 private:
  static constexpr Duration kRefusalLasts = std::chrono::seconds(15);
  static constexpr Duration kExpiredLasts = std::chrono::minutes(5);

  Task<Pointer> Load() {
    if (refusal_ && loop_.SteadyNow() < refused_until_) throw Error(*refusal_);
    Outcome<Credential> fetched = co_await Attempt(fetch_());
    if (!fetched && replaced_ != nullptr && loop_.Now() < replaced_->expires) {
      renew_at_ = loop_.Now() + kRefusalLasts;
      co_return std::exchange(replaced_, nullptr);
    }
    bool is_refused = StatusOf(fetched) != 0;
    if (is_refused) {
      refusal_.emplace(fetched.error().verdict(), fetched.error().message());
      refused_until_ = loop_.SteadyNow() + kRefusalLasts;
    }
    if (!fetched) fetched.error().Rethrow();
    replaced_ = nullptr;
    WallTime now = loop_.Now();
    renew_at_ = std::max(fetched->expires - renew_before_, now + (fetched->expires - now) / 2);
    if (fetched->expires <= now) renew_at_ = now + kExpiredLasts;
    co_return std::make_shared<const Credential>(std::move(*fetched));
  }

  Loop& loop_;
  Fetch fetch_;
  Duration renew_before_;
  AsyncValue<Pointer> known_;
  Pointer replaced_;  // while its successor is fetched
  WallTime renew_at_{};
  std::optional<Error> refusal_;
  SteadyTime refused_until_{};
};

}  // namespace nodepool::driver::cloud::api
