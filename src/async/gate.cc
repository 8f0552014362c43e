#include "async/gate.h"

#include <algorithm>

namespace nodepool {

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
