#include "net/tcp_probe.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "async/deadline.h"
#include "async/task.h"
#include "base/error.h"
#include "base/text.h"

namespace nodepool::net {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr Duration kTryLimit = std::chrono::seconds(1);
constexpr Duration kPause = std::chrono::milliseconds(100);

Task<bool> Accepts(Loop& loop, std::string address, int port, SteadyTime deadline) {
  boost::system::error_code invalid;
  asio::ip::address parsed = asio::ip::make_address(address, invalid);
  if (invalid) co_return false;
  tcp::endpoint endpoint(parsed, static_cast<std::uint16_t>(port));
  Outcome<> connected =
      co_await Attempt(WithDeadline(loop, deadline, "connecting to " + address, Connect(endpoint)));
  co_return connected.has_value();
}

}  // namespace

Task<> Connect(tcp::endpoint machine) {
  auto executor = co_await asio::this_coro::executor;
  tcp::socket socket(executor);
  co_await socket.async_connect(machine, asio::use_awaitable);
}

Task<std::optional<std::string>> FirstToAccept(Loop& loop, std::vector<std::string> addresses, int port,
                                               SteadyTime deadline) {
  while (loop.SteadyNow() < deadline) {
    for (const std::string& address : addresses) {
      SteadyTime limit = std::min(deadline, loop.SteadyNow() + kTryLimit);
      std::string tried = address;
      bool is_open = co_await Accepts(loop, std::move(tried), port, limit);
      if (is_open) co_return address;
    }
    co_await loop.SleepFor(kPause);
  }
  co_return std::nullopt;
}

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
