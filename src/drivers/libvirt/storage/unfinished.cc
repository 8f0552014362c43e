#include "drivers/libvirt/storage/unfinished.h"

#include "async/attempt.h"
#include "drivers/libvirt/names/volume_name.h"

namespace nodepool::drivers::libvirt {

Task<bool> HasImage(Host& host, std::string image) {
  if (host.fault()) co_return false;
  Hypervisor& hypervisor = host.Use();
  Outcome<VolumeInfo> volume = co_await Attempt(hypervisor.Volume(image));
  if (!volume) co_return false;
  Outcome<VolumeInfo> mark = co_await Attempt(hypervisor.Volume(MarkOf(image)));
  co_return FailedWith(mark, Verdict::kNotFound);
}

Task<> MakeImage(Host& host, std::string image, std::function<Task<>()> make) {
  NewVolume mark{.name = MarkOf(image)};
  co_await host.Use().CreateVolume(std::move(mark));
  Task<> making = make();
  Outcome<> made = co_await Attempt(std::move(making));
  if (!made) {
    if (!host.fault()) co_await Attempt(RemoveImage(host, image));
    made.error().Rethrow();
  }
  co_await host.Use().DeleteVolume(MarkOf(image));
}

// The mark last: without it what is left would count as complete.
Task<> RemoveImage(Host& host, std::string image) {
  co_await host.Use().DeleteVolume(image);
  co_await host.Use().DeleteVolume(MarkOf(image));
}

}  // namespace nodepool::drivers::libvirt
