#include "drivers/libvirt/storage/arrivals.h"

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

Task<> Arrivals::Ensure(Host& host, std::string image, Make make) {
  bool is_there = co_await HasImage(host, image);
  if (is_there) co_return;
  std::shared_ptr<Arrival>& entry = arrivals_[{host.name(), image}];
  if (!entry) {
    entry = std::make_shared<Arrival>();
    tasks_.Spawn("arrival of image " + image, Run(host, image, std::move(make), entry));
  }
  std::shared_ptr<Arrival> arrival = entry;
  co_await arrival->has_ended.Wait();
  if (!arrival->outcome) arrival->outcome.error().Rethrow();
}

Task<> Arrivals::Run(Host& host, std::string image, Make make, std::shared_ptr<Arrival> arrival) {
  arrival->outcome = std::unexpected(Failure(Error(Verdict::kCancelled, "the provider was stopped")));
  ScopeExit end([&] {
    arrivals_.erase({host.name(), image});
    arrival->has_ended.Set();
  });
  Task<> making = MakeOrAwait(host, image, std::move(make));
  Outcome<> outcome = co_await Attempt(std::move(making));
  arrival->outcome = std::move(outcome);
}

Task<> Arrivals::MakeOrAwait(Host& host, std::string image, Make make) {
  while (true) {
    Task<> making = MakeImage(host, image, make);
    Outcome<> made = co_await Attempt(std::move(making));
    if (made) co_return;
    if (!FailedWith(made, Verdict::kConflict)) made.error().Rethrow();
    co_await AwaitOther(host, image);
    bool is_there = co_await HasImage(host, image);
    if (is_there) co_return;
  }
}

Task<> Arrivals::AwaitOther(Host& host, std::string image) {
  std::uint64_t before = co_await WrittenOf(host, image);
  co_await tasks_.loop().SleepFor(kStandstill);
  std::uint64_t now = co_await WrittenOf(host, image);
  bool is_there = co_await HasImage(host, image);
  if (is_there || now != before) co_return;
  logger_.Warning("Image {} on host {} was left unfinished and is removed", image, host.name());
  co_await RemoveImage(host, image);
}

}  // namespace nodepool::drivers::libvirt
