#include "net/ssh/host_key_scan.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <set>

#include "async/attempt.h"
#include "async/cleanup.h"
#include "async/deadline.h"
#include "async/task_group.h"
#include "net/tcp_probe.h"

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

// Keys in the order of kAlgorithms, then others.
std::vector<std::string> InOrder(std::map<std::string, std::string> line_of_type) {
  std::vector<std::string> lines;
  for (const Algorithm& algorithm : kAlgorithms) {
    auto line = line_of_type.extract(std::string(algorithm.key_type));
    if (!line.empty()) lines.push_back(std::move(line.mapped()));
  }
  for (auto& [type, line] : line_of_type) lines.push_back(std::move(line));
  return lines;
}

bool Offers(const KeyAnswer& answer, std::string_view algorithm) {
  return !answer.offered || std::ranges::find(*answer.offered, algorithm) != answer.offered->end();
}

// Known types of keys that the server has beside the one that it has shown.
std::set<std::string> FurtherTypes(const KeyAnswer& first) {
  std::set<std::string> types;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (Offers(first, algorithm.name)) types.emplace(algorithm.key_type);
  }
  if (first.key) types.erase(first.key->type);
  return types;
}

}  // namespace

int HostKeyScanner::MostConnections() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 100;
  return static_cast<int>(std::clamp<rlim_t>(files.rlim_cur / 8, 100, 1000));
}

HostKeyScanner::HostKeyScanner(Loop& loop, BlockingPool& pool, Options options)
    : loop_(loop),
      pool_(pool),
      options_(options),
      gate_(options.max_active),
      further_connections_(options.max_active) {}

Task<std::vector<std::string>> HostKeyScanner::Scan(std::string host, int port, bool wants_keys,
                                                    SteadyTime deadline) {
  std::string what = "connecting to " + host + " on port " + std::to_string(port);
  std::vector<std::string> keys =
      co_await WithDeadline(loop_, deadline, what, ScanNow(std::move(host), port, wants_keys, deadline));
  co_return keys;
}

Task<std::vector<std::string>> HostKeyScanner::ScanNow(std::string host, int port, bool wants_keys,
                                                       SteadyTime deadline) {
  SteadyTime begun = loop_.SteadyNow();
  std::string last_fault;
  while (true) {
    Outcome<std::vector<std::string>> keys = co_await Attempt(ScanOnce(host, port, wants_keys, deadline));
    if (keys) co_return std::move(*keys);
    std::string fault = keys.error().message();
    if (fault != last_fault) logger_.Debug("No answer yet from {} on port {}: {}", host, port, fault);
    last_fault = std::move(fault);
    Duration taken = loop_.SteadyNow() - begun;
    co_await loop_.SleepFor(std::clamp(taken / 4, options_.least_pause, options_.most_pause));
  }
}

Task<std::vector<std::string>> HostKeyScanner::ScanOnce(std::string host, int port, bool wants_keys,
                                                        SteadyTime deadline) {
  // For one try only: machines that still boot do not hold up one that answers.
  Gate::Pass pass = co_await gate_.Enter();
  SteadyTime try_deadline = std::min(deadline, loop_.SteadyNow() + options_.try_limit);
  asio::ip::address address =
      co_await WithDeadline(loop_, try_deadline, "finding the address", Resolve(std::move(host)));
  tcp::endpoint machine(address, static_cast<std::uint16_t>(port));
  if (wants_keys) co_return co_await ReadKeys(machine, try_deadline);
  co_await WithDeadline(loop_, try_deadline, "the connection", Connect(machine));
  co_return std::vector<std::string>();
}

// Any successful exchange shows that the server works; a failure starts over.
Task<std::vector<std::string>> HostKeyScanner::ReadKeys(tcp::endpoint machine, SteadyTime deadline) {
  KeyAnswer first = co_await Ask(machine, "", deadline);
  LineOfType lines;
  if (first.key) lines[first.key->type] = first.key->Line();
  co_await ReadFurtherKeys(machine, std::move(first), lines);
  co_return InOrder(std::move(lines));
}

Task<> HostKeyScanner::ReadFurtherKeys(tcp::endpoint machine, KeyAnswer first, LineOfType& lines) {
  TaskGroup exchanges(loop_, logger_);
  for (const std::string& type : FurtherTypes(first)) {
    exchanges.Spawn("host key " + type, ReadKeyOfType(machine, type, first, lines));
  }
  auto stop = [&exchanges] { return exchanges.Stop(); };
  co_await WithCleanup(exchanges.Join(), stop);
}

Task<> HostKeyScanner::ReadKeyOfType(tcp::endpoint machine, std::string type, KeyAnswer first,
                                     LineOfType& lines) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.key_type != type || !Offers(first, algorithm.name)) continue;
    Gate::Pass pass = co_await further_connections_.Enter();
    SteadyTime deadline = loop_.SteadyNow() + options_.try_limit;
    Outcome<KeyAnswer> answer = co_await Attempt(Ask(machine, std::string(algorithm.name), deadline));
    if (answer && answer->key) {
      lines[answer->key->type] = answer->key->Line();
      co_return;
    }
    if (answer) continue;
    logger_.Info("No {} key from {} on port {}: {}", algorithm.name, machine.address().to_string(),
                 machine.port(), answer.error().message());
    // It would hang with the next one, too.
    if (FailedWith(answer, Verdict::kTimedOut)) co_return;
  }
}

Task<KeyAnswer> HostKeyScanner::Ask(tcp::endpoint machine, std::string algorithm, SteadyTime deadline) {
  KeyAnswer answer = co_await WithDeadline(loop_, deadline, "the key exchange",
                                           AskForKey(pool_, machine, std::move(algorithm)));
  co_return answer;
}

}  // namespace nodepool::net
