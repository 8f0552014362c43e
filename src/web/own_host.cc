#include "web/own_host.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace nodepool::web {
namespace {

bool IsAddress(const std::string& name) {
  boost::system::error_code failed;
  boost::asio::ip::make_address(name, failed);
  return !failed;
}

// In lower case; of "name", "name:8005", "[::1]:8005". nullopt: it is none of these.
std::optional<std::string> HostNameIn(std::string_view host) {
  bool is_bracketed = host.starts_with('[');
  std::size_t end = host.find(is_bracketed ? ']' : ':');
  if (is_bracketed && end == host.npos) return std::nullopt;
  std::string name = Lower(is_bracketed ? host.substr(1, end - 1) : host.substr(0, end));
  std::string_view port = host.substr(std::min(host.size(), is_bracketed ? end + 1 : end));
  bool is_port =
      port.empty() || (port.starts_with(':') && port.find_first_not_of("0123456789", 1) == port.npos);
  if (!is_port || (is_bracketed && !IsAddress(name))) return std::nullopt;
  return name;
}

bool IsOwnName(const std::string& name) {
  boost::system::error_code failed;
  std::string own = Lower(boost::asio::ip::host_name(failed));
  return name == own || name == own.substr(0, own.find('.'));
}

bool HasOwnHost(const net::HttpRequest& request) {
  const std::string& host = request.Header("host");
  if (host.empty()) return true;
  std::optional<std::string> name = HostNameIn(host);
  return name && (*name == "localhost" || IsAddress(*name) || IsOwnName(*name));
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
