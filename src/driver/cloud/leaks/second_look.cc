#include "driver/cloud/leaks/second_look.h"

#include "base/scope_exit.h"

namespace nodepool::driver::cloud {

namespace {

constexpr Duration kPause = std::chrono::seconds(1);  // between the beginnings of two looks

}  // namespace

Task<> SecondLook::Take() {
  std::uint64_t wanted = begun_ + 1;
  while (ended_ < wanted) {
    if (is_looking_) {
      co_await end_.Wait();
    } else {
      co_await LookOnce();
    }
  }
  if (failure_) failure_->Rethrow();
}

// One that is cancelled does not count: the next caller looks for itself.
Task<> SecondLook::LookOnce() {
  is_looking_ = true;
  ScopeExit ended([this] {
    is_looking_ = false;
    end_.NotifyAll();
  });
  co_await loop_.SleepUntil(next_begin_);
  next_begin_ = loop_.SteadyNow() + kPause;
  std::uint64_t number = ++begun_;
  Outcome<> looked = co_await Attempt(look_());
  ended_ = number;
  failure_.reset();
  if (!looked) failure_ = looked.error();
}

}  // namespace nodepool::driver::cloud
