#include "net/ssh/ask_for_key.h"

#include <array>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <memory>

#include "net/ssh/server_hello.h"

namespace nodepool::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using LocalSocket = asio::local::stream_protocol::socket;

namespace {

// Of a key exchange, which takes about five; more when its few kilobytes arrive in small pieces.
constexpr int kMaxSteps = 10'000;
// One step of the library reads at most 4096 bytes.
using Buffer = std::array<char, 4096 - ServerHello::kMostBytesOfLine>;

// What the library has written, on its way to the server.
Task<> PassOn(LocalSocket& library, tcp::socket& server, Buffer& buffer) {
  while (true) {
    boost::system::error_code nothing;
    std::size_t size = library.read_some(asio::buffer(buffer), nothing);
    if (nothing) co_return;
    co_await asio::async_write(server, asio::buffer(buffer, size), asio::use_awaitable);
  }
}

}  // namespace

// The library works on one end of a pair of sockets; what passes between the other end and the server is read
// on the way.
Task<KeyAnswer> AskForKey(BlockingPool& pool, tcp::endpoint machine, std::string algorithm) {
  auto executor = co_await asio::this_coro::executor;
  tcp::socket server(executor);
  co_await server.async_connect(machine, asio::use_awaitable);
  LocalSocket ours(executor), librarys(executor);
  asio::local::connect_pair(ours, librarys);
  ours.non_blocking(true);
  librarys.native_non_blocking(true);
  auto exchange = std::make_shared<KeyExchange>(librarys.release(), std::move(algorithm));
  auto step = [exchange] { return exchange->Step(); };
  ServerHello hello;
  Buffer buffer;
  for (int steps = 0; steps < kMaxSteps; ++steps) {
    Expected<std::optional<HostKey>> key = co_await OnBlockingPool(pool, step);
    if (!key && key.error().verdict() != Verdict::kNotFound) throw key.error();
    if (!key || *key) {
      KeyAnswer answer{key ? std::move(*key) : std::nullopt, hello.host_key_algorithms()};
      co_return answer;
    }
    co_await PassOn(ours, server, buffer);
    std::size_t size = co_await server.async_read_some(asio::buffer(buffer), asio::use_awaitable);
    Expected<std::string> passed = hello.Add(std::string_view(buffer.data(), size));
    if (!passed) throw passed.error();
    co_await asio::async_write(ours, asio::buffer(*passed), asio::use_awaitable);
  }
  throw Error(Verdict::kRetry, "the server sends too much for a key exchange");
}

}  // namespace nodepool::net
