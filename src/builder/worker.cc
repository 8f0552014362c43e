#include "builder/worker.h"

namespace nodepool::builder {
namespace {

// Bursts of changes are answered once; deciding costs little, and clocks may be set.
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

SteadyTime Worker::ConsiderIfConnected() {
  if (context_.is_connected()) return Consider();
  // The builder wakes its workers when ZooKeeper is connected again.
  if (!context_.images.synced() && !awaits_images_) {
    awaits_images_ = true;
    loop_tasks_.Spawn("wait for the image cache", WakeWhenSynced());
  }
  return SteadyTime::max();
}

Task<> Worker::WakeWhenSynced() {
  co_await context_.images.WaitSynced();
  awaits_images_ = false;
  Wake();
}

}  // namespace nodepool::builder
