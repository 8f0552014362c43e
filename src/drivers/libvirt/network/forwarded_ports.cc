#include "drivers/libvirt/network/forwarded_ports.h"

#include <boost/asio/ip/address_v4.hpp>
#include <vector>

namespace nodepool::drivers::libvirt {

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
