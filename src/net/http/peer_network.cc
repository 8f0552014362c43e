#include "net/http/peer_network.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

namespace nodepool::net {

std::string NetworkOf(const std::string& address) {
  constexpr std::size_t kNetworkBytes = 8;
  boost::system::error_code failed;
  boost::asio::ip::address parsed = boost::asio::ip::make_address(address, failed);
  if (failed || !parsed.is_v6()) return address;
  auto bytes = parsed.to_v6().to_bytes();
  std::fill(bytes.begin() + kNetworkBytes, bytes.end(), std::uint8_t{0});
  return boost::asio::ip::address_v6(bytes).to_string() + "/64";
}

}  // namespace nodepool::net
