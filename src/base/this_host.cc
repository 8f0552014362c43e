#include "base/this_host.h"

#include <ifaddrs.h>
#include <netinet/in.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <cstring>

#include "base/scope_exit.h"
#include "base/text.h"

namespace nodepool {
namespace {

using boost::asio::ip::address;

address AddressIn(const sockaddr& from) {
  if (from.sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &from, sizeof in);
    return boost::asio::ip::address_v4(ntohl(in.sin_addr.s_addr));
  }
  sockaddr_in6 in{};
  std::memcpy(&in, &from, sizeof in);
  boost::asio::ip::address_v6::bytes_type bytes;
  std::memcpy(bytes.data(), &in.sin6_addr, bytes.size());
  return boost::asio::ip::address_v6(bytes);
}

bool HasInterfaceWith(const address& wanted) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return false;
  ScopeExit release([first] { ::freeifaddrs(first); });
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    bool is_ip = each->ifa_addr->sa_family == AF_INET || each->ifa_addr->sa_family == AF_INET6;
    if (is_ip && AddressIn(*each->ifa_addr) == wanted) return true;
  }
  return false;
}

}  // namespace

bool IsThisHost(const std::string& host) {
  std::string name = Lower(host);
  if (name == "localhost" || name.ends_with(".localhost")) return true;
  boost::system::error_code fault;
  address parsed = boost::asio::ip::make_address(name, fault);
  if (!fault) return parsed.is_loopback() || parsed.is_unspecified() || HasInterfaceWith(parsed);
  std::string own = Lower(boost::asio::ip::host_name(fault));
  return !fault && (name == own || name == own.substr(0, own.find('.')));
}

}  // namespace nodepool
