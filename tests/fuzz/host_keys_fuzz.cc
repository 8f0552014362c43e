// Any bytes from a machine whose host keys are scanned: its greeting and its offer, which we read, and its
// part of the key exchange, which libssh reads. The scan ends with keys that fit into a record's line, or
// with Error.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>

#include "async/task.h"
#include "async/task_group.h"
#include "async/testing/run_ready.h"
#include "base/testing/manual_clock.h"
#include "net/ssh/host_key_scan.h"

namespace nodepool::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Sends a text to each client, and hangs up.
class Machine {
 public:
  Machine(Loop& loop, std::string text)
      : acceptor_(loop.context(), {asio::ip::address_v4::loopback(), 0}),
        text_(std::move(text)),
        tasks_(loop, log::Logger("fuzz")) {
    tasks_.Spawn("serve", Serve());
  }
  int port() const { return acceptor_.local_endpoint().port(); }
  Task<> Stop() { return tasks_.Stop(); }

 private:
  Task<> Serve() {
    while (true) {
      tcp::socket client = co_await acceptor_.async_accept(asio::use_awaitable);
      boost::system::error_code error;
      auto token = asio::redirect_error(asio::use_awaitable, error);
      co_await asio::async_write(client, asio::buffer(text_), token);
      client.shutdown(tcp::socket::shutdown_send, error);
      char heard[4096];
      for (error.clear(); !error;) co_await client.async_read_some(asio::buffer(heard), token);
    }
  }

  tcp::acceptor acceptor_;
  std::string text_;
  TaskGroup tasks_;
};

void CheckLine(const std::string& line) {
  bool has_type = line.starts_with("ssh-") || line.starts_with("ecdsa-");
  bool is_plain = std::ranges::all_of(line, [](char c) { return c >= ' ' && c <= '~'; });
  if (!has_type || !is_plain || std::ranges::count(line, ' ') != 1) __builtin_trap();
}

using Algorithms = std::optional<std::vector<std::string>>;

// What the text offers when it arrives in pieces. What is passed on is its end, and never much at a time.
Algorithms OfferedIn(std::string_view text, std::size_t piece) {
  ServerHello hello;
  std::string passed;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(std::min(piece, rest.size()))) {
    Expected<std::string> next = hello.Add(rest.substr(0, piece));
    if (!next) return std::nullopt;
    if (next->size() > piece + ServerHello::kMostBytesOfLine) __builtin_trap();
    passed += *next;
  }
  if (!text.ends_with(passed)) __builtin_trap();
  return hello.host_key_algorithms();
}

constexpr Duration kPause = std::chrono::milliseconds(1);
constexpr Duration kLimit = std::chrono::hours(1);

Task<> Scan(Loop& loop, BlockingPool& pool, std::string text, bool& is_done) {
  Machine machine(loop, std::move(text));
  HostKeyScanner scanner(loop, pool,
                         {.max_active = 1, .try_limit = kLimit, .least_pause = kPause, .most_pause = kPause});
  SteadyTime deadline = loop.SteadyNow() + kLimit;
  Outcome<std::vector<std::string>> keys =
      co_await Attempt(scanner.Scan("127.0.0.1", machine.port(), true, deadline));
  if (keys) {
    for (const std::string& line : *keys) CheckLine(line);
  }
  co_await machine.Stop();
  is_done = true;
}

}  // namespace
}  // namespace nodepool::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nodepool;
  log::SetLevel("", log::Level::kCritical);
  FuzzedDataProvider in(data, size);
  auto piece = in.ConsumeIntegralInRange<std::size_t>(1, 64);
  std::string text = in.ConsumeRemainingBytesAsString();
  if (net::OfferedIn(text, 1) != net::OfferedIn(text, piece)) __builtin_trap();
  nodepool::testing::ManualClock clock;
  Loop loop(clock);
  BlockingPool pool(1);
  bool is_done = false;
  auto scan = net::Scan(loop, pool, std::move(text), is_done);
  boost::asio::co_spawn(loop.context(), std::move(scan), boost::asio::detached);
  while (!is_done) {
    loop.context().run_one_for(std::chrono::milliseconds(1));
    // A try that failed is the last one: the next would come after the pause. What timers cancel has to be
    // cancelled by the loop.
    bool is_pausing = clock.has_timers() && clock.next_timer() <= clock.SteadyNow() + net::kPause;
    auto pass = [&clock] { clock.AdvanceTo(clock.SteadyNow() + net::kLimit); };
    if (is_pausing) boost::asio::post(loop.context(), pass);
  }
  nodepool::testing::RunReady(loop);
  return 0;
}
