#include "zk/wire/wire_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>

#include "base/error.h"

namespace nodepool::zk {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

void Shuffle(Random& random, std::vector<tcp::endpoint>& endpoints) {
  for (std::size_t i = endpoints.size(); i > 1; --i) std::swap(endpoints[i - 1], endpoints[random.Below(i)]);
}

// "[::1]" as some people write it.
std::string WithoutBrackets(const std::string& host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') return host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

Task<std::vector<tcp::endpoint>> ResolveServers(Loop& loop, Random& random, std::vector<HostPort> servers,
                                                std::vector<std::string>& problems) {
  std::vector<tcp::endpoint> endpoints;
  tcp::resolver resolver(loop.context());
  for (const HostPort& server : servers) {
    std::string host = WithoutBrackets(server.host);
    error_code error;
    auto address = asio::ip::make_address(host, error);
    if (!error) {
      endpoints.emplace_back(address, static_cast<std::uint16_t>(server.port));
      continue;
    }
    auto token = asio::redirect_error(asio::use_awaitable, error);
    auto found = co_await resolver.async_resolve(host, std::to_string(server.port), token);
    if (error == asio::error::operation_aborted) throw Error(Verdict::kCancelled, "cancelled");
    if (error) problems.push_back(fmt::format("{}: {}", server.host, error.message()));
    for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  }
  std::sort(endpoints.begin(), endpoints.end());
  endpoints.erase(std::unique(endpoints.begin(), endpoints.end()), endpoints.end());
  Shuffle(random, endpoints);
  co_return endpoints;
}

}  // namespace nodepool::zk
