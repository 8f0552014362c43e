#include "net/resolve.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.h"
#include "base/text.h"

namespace nodepool::net {

namespace asio = boost::asio;
using asio::ip::tcp;

Task<asio::ip::address> Resolve(std::string host) {
  boost::system::error_code is_name;
  auto address = asio::ip::make_address(host, is_name);
  if (!is_name) co_return address;
  auto executor = co_await asio::this_coro::executor;
  tcp::resolver resolver(executor);
  boost::system::error_code error;
  std::string no_service;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  auto found = co_await resolver.async_resolve(host, no_service, token);
  if (error == asio::error::operation_aborted) throw boost::system::system_error(error);
  if (error || found.empty()) {
    throw Error(Verdict::kRetry, "the name " + Excerpt(host) + " cannot be resolved: " + error.message());
  }
  co_return found.begin()->endpoint().address();
}

}  // namespace nodepool::net
