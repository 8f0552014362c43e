#include "builder/worker.h"

#include <algorithm>

#include "async/deadline.h"

namespace nodepool::builder {
namespace {

// Bursts of changes are answered once.
constexpr Duration kSettle = std::chrono::milliseconds(10);
// A look around costs little, and clocks may be set.
constexpr Duration kLookAnyway = std::chrono::minutes(10);
// While the cache is not complete.
constexpr Duration kSyncPause = std::chrono::milliseconds(100);

}  // namespace

Worker::Worker(Context& context, std::string name)
    : context_(context),
      logger_(name),
      jobs_(context.loop, logger_),
      name_(std::move(name)),
      loop_(context.loop, logger_) {}

Worker::~Worker() = default;

void Worker::Start() { loop_.Spawn(name_, Run()); }

Task<> Worker::Stop() {
  co_await loop_.Stop();
  co_await jobs_.Stop();
}

Task<> Worker::Run() {
  while (true) {
    wake_.Reset();
    co_await EndsBy(context_.loop, Look(), "a change", wake_.Wait());
    co_await context_.loop.SleepFor(kSettle);
  }
}

// Returns when to look again.
SteadyTime Worker::Look() {
  SteadyTime now = context_.loop.SteadyNow();
  if (!context_.is_connected()) return now + kSyncPause;
  try {
    return std::min(Consider(), now + kLookAnyway);
  } catch (const std::exception& error) {
    logger_.Error("Looking around: {}", error.what());
  }
  return now + kLookAnyway;
}

}  // namespace nodepool::builder
