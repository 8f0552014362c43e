#include "web/own_host.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <string_view>

#include "base/text.h"

namespace nodepool::web {
namespace {

// "name", "name:8005", "[::1]:8005"
std::string NameIn(std::string_view host) {
  if (host.starts_with('[')) return std::string(host.substr(1, host.find(']') - 1));
  return Lower(host.substr(0, host.find(':')));
}

bool IsAddress(const std::string& name) {
  boost::system::error_code failed;
  boost::asio::ip::make_address(name, failed);
  return !failed;
}

bool IsOwnName(const std::string& name) {
  boost::system::error_code failed;
  std::string own = Lower(boost::asio::ip::host_name(failed));
  return name == own || name == own.substr(0, own.find('.'));
}

bool HasOwnHost(const net::HttpRequest& request) {
  std::string name = NameIn(request.Header("host"));
  return name.empty() || name == "localhost" || IsAddress(name) || IsOwnName(name);
}

}  // namespace

bool IsForThisHost(const net::HttpRequest& request) {
  return request.Header("origin").empty() && HasOwnHost(request);
}

bool IsOfOwnOrigin(const net::HttpRequest& request) {
  const std::string& origin = request.Header("origin");
  const std::string& host = request.Header("host");
  bool is_own =
      origin.empty() || (!host.empty() && (origin == "http://" + host || origin == "https://" + host));
  return is_own && (!request.is_from_this_host || HasOwnHost(request));
}

}  // namespace nodepool::web
