#pragma once

#include <functional>
#include <map>
#include <utility>

#include "async/async_cache.h"
#include "async/attempt.h"
#include "async/loop.h"
#include "driver/cloud/outage.h"

namespace nodepool::driver::cloud::api {

// What a cloud is asked for by a key and changes rarely: the newest image of a family, or the one that
// matches filters. An answer is used for five minutes and then asked for again. While the cloud does not
// answer, the last one is used until it is an hour old. Tasks that want the same one wait for one call.
template <class Key, class T>
class KeptAnswers {
 public:
  using Read = std::function<Task<T>(Key)>;
  // Gets the key of an answer that is used although it could not be read again, and why.
  using UsedOld = std::function<void(const Key&, const Failure&)>;

  // The loop outlives it.
  KeptAnswers(
      Loop& loop, Read read, UsedOld used_old = [](const Key&, const Failure&) {})
      : loop_(loop),
        used_old_(std::move(used_old)),
        fresh_([this, read = std::move(read)](Key key) { return Ask(read, std::move(key)); }) {}

  // Errors: those of the reading.
  Task<T> Get(Key key) {
    const Answer* known = fresh_.Find(key);
    if (known != nullptr && loop_.SteadyNow() - known->asked >= kFresh) fresh_.Erase(key);
    Outcome<Answer> answer = co_await Attempt(fresh_.Get(key));
    if (answer) {
      last_.insert_or_assign(key, *answer);
      co_return std::move(answer->value);
    }
    auto last = last_.find(key);
    bool is_usable = last != last_.end() && loop_.SteadyNow() - last->second.asked < kUsable;
    if (!is_usable || !IsPassing(answer.error())) answer.error().Rethrow();
    used_old_(key, answer.error());
    co_return last->second.value;
  }

  // All are asked for again; called when the cloud refused what an answer said.
  void Doubt() { fresh_.Clear(); }

 private:
  static constexpr Duration kFresh = std::chrono::minutes(5);
  static constexpr Duration kUsable = std::chrono::hours(1);

  struct Answer {
    T value;
    SteadyTime asked;
  };

  Task<Answer> Ask(const Read& read, Key key) {
    SteadyTime asked = loop_.SteadyNow();
    T value = co_await read(std::move(key));
    co_return Answer{std::move(value), asked};
  }

  Loop& loop_;
  UsedOld used_old_;
  AsyncCache<Key, Answer> fresh_;
  std::map<Key, Answer> last_;  // good ones
};

}  // namespace nodepool::driver::cloud::api
