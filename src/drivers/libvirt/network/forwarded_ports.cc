#include "drivers/libvirt/network/forwarded_ports.h"

#include <boost/asio/ip/address_v4.hpp>

namespace nodepool::drivers::libvirt {

namespace {

constexpr int kFirst = 22000;
constexpr int kLast = 22999;

}  // namespace

std::optional<int> FreePort(const std::set<int>& taken) {
  for (int port = kFirst; port <= kLast; ++port) {
    if (!taken.contains(port)) return port;
  }
  return std::nullopt;
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
