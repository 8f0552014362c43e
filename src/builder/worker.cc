#include "builder/worker.h"

namespace nodepool::builder {
namespace {

// A burst of changes leads to one decision; decisions are cheap, and are repeated because the system's clock
// may be set.
constexpr WakeLoop::Pace kPace = {.settle = std::chrono::milliseconds(10),
                                  .longest = std::chrono::minutes(10)};

}  // namespace

Worker::Worker(Context& context, std::string name)
    : context_(context),
      logger_(name),
      jobs_(context.loop, logger_),
      name_(std::move(name)),
      loop_(
          context.loop, "images, files or their configuration", kPace,
          [this] { return ConsiderIfConnected(); }, logger_),
      loop_tasks_(context.loop, logger_) {}

Worker::~Worker() = default;

void Worker::Start() { loop_tasks_.Spawn(name_, loop_.Run()); }

Task<> Worker::Stop() {
  co_await loop_tasks_.Stop();
  co_await jobs_.Stop();
}

// The builder wakes its workers when ZooKeeper is connected again.
SteadyTime Worker::ConsiderIfConnected() {
  bool is_synced = context_.caches.SyncedOrWake(loop_);
  return is_synced && context_.is_connected() ? Consider() : SteadyTime::max();
}

}  // namespace nodepool::builder
