#include "driver/testing/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <memory>

#include "async/task.h"
#include "async/task_group.h"
#include "base/error.h"
#include "driver/testing/checks.h"

namespace nodepool::driver::testing {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr Duration kLongestBlock = std::chrono::milliseconds(500);
constexpr Duration kLookInterval = std::chrono::milliseconds(250);

using Status = CheckResult::Status;

class Contract {
 public:
  explicit Contract(Subject subject)
      : loop_(subject.loop),
        observer_(subject.observer ? *subject.observer : nobody_),
        removal_timeout_(subject.removal_timeout),
        search_timeout_(subject.search_timeout),
        machines_(std::move(subject)) {}

  Task<std::vector<CheckResult>> Run() {
    TaskGroup watch(loop_, log::Logger("nodepool.driver.testing"));
    watch.Spawn("watch the loop", WatchLoop());
    auto stop = [&watch] { return watch.Stop(); };
    co_await WithCleanup(RunChecks(), stop);
    ReportBlock();
    co_return std::move(results_);
  }

 private:
  Task<> RunChecks() {
    auto remove = [this](const Failure&) { return RemoveInTime(); };
    for (const Check& check : Checks()) {
      bool needs_machine = !results_.empty() && !machines_.has_created();
      if (needs_machine) {
        End({.check = check.name, .status = Status::kNotRun});
      } else {
        co_await OnFailure(RunCheck(check), remove);
      }
    }
  }

  Task<> RunCheck(const Check& check) {
    Begin(check.name);
    SteadyTime begun = loop_.SteadyNow();
    CheckResult result{.check = check.name};
    Outcome<std::string> done = co_await Attempt(check.run(machines_));
    result.detail = done ? *done : done.error().message();
    if (!done) {
      result.status = Status::kFailed;
    } else if (!result.detail.empty()) {
      result.status = Status::kSkipped;
    }
    result.duration = loop_.SteadyNow() - begun;
    End(std::move(result));
    if (!done) co_await RemoveAfterFailure();
    ReportLeft();
  }

  // Where nothing has an id, there is probably nothing, and the lists fail as the creation did.
  Task<> RemoveAfterFailure() {
    if (machines_.any_has_id()) co_return co_await machines_.RemoveAll();
    SteadyTime deadline = loop_.SteadyNow() + search_timeout_;
    co_await EndsBy(loop_, deadline, "searching for machines of the check", machines_.RemoveAll());
  }

  // Called when the run is cancelled during a check.
  Task<> RemoveInTime() {
    SteadyTime deadline = loop_.SteadyNow() + removal_timeout_;
    co_await EndsBy(loop_, deadline, "removing the machines of the check", machines_.RemoveAll());
    ReportLeft();
  }

  Task<> WatchLoop() {
    while (true) {
      SteadyTime due = loop_.SteadyNow() + kLookInterval;
      co_await loop_.SleepUntil(due);
      Duration block = loop_.SteadyNow() - due;
      if (block <= longest_block_) continue;
      longest_block_ = block;
      blocked_in_ = current_;
    }
  }

  void ReportBlock() {
    CheckResult result{.check = "nothing blocks the loop"};
    Begin(result.check);
    if (longest_block_ > kLongestBlock) {
      result.status = Status::kFailed;
      result.detail = fmt::format("the loop was blocked for {:.1f} s in the check \"{}\"",
                                  std::chrono::duration<double>(longest_block_).count(), blocked_in_);
    }
    End(std::move(result));
  }

  void ReportLeft() {
    for (const std::string& machine : machines_.TakeLeft()) observer_.MachineLeft(machine);
  }

  void Begin(std::string check) {
    current_ = std::move(check);
    observer_.CheckBegins(current_);
  }

  void End(CheckResult result) {
    observer_.CheckEnded(result);
    results_.push_back(std::move(result));
  }

  Loop& loop_;
  ContractObserver nobody_;
  ContractObserver& observer_;
  Duration removal_timeout_;
  Duration search_timeout_;
  Machines machines_;
  std::vector<CheckResult> results_;
  std::string current_;
  Duration longest_block_{0};
  std::string blocked_in_;
};

}  // namespace

Task<std::vector<CheckResult>> RunContract(Subject subject) {
  Contract contract(std::move(subject));
  std::vector<CheckResult> results = co_await contract.Run();
  co_return results;
}

// RFC 1928.
constexpr unsigned char kSocks5 = 5, kNoLogin = 0, kConnect = 1, kIpv4 = 1, kName = 3, kIpv6 = 4;

struct StallingProxy::Connection {
  explicit Connection(Socket accepted) : client(std::move(accepted)), cloud(client.get_executor()) {}
  void Close() {
    boost::system::error_code ignored;
    client.close(ignored);
    cloud.close(ignored);
  }

  Socket client;
  Socket cloud;
};

StallingProxy::StallingProxy(Loop& loop)
    : loop_(loop),
      acceptor_(loop.context(), {asio::ip::address_v4::loopback(), 0}),
      tasks_(loop, log::Logger("nodepool.driver.testing")) {
  tasks_.Spawn("proxy of the test", Accept());
}

std::string StallingProxy::url() const {
  return fmt::format("socks5h://127.0.0.1:{}", acceptor_.local_endpoint().port());
}

void StallingProxy::Stall(bool is_stalled) {
  if (is_stalled && !is_stalled_) ++stalls_;
  is_stalled_ = is_stalled;
}

Task<> StallingProxy::Accept() {
  while (true) {
    Socket accepted = co_await acceptor_.async_accept(asio::use_awaitable);
    auto connection = std::make_shared<Connection>(std::move(accepted));
    tasks_.Spawn("connection of the test's proxy", Serve(connection));
  }
}

Task<> StallingProxy::Serve(std::shared_ptr<Connection> connection) {
  Outcome<> connected = co_await Attempt(Connect(*connection));
  if (!connected) co_return connection->Close();
  ++connections_;
  tasks_.Spawn("answers of the cloud", Pump(connection, connection->cloud, connection->client));
  co_await Pump(connection, connection->client, connection->cloud);
}

// The greeting, then the address to connect to.
Task<> StallingProxy::Connect(Connection& connection) {
  std::array<unsigned char, 256> bytes{};
  co_await asio::async_read(connection.client, asio::buffer(bytes, 2), asio::use_awaitable);
  co_await asio::async_read(connection.client, asio::buffer(bytes, bytes[1]), asio::use_awaitable);
  std::array<unsigned char, 2> greeting{kSocks5, kNoLogin};
  co_await asio::async_write(connection.client, asio::buffer(greeting), asio::use_awaitable);
  co_await asio::async_read(connection.client, asio::buffer(bytes, 4), asio::use_awaitable);
  if (bytes[0] != kSocks5 || bytes[1] != kConnect) throw Error(Verdict::kFail, "no CONNECT of SOCKS5");
  unsigned char kind = bytes[3];
  std::size_t size = kind == kIpv6 ? 16 : 4;
  if (kind == kName) {
    co_await asio::async_read(connection.client, asio::buffer(bytes, 1), asio::use_awaitable);
    size = bytes[0];
  } else if (kind != kIpv4 && kind != kIpv6) {
    throw Error(Verdict::kFail, "no address of SOCKS5");
  }
  co_await asio::async_read(connection.client, asio::buffer(bytes, size), asio::use_awaitable);
  std::string host(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  if (kind == kIpv4) {
    asio::ip::address_v4::bytes_type address{};
    std::copy_n(bytes.begin(), address.size(), address.begin());
    host = asio::ip::address_v4(address).to_string();
  } else if (kind == kIpv6) {
    asio::ip::address_v6::bytes_type address{};
    std::copy_n(bytes.begin(), address.size(), address.begin());
    host = asio::ip::address_v6(address).to_string();
  }
  std::array<unsigned char, 2> port{};
  co_await asio::async_read(connection.client, asio::buffer(port), asio::use_awaitable);
  std::string service = std::to_string(port[0] * 256 + port[1]);
  tcp::resolver resolver(loop_.context());
  tcp::resolver::results_type places = co_await resolver.async_resolve(host, service, asio::use_awaitable);
  co_await asio::async_connect(connection.cloud, places, asio::use_awaitable);
  std::array<unsigned char, 10> done{kSocks5, 0, 0, kIpv4};
  co_await asio::async_write(connection.client, asio::buffer(done), asio::use_awaitable);
}

// Forwards one direction until either side closes, or the first stall in its life ends.
Task<> StallingProxy::Pump(std::shared_ptr<Connection> connection, Socket& from, Socket& to) {
  constexpr Duration kLook = std::chrono::milliseconds(50);
  std::array<char, 16 * 1024> bytes;
  int stalls = is_stalled_ ? stalls_ - 1 : stalls_;
  while (true) {
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    std::size_t count = co_await from.async_read_some(asio::buffer(bytes), token);
    while (is_stalled_ && !error) co_await loop_.SleepFor(kLook);
    if (error || stalls != stalls_) break;
    co_await asio::async_write(to, asio::buffer(bytes.data(), count), token);
    if (error) break;
  }
  connection->Close();
}

}  // namespace nodepool::driver::testing
