#include "async/progress.h"

#include "async/await_note.h"

namespace nodepool {

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

}  // namespace nodepool
