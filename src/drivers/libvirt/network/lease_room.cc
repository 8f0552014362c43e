#include "drivers/libvirt/network/lease_room.h"

#include <fmt/format.h>

#include <algorithm>

namespace nodepool::drivers::libvirt {

namespace {

struct LeaseRoom {
  std::uint64_t leases = 0;
  std::uint64_t addresses = 0;
};

Task<LeaseRoom> ReadLeaseRoom(Host& host, std::string network) {
  std::vector<KnownAddress> leases = co_await host.Use().Leases(network);
  LeaseRoom room;
  room.leases = std::uint64_t(std::ranges::count(leases, false, &KnownAddress::is_ipv6));
  room.addresses = co_await host.Use().LeaseRange(network);
  co_return room;
}

}  // namespace

Task<std::string> ExplainLeases(Host& host, MachineNetwork network) {
  if (network.kind != MachineNetwork::Kind::kNamed) co_return "";
  Outcome<LeaseRoom> room = co_await Attempt(ReadLeaseRoom(host, network.name));
  if (!room || room->addresses == 0 || room->leases < room->addresses) co_return "";
  co_return fmt::format(
      "network {} has {} leases of {} addresses, and those of deleted machines stay until they expire: "
      "enlarge its range, or shorten its leases; ",
      network.name, room->leases, room->addresses);
}

}  // namespace nodepool::drivers::libvirt
