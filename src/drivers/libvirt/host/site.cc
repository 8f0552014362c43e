#include "drivers/libvirt/host/site.h"

#include <utility>

namespace nodepool::drivers::libvirt {

Site::Site(driver::cloud::AdapterEnvironment for_environment, std::shared_ptr<const LibvirtConfig> provider,
           const MakeHypervisor& make)
    : environment(std::move(for_environment)),
      config(std::move(provider)),
      tasks(environment.loop, logger),
      hosts(tasks, environment.random, *config, make, logger, *this),
      image_sizes(*config),
      arrivals(tasks, logger),
      key(config->key) {
  if (environment.observer == nullptr) return;
  for (const HostConfig& host : config->hosts) environment.observer->HostAdded(config->name, host.name);
}

void Site::HostChanged(Host&) {
  fetches.Begin();
  full_labels.RoomHasGrown();
  environment.framework.CapacityChanged();
}

void Site::ForeignChanged(Host&) {
  full_labels.RoomHasGrown();
  environment.framework.QuotaChanged();
}

void Site::MachineLost(Host&) { environment.framework.MachinesTaken(); }

void Site::CallEnded(Host& host, const char* call, Duration took, bool is_ok) {
  if (environment.observer == nullptr) return;
  environment.observer->HostCallEnded({config->name, host.name(), call, is_ok, took});
}

void Site::Forget(const MachineId& id) {
  ledger.Remove(id);
  full_labels.RoomHasGrown();
}

void Site::HostMeasured(Host& host) {
  if (environment.observer == nullptr) return;
  driver::HostUse use{config->name, host.name(), !host.fault()};
  for (const DomainInfo& domain : host.listed()) {
    use.instances += 1;
    use.cores += domain.vcpus;
    use.memory += domain.memory;
  }
  environment.observer->HostMeasured(use);
}

Task<> Site::Stop() {
  co_await tasks.Stop();
  co_await hosts.Stop();
  if (environment.observer == nullptr || std::exchange(is_stopped_, true)) co_return;
  for (const auto& host : hosts) environment.observer->HostRemoved(config->name, host->name());
}

}  // namespace nodepool::drivers::libvirt
