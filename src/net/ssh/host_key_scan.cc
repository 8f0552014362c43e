#include "net/ssh/host_key_scan.h"

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
#include "net/ssh/ssh_host_key.h"

namespace nodepool::net {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

struct Algorithm {
  std::string_view name;
  std::string_view key_type;
};

// In the order of the result. The RSA algorithms differ in the signature only, the
// key is the same (D-28).
constexpr std::array<Algorithm, 7> kAlgorithms = {{{"ssh-ed25519", "ssh-ed25519"},
                                                   {"ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256"},
                                                   {"ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384"},
                                                   {"ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521"},
                                                   {"rsa-sha2-512", "ssh-rsa"},
                                                   {"rsa-sha2-256", "ssh-rsa"},
                                                   {"ssh-rsa", "ssh-rsa"}}};

// RFC 4253, 4.2: lines may stand before the identification.
constexpr int kMaxLinesBeforeGreeting = 50;
constexpr std::size_t kMaxGreetingBytes = 16384;

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
  throw Error(Verdict::kRetry, "what answers there is no SSH server");
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
  std::string address =
      co_await WithDeadline(loop_, try_deadline, "the connection", Reach(host, port, wants_keys));
  std::vector<std::string> keys;
  if (wants_keys) keys = co_await CollectKeys(std::move(address), port);
  co_return keys;
}

// The numeric address at which the machine accepted a connection.
Task<std::string> HostKeyScanner::Reach(std::string host, int port, bool wants_greeting) {
  auto executor = co_await asio::this_coro::executor;
  asio::ip::address address = co_await Resolve(std::move(host));
  tcp::endpoint endpoint(address, static_cast<std::uint16_t>(port));
  tcp::socket socket(executor);
  co_await socket.async_connect(endpoint, asio::use_awaitable);
  if (wants_greeting) co_await AwaitGreeting(socket);
  co_return address.to_string();
}

Task<std::vector<std::string>> HostKeyScanner::CollectKeys(std::string address, int port) {
  std::map<std::string, std::string> line_of_type;
  Duration limit = options_.try_limit;
  // Any exchange that succeeds shows that the server works; a failure starts over.
  auto read_any = [address, port, limit] { return ReadHostKey(address, port, "", limit); };
  Expected<HostKey> any = co_await OnBlockingPool(pool_, read_any);
  if (!any && any.error().verdict() != Verdict::kNotFound) throw any.error();
  if (any) line_of_type[any->type] = any->Line();

  for (const Algorithm& algorithm : kAlgorithms) {
    if (line_of_type.contains(std::string(algorithm.key_type))) continue;
    std::string name(algorithm.name);
    auto read = [address, port, name, limit] { return ReadHostKey(address, port, name, limit); };
    Expected<HostKey> key = co_await OnBlockingPool(pool_, read);
    if (key) {
      line_of_type[key->type] = key->Line();
    } else if (key.error().verdict() != Verdict::kNotFound) {
      logger_.Info("No {} key from {} on port {}: {}", name, address, port, key.error().message());
    }
  }
  std::vector<std::string> lines;
  for (const Algorithm& algorithm : kAlgorithms) {
    auto line = line_of_type.extract(std::string(algorithm.key_type));
    if (!line.empty()) lines.push_back(std::move(line.mapped()));
  }
  for (auto& [type, line] : line_of_type) lines.push_back(std::move(line));
  co_return lines;
}

}  // namespace nodepool::net
