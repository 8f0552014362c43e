#include "drivers/libvirt/addresses.h"

#include <fmt/format.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <vector>

#include "async/attempt.h"
#include "base/scope_exit.h"
#include "driver/cloud/adapter.h"
#include "drivers/libvirt/host/host.h"

namespace nodepool::drivers::libvirt {

namespace {

constexpr Duration kShortPause = std::chrono::milliseconds(250);
constexpr Duration kLongPause = std::chrono::seconds(1);
// Most machines have their address by then.
constexpr Duration kHaste = std::chrono::seconds(30);

bool IsGlobal(const std::string& text) {
  boost::system::error_code fault;
  auto address = boost::asio::ip::make_address(text, fault);
  if (fault || address.is_loopback() || address.is_unspecified()) return false;
  if (address.is_v6()) return !address.to_v6().is_link_local();
  return address.to_v4().to_uint() >> 16 != 0xa9fe;  // 169.254.0.0/16
}

}  // namespace

Addresses::Addresses(TaskGroup& tasks, Random& random, log::Logger logger, Host& host)
    : tasks_(tasks), random_(random), logger_(std::move(logger)), host_(host) {}

Task<std::string> Addresses::Wait(AddressSearch search, std::function<void()> check) {
  Searched& searched = Of(search.network);
  searched.searches[search.uuid] = search;
  searched.last_begun = tasks_.loop().SteadyNow();
  ScopeExit leave([&] { searched.searches.erase(search.uuid); });
  auto has_address = [&search, &check](const std::vector<KnownAddress>& addresses) {
    check();
    return !AddressIn(addresses, search.mac).empty();
  };
  auto listing = co_await searched.list->Until(has_address);
  std::string address = AddressIn(*listing.items, search.mac);
  Claim(search.network, address, search.uuid);
  co_return address;
}

void Addresses::Claim(const MachineNetwork& network, const std::string& address, const std::string& uuid) {
  std::string& owner = Of(network).owners[address];
  if (owner != uuid && host_.IsRunning(owner)) {
    throw driver::cloud::LaunchError(
        driver::cloud::LaunchError::Kind::kNetwork,
        fmt::format(
            "the machine on host {} was given the address {}, which machine {} has: where an image has "
            "a fixed /etc/machine-id, a DHCP server takes all its machines for one; empty that file",
            host_.name(), address, owner));
  }
  owner = uuid;
}

Addresses::Searched& Addresses::Of(const MachineNetwork& network) {
  bool is_bridge = network.kind == MachineNetwork::Kind::kBridge;
  Searched& searched = (is_bridge ? bridges_ : networks_)[network.name];
  if (searched.list) return searched;
  List::Read read = [this, &searched, is_bridge, name = network.name] {
    return is_bridge ? ReadMachines(searched) : ReadLeases(searched, name);
  };
  searched.list = std::make_unique<List>(tasks_, random_, logger_, "addresses of network " + network.name,
                                         std::move(read), is_bridge ? kLongPause : kShortPause);
  return searched;
}

Task<std::vector<KnownAddress>> Addresses::ReadLeases(Searched& searched, std::string network) {
  bool is_urgent = tasks_.loop().SteadyNow() < searched.last_begun + kHaste;
  if (!is_urgent) co_await tasks_.loop().SleepFor(kLongPause - kShortPause);
  auto read = [&network](Hypervisor& hypervisor) { return hypervisor.Leases(network); };
  co_return co_await host_.AcrossLosses(read);
}

Task<std::vector<KnownAddress>> Addresses::ReadMachines(Searched& searched) {
  std::vector<std::string> uuids;
  for (const auto& [uuid, search] : searched.searches) uuids.push_back(uuid);
  std::vector<KnownAddress> all;
  for (const std::string& uuid : uuids) {
    std::vector<KnownAddress> addresses = co_await ReadMachine(uuid);
    all.insert(all.end(), addresses.begin(), addresses.end());
  }
  co_return all;
}

// What does not know the machine says so with an error, of which nothing follows.
Task<std::vector<KnownAddress>> Addresses::ReadMachine(std::string uuid) {
  for (AddressSource source : {AddressSource::kAgent, AddressSource::kArp}) {
    auto ask = [&uuid, source](Hypervisor& hypervisor) { return hypervisor.Addresses(uuid, source); };
    Outcome<std::vector<KnownAddress>> answer = co_await Attempt(host_.AcrossLosses(ask));
    if (answer && !answer->empty()) co_return std::move(*answer);
  }
  co_return std::vector<KnownAddress>();
}

std::string AddressIn(const std::vector<KnownAddress>& addresses, const std::string& mac) {
  std::string ipv6;
  for (const KnownAddress& known : addresses) {
    if (known.mac != mac || !IsGlobal(known.address)) continue;
    if (!known.is_ipv6) return known.address;
    ipv6 = known.address;
  }
  return ipv6;
}

namespace {

constexpr int kFirst = 22000;
constexpr int kLast = 22999;
constexpr Duration kPortPause = std::chrono::minutes(10);

}  // namespace

std::optional<int> FreePort(const std::set<int>& taken, Random& random) {
  std::vector<int> free;
  for (int port = kFirst; port <= kLast; ++port) {
    if (!taken.contains(port)) free.push_back(port);
  }
  if (free.empty()) return std::nullopt;
  return free[random.Below(free.size())];
}

void RefusedPorts::Add(int port, SteadyTime now) { until_[port] = now + kPortPause; }

std::set<int> RefusedPorts::At(SteadyTime now) {
  std::erase_if(until_, [now](const auto& entry) { return entry.second <= now; });
  std::set<int> ports;
  for (const auto& [port, until] : until_) ports.insert(port);
  return ports;
}

bool IsPortTaken(const Error& error) {
  return error.message().find("Could not set up host forwarding rule") != std::string::npos;
}

// QEMU takes no names.
std::string BindAddress(const std::string& address) {
  boost::system::error_code fault;
  boost::asio::ip::make_address_v4(address, fault);
  return fault ? "" : address;
}

}  // namespace nodepool::drivers::libvirt
