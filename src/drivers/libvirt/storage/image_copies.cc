#include "drivers/libvirt/storage/image_copies.h"

#include <fmt/format.h>

#include "base/scope_exit.h"
#include "drivers/libvirt/storage/unfinished.h"

namespace nodepool::drivers::libvirt {

namespace {

// A transfer that writes nothing for so long has been given up by the process that made it.
constexpr Duration kStandstill = std::chrono::minutes(1);

Task<std::uint64_t> WrittenOf(Host& host, std::string image) {
  Outcome<VolumeInfo> volume = co_await Attempt(host.Use().Volume(std::move(image)));
  co_return volume ? volume->allocation : 0;
}

}  // namespace

ImageCopies::ImageCopies(TaskGroup& tasks, const std::vector<std::unique_ptr<Host>>& hosts, Duration limit,
                         log::Logger logger)
    : tasks_(tasks), hosts_(hosts), limit_(limit), logger_(std::move(logger)) {}

Task<> ImageCopies::Ensure(Host& target, std::string image) {
  bool is_there = co_await HasImage(target, image);
  if (is_there) co_return;
  std::shared_ptr<Copy>& entry = copies_[{target.name(), image}];
  if (!entry) {
    entry = std::make_shared<Copy>();
    tasks_.Spawn("copy of image " + image, Run(target, image, entry));
  }
  std::shared_ptr<Copy> copy = entry;
  co_await copy->has_ended.Wait();
  if (!copy->outcome) copy->outcome.error().Rethrow();
}

Task<> ImageCopies::Run(Host& target, std::string image, std::shared_ptr<Copy> copy) {
  copy->outcome = std::unexpected(Failure(Error(Verdict::kCancelled, "the provider was stopped")));
  ScopeExit end([&] {
    copies_.erase({target.name(), image});
    copy->has_ended.Set();
  });
  Outcome<> outcome = co_await Attempt(CopyTo(target, image));
  copy->outcome = std::move(outcome);
}

Task<> ImageCopies::CopyTo(Host& target, std::string image) {
  while (true) {
    Outcome<> made = co_await Attempt(CopyOnce(target, image));
    if (made) co_return;
    if (!FailedWith(made, Verdict::kConflict)) made.error().Rethrow();
    co_await AwaitOther(target, image);
    bool is_there = co_await HasImage(target, image);
    if (is_there) co_return;
  }
}

Task<> ImageCopies::CopyOnce(Host& target, std::string image) {
  Host* source = co_await FindSource(image);
  VolumeInfo original = co_await source->Use().Volume(image);
  logger_.Info("Image {} is copied from host {} to host {}", image, source->name(), target.name());
  auto fill = [this, source, &target, &image] {
    return target.Use().CopyVolume(source->config(), image, limit_);
  };
  co_await MakeImage(target, image, original.length, fill);
}

Task<> ImageCopies::AwaitOther(Host& target, std::string image) {
  std::uint64_t before = co_await WrittenOf(target, image);
  co_await tasks_.loop().SleepFor(kStandstill);
  std::uint64_t now = co_await WrittenOf(target, image);
  bool is_there = co_await HasImage(target, image);
  if (is_there || now != before) co_return;
  logger_.Warning("Image {} on host {} was left unfinished and is removed", image, target.name());
  co_await RemoveImage(target, image);
}

Task<Host*> ImageCopies::FindSource(std::string image) {
  for (const auto& host : hosts_) {
    bool is_there = co_await HasImage(*host, image);
    if (is_there) co_return host.get();
  }
  throw Error(Verdict::kNotFound, fmt::format("no host that can be used has image {}", image));
}

}  // namespace nodepool::drivers::libvirt
