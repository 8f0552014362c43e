#include "cli/build_requests.h"

#include <fmt/format.h>

#include <ostream>

#include "async/event.h"
#include "store/image_cache.h"

namespace nodepool::cli {
namespace {

class Waiter {
 public:
  Waiter(Context& context, ImageName image)
      : context_(context), image_(std::move(image)), images_(context.loop, context.store.client()) {}

  Task<> Run() {
    zk::Registration watch = images_.OnChange([this](const ImageName& changed) {
      if (changed == image_) changed_.Set();
    });
    images_.Start();
    std::exception_ptr error;
    try {
      co_await images_.WaitSynced();
      co_await AwaitBuild();
    } catch (...) {
      error = std::current_exception();
    }
    co_await IgnoreCancellation();
    co_await images_.Stop();
    if (error) std::rethrow_exception(error);
  }

 private:
  // A build that is good takes the request away.
  Task<> AwaitBuild() {
    while (!images_.synced() || images_.build_requests().contains(image_)) {
      TellFailures();
      co_await changed_.Wait();
      changed_.Reset();
    }
  }

  void TellFailures() {
    for (const auto& [key, build] : images_.builds()) {
      if (key.image != image_ || build.record.state != ImageState::kFailed) continue;
      if (told_.insert(key.build).second) {
        context_.logger.Warning("Build {} failed; the builder tries again", key);
      }
    }
  }

  Context& context_;
  ImageName image_;
  store::ImageCache images_;
  Event changed_;
  std::set<BuildId> told_;
};

}  // namespace

Task<int> RequestBuild(Context& context, ImageName image, bool wait) {
  auto found = context.config->common.diskimages.find(image);
  if (found == context.config->common.diskimages.end()) {
    context.logger.Error("{} is not one of the configured diskimages", image);
    co_return 1;
  }
  if (found->second.is_paused) {
    context.logger.Error("Image {} is paused by the configuration", image);
    co_return 1;
  }
  co_await context.store.RequestBuild(image);
  if (!wait) co_return 0;
  Waiter waiter(context, image);
  co_await waiter.Run();
  co_return 0;
}

}  // namespace nodepool::cli
