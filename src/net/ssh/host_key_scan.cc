#include "net/ssh/host_key_scan.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "async/attempt.h"
#include "async/deadline.h"
#include "base/text.h"
#include "net/resolve.h"

namespace nodepool::net {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

struct Algorithm {
  std::string_view name;
  std::string_view key_type;
};

// In the order of the result. The RSA algorithms differ in the signature only; the key is the same
// (D-28).
constexpr std::array<Algorithm, 7> kAlgorithms = {{{"ssh-ed25519", "ssh-ed25519"},
                                                   {"ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256"},
                                                   {"ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384"},
                                                   {"ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521"},
                                                   {"rsa-sha2-512", "ssh-rsa"},
                                                   {"rsa-sha2-256", "ssh-rsa"},
                                                   {"ssh-rsa", "ssh-rsa"}}};

// RFC 4253, 4.2: lines may precede the identification.
constexpr int kMaxLinesBeforeGreeting = 50;
constexpr std::size_t kMaxGreetingBytes = 16384;
// Of a key exchange, which takes about five; more when its few kilobytes arrive in small pieces.
constexpr int kMaxSteps = 10'000;

Task<> AwaitGreeting(tcp::socket& socket) {
  asio::streambuf buffer(kMaxGreetingBytes);
  for (int lines = 0; lines < kMaxLinesBeforeGreeting; ++lines) {
    co_await asio::async_read_until(socket, buffer, '\n', asio::use_awaitable);
    std::istream stream(&buffer);
    std::string line;
    std::getline(stream, line);
    if (line.starts_with("SSH-2.0-") || line.starts_with("SSH-1.99-")) co_return;
    if (line.starts_with("SSH-")) break;
  }
  throw Error(Verdict::kRetry, "the answer is not that of an SSH server");
}

// Where the machine has accepted a connection.
Task<tcp::endpoint> Reach(std::string host, int port, bool wants_greeting) {
  auto executor = co_await asio::this_coro::executor;
  asio::ip::address address = co_await Resolve(std::move(host));
  tcp::endpoint endpoint(address, static_cast<std::uint16_t>(port));
  tcp::socket socket(executor);
  co_await socket.async_connect(endpoint, asio::use_awaitable);
  if (wants_greeting) co_await AwaitGreeting(socket);
  co_return endpoint;
}

// Another descriptor of the socket, for a library that closes the one it works with.
int Duplicate(tcp::socket& socket) {
  int descriptor = fcntl(socket.native_handle(), F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) throw Error(Verdict::kRetry, "no descriptor is left for a key exchange");
  return descriptor;
}

}  // namespace

HostKeyScanner::HostKeyScanner(Loop& loop, BlockingPool& pool, Options options)
    : loop_(loop), pool_(pool), options_(options), gate_(options.max_active) {}

Task<std::vector<std::string>> HostKeyScanner::Scan(std::string host, int port, bool wants_keys,
                                                    SteadyTime deadline) {
  std::string what = "connecting to " + host + " on port " + std::to_string(port);
  std::vector<std::string> keys =
      co_await WithDeadline(loop_, deadline, what, ScanNow(std::move(host), port, wants_keys, deadline));
  co_return keys;
}

Task<std::vector<std::string>> HostKeyScanner::ScanNow(std::string host, int port, bool wants_keys,
                                                       SteadyTime deadline) {
  Gate::Pass pass = co_await gate_.Enter();
  std::string last_fault;
  while (true) {
    Outcome<std::vector<std::string>> keys = co_await Attempt(ScanOnce(host, port, wants_keys, deadline));
    if (keys) co_return std::move(*keys);
    std::string fault = keys.error().message();
    if (fault != last_fault) logger_.Debug("No answer yet from {} on port {}: {}", host, port, fault);
    last_fault = std::move(fault);
    co_await loop_.SleepFor(options_.pause);
  }
}

Task<std::vector<std::string>> HostKeyScanner::ScanOnce(std::string host, int port, bool wants_keys,
                                                        SteadyTime deadline) {
  SteadyTime try_deadline = std::min(deadline, loop_.SteadyNow() + options_.try_limit);
  tcp::endpoint machine =
      co_await WithDeadline(loop_, try_deadline, "the connection", Reach(host, port, wants_keys));
  std::vector<std::string> keys;
  if (wants_keys) keys = co_await CollectKeys(machine);
  co_return keys;
}

Task<std::vector<std::string>> HostKeyScanner::CollectKeys(tcp::endpoint machine) {
  std::map<std::string, std::string> line_of_type;
  // Any successful exchange shows that the server works; a failure starts over.
  std::optional<HostKey> any = co_await ReadKey(machine, "");
  if (any) line_of_type[any->type] = any->Line();

  for (const Algorithm& algorithm : kAlgorithms) {
    if (line_of_type.contains(std::string(algorithm.key_type))) continue;
    Outcome<std::optional<HostKey>> key = co_await Attempt(ReadKey(machine, std::string(algorithm.name)));
    if (key && *key) line_of_type[(*key)->type] = (*key)->Line();
    if (key) continue;
    logger_.Info("No {} key from {} on port {}: {}", algorithm.name, machine.address().to_string(),
                 machine.port(), key.error().message());
    // A server that hangs once would hang with every other algorithm, too.
    if (FailedWith(key, Verdict::kTimedOut)) break;
  }
  std::vector<std::string> lines;
  for (const Algorithm& algorithm : kAlgorithms) {
    auto line = line_of_type.extract(std::string(algorithm.key_type));
    if (!line.empty()) lines.push_back(std::move(line.mapped()));
  }
  for (auto& [type, line] : line_of_type) lines.push_back(std::move(line));
  co_return lines;
}

// nullopt: the machine has no key for the algorithm.
Task<std::optional<HostKey>> HostKeyScanner::ReadKey(tcp::endpoint machine, std::string algorithm) {
  SteadyTime deadline = loop_.SteadyNow() + options_.try_limit;
  std::optional<HostKey> key =
      co_await WithDeadline(loop_, deadline, "the key exchange", Exchange(machine, std::move(algorithm)));
  co_return key;
}

Task<std::optional<HostKey>> HostKeyScanner::Exchange(tcp::endpoint machine, std::string algorithm) {
  auto executor = co_await asio::this_coro::executor;
  tcp::socket socket(executor);
  co_await socket.async_connect(machine, asio::use_awaitable);
  socket.native_non_blocking(true);
  auto exchange = std::make_shared<KeyExchange>(Duplicate(socket), std::move(algorithm));
  auto step = [exchange] { return exchange->Step(); };
  for (int steps = 0; steps < kMaxSteps; ++steps) {
    Expected<std::optional<HostKey>> key = co_await OnBlockingPool(pool_, step);
    if (!key && key.error().verdict() == Verdict::kNotFound) co_return std::nullopt;
    if (!key) throw key.error();
    if (*key) co_return std::move(*key);
    co_await socket.async_wait(tcp::socket::wait_read, asio::use_awaitable);
  }
  throw Error(Verdict::kRetry, "the server sends too much for a key exchange");
}

}  // namespace nodepool::net
