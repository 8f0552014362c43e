#include "async/event.h"

#include <algorithm>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <list>

#include "async/loop.h"

namespace nodepool {

namespace asio = boost::asio;
using boost::system::error_code;

struct WaitList::State : std::enable_shared_from_this<WaitList::State> {
  struct Waiter {
    std::move_only_function<void(error_code)> complete;
    asio::cancellation_slot slot;
  };
  std::list<Waiter> waiters;

  template <class Handler>
  void Add(Handler handler) {
    auto slot = asio::get_associated_cancellation_slot(handler);
    auto executor = asio::get_associated_executor(handler);
    auto complete = [handler = std::move(handler), executor](error_code error) mutable {
      asio::post(executor, [handler = std::move(handler), error]() mutable { handler(error); });
    };
    auto position = waiters.insert(waiters.end(), Waiter{std::move(complete), slot});
    if (!slot.is_connected()) return;
    slot.assign([weak = weak_from_this(), position](asio::cancellation_type) {
      if (auto state = weak.lock()) {
        Waiter waiter = std::move(*position);
        state->waiters.erase(position);
        // A second cancellation must not find the position. This destroys the function that runs.
        waiter.slot.clear();
        waiter.complete(asio::error::operation_aborted);
      }
    });
  }

  void CompleteFirst(error_code error) {
    Waiter waiter = std::move(waiters.front());
    waiters.pop_front();
    // The position that the cancellation handler stores is invalid now.
    if (waiter.slot.is_connected()) waiter.slot.clear();
    waiter.complete(error);
  }
};

WaitList::WaitList() : state_(std::make_shared<State>()) {}

WaitList::~WaitList() {
  while (!state_->waiters.empty()) state_->CompleteFirst(asio::error::operation_aborted);
}

Task<> WaitList::Wait() {
  auto initiate = [state = state_](auto handler) { state->Add(std::move(handler)); };
  return asio::async_initiate<const asio::use_awaitable_t<>, void(error_code)>(std::move(initiate),
                                                                               asio::use_awaitable);
}

void WaitList::NotifyOne() {
  if (!state_->waiters.empty()) state_->CompleteFirst({});
}

void WaitList::NotifyAll() {
  for (std::size_t waiting = state_->waiters.size(); waiting > 0; --waiting) state_->CompleteFirst({});
}

Task<> Event::Wait() {
  if (is_set_) co_return;
  auto executor = co_await asio::this_coro::executor;
  AwaitNote note(executor, name_);
  while (!is_set_) co_await waiters_.Wait();
}

bool WaitList::empty() const { return state_->waiters.empty(); }

Task<> Progress::WaitFor(std::uint64_t number) {
  if (number <= reached_) co_return;
  auto executor = co_await boost::asio::this_coro::executor;
  AwaitNote note(executor, name_);
  while (reached_ < number) co_await waiting_[number].Wait();
}

void Progress::Reach(std::uint64_t number) {
  if (number <= reached_) return;
  reached_ = number;
  while (!waiting_.empty() && waiting_.begin()->first <= number) {
    waiting_.begin()->second.NotifyAll();
    waiting_.erase(waiting_.begin());
  }
}

Task<Gate::Pass> Gate::Enter() {
  if (free_ > 0) {
    --free_;
    co_return Pass(this);
  }
  auto waiter = std::make_shared<Waiter>();
  waiting_.push_back(waiter);
  try {
    co_await waiter->is_let_in.Wait();
  } catch (...) {
    Withdraw(waiter);
    throw;
  }
  co_return Pass(this);
}

void Gate::Leave() {
  if (waiting_.empty()) {
    ++free_;
    return;
  }
  waiting_.front()->is_let_in.Set();
  waiting_.pop_front();
}

// A task that is cancelled at the moment when it is let in passes its place on.
void Gate::Withdraw(const std::shared_ptr<Waiter>& waiter) {
  if (waiter->is_let_in.is_set()) return Leave();
  waiting_.erase(std::ranges::find(waiting_, waiter));
}

}  // namespace nodepool
