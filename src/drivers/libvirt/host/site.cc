#include "drivers/libvirt/host/site.h"

#include <fmt/format.h>

#include <algorithm>

namespace nodepool::drivers::libvirt {

Site::Site(driver::cloud::AdapterEnvironment for_environment, std::shared_ptr<const LibvirtConfig> provider,
           const MakeHypervisor& make)
    : environment(std::move(for_environment)),
      config(std::move(provider)),
      tasks(environment.loop, logger),
      image_sizes(*config),
      arrivals(tasks, logger),
      key(config->key) {
  for (const HostConfig& host : config->hosts) {
    if (environment.observer != nullptr) environment.observer->HostAdded(config->name, host.name);
    HostListener& listener = *this;
    hosts.push_back(std::make_unique<Host>(tasks, environment.random, host, make, logger, listener));
  }
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

Task<> Site::Connected() {
  for (const auto& host : hosts) host->Start();
  for (const auto& host : hosts) co_await host->Tried();
}

Host& Site::At(const std::string& name) {
  auto found = std::ranges::find_if(hosts, [&](const auto& host) { return host->name() == name; });
  if (found != hosts.end()) return **found;
  throw Error(Verdict::kFail,
              fmt::format("provider {} no longer has the host {}; add it again to its section, or "
                          "remove what is left there by hand",
                          config->name, name));
}

std::vector<Host*> Site::Usable() {
  std::vector<Host*> usable;
  for (const auto& host : hosts) {
    if (!host->fault()) usable.push_back(host.get());
  }
  return usable;
}

Task<> Site::Stop() {
  co_await tasks.Stop();
  for (const auto& host : hosts) co_await host->Stop();
  if (environment.observer == nullptr || std::exchange(is_stopped_, true)) co_return;
  for (const auto& host : hosts) environment.observer->HostRemoved(config->name, host->name());
}

}  // namespace nodepool::drivers::libvirt
