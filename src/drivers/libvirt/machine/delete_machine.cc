#include "drivers/libvirt/machine/delete_machine.h"

#include "drivers/libvirt/names/volume_name.h"

namespace nodepool::drivers::libvirt {

Task<std::vector<std::string>> FindVolumes(Site& site, MachineId id) {
  std::vector<VolumeInfo> volumes = co_await site.At(id.host).Use().Volumes();
  std::vector<std::string> names;
  for (const VolumeInfo& volume : volumes) {
    std::optional<MachineVolume> ours = ParseMachineVolume(volume.name);
    if (ours && ours->provider == site.config->name.str() && ours->machine == id.digits()) {
      names.push_back(volume.name);
    }
  }
  co_return names;
}

Task<> RemoveMachine(Site& site, MachineId id) {
  Host& host = site.At(id.host);
  co_await host.work().Settled(id.uuid);
  // The disks go only when the machine is gone.
  co_await host.Use().DestroyDomain(id.uuid);
  std::vector<std::string> names = co_await FindVolumes(site, id);
  for (const std::string& name : names) co_await host.Use().DeleteVolume(name);
  host.Unwatch(id.uuid);
}

Task<> DeleteMachine(Site& site, MachineId id) {
  co_await site.Connected();
  co_await RemoveMachine(site, id);
  site.Forget(id);
  site.environment.capacity_changed();
}

}  // namespace nodepool::drivers::libvirt
