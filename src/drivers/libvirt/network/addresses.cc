#include "drivers/libvirt/network/addresses.h"

namespace nodepool::drivers::libvirt {

namespace {

constexpr Duration kPause = std::chrono::milliseconds(250);

}  // namespace

Addresses::Addresses(TaskGroup& tasks, Random& random, log::Logger logger, Hypervisor& hypervisor)
    : tasks_(tasks), random_(random), logger_(std::move(logger)), hypervisor_(hypervisor) {}

Task<std::string> Addresses::Wait(std::string network, std::string mac, std::function<void()> check) {
  auto has_address = [&mac, &check](const std::vector<Lease>& leases) {
    check();
    return !AddressIn(leases, mac).empty();
  };
  auto listing = co_await Of(network).Until(has_address);
  co_return AddressIn(*listing.items, mac);
}

Addresses::Leases& Addresses::Of(const std::string& network) {
  std::unique_ptr<Leases>& leases = networks_[network];
  if (!leases) {
    leases = std::make_unique<Leases>(
        tasks_, random_, logger_, "leases of network " + network,
        [this, network] { return hypervisor_.Leases(network); }, kPause);
  }
  return *leases;
}

std::string AddressIn(const std::vector<Lease>& leases, const std::string& mac) {
  std::string ipv6;
  for (const Lease& lease : leases) {
    if (lease.mac != mac) continue;
    if (!lease.is_ipv6) return lease.address;
    ipv6 = lease.address;
  }
  return ipv6;
}

}  // namespace nodepool::drivers::libvirt
