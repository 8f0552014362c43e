#include "drivers/libvirt/host/call_threads.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace nodepool::drivers::libvirt {

// Shared with its threads, which outlive their owner while they are in a call.
struct CallThreads::Threads {
  explicit Threads(std::size_t wanted) : unstarted(wanted) {}

  void Serve() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return is_stopping || !queue.empty(); });
      if (queue.empty()) return;
      std::move_only_function<void()> work = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::move_only_function<void()>> queue;
  std::size_t unstarted;
  bool is_stopping = false;
};

CallThreads::CallThreads(Loop& loop, std::size_t threads)
    : loop_(loop), port_(std::make_shared<LoopPort>(loop)), threads_(std::make_shared<Threads>(threads)) {}

CallThreads::~CallThreads() {
  port_->Close();
  std::lock_guard lock(threads_->mutex);
  threads_->is_stopping = true;
  threads_->changed.notify_all();
}

void CallThreads::Post(std::move_only_function<void()> work) {
  std::lock_guard lock(threads_->mutex);
  threads_->queue.push_back(std::move(work));
  threads_->changed.notify_one();
  if (threads_->unstarted == 0) return;
  --threads_->unstarted;
  std::thread([threads = threads_] { threads->Serve(); }).detach();
}

std::optional<std::string> CallThreads::Overdue() const {
  auto is_overdue = [now = loop_.SteadyNow()](const Call& call) { return call.deadline < now; };
  auto overdue = std::ranges::find_if(calls_, is_overdue);
  return overdue == calls_.end() ? std::nullopt : std::optional(overdue->what);
}

Task<> CallThreads::Drain(SteadyTime deadline) {
  while (!calls_.empty()) {
    bool has_changed = co_await EndsBy(loop_, deadline, "calls of a host", ended_.Wait());
    if (!has_changed) co_return;
  }
}

void CallThreads::Ended(std::list<Call>::iterator call) {
  calls_.erase(call);
  ended_.NotifyAll();
}

}  // namespace nodepool::drivers::libvirt
