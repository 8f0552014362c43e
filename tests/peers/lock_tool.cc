// Takes one lock with our recipe and keeps it until standard input ends, for tests
// that let another implementation contend for it.
//
//   lock_tool HOST:PORT DIRECTORY SECONDS
//
// Prints "held" or, when it did not get the lock in time, "timeout".

#include <fmt/format.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <cstdlib>
#include <iostream>

#include "async/loop.h"
#include "base/ids.h"
#include "zk/recipes/lock.h"
#include "zk/wire/wire_client.h"

namespace {

using nodepool::Loop;
using nodepool::Task;

Task<> AwaitEndOfInput(Loop& loop) {
  boost::asio::posix::stream_descriptor input(loop.context(), 0);
  std::string ignored;
  boost::system::error_code end;
  co_await boost::asio::async_read(input, boost::asio::dynamic_buffer(ignored),
                                   boost::asio::redirect_error(boost::asio::use_awaitable, end));
  input.release();
}

Task<> HoldLock(Loop& loop, nodepool::zk::Client& client, nodepool::Random& random, std::string directory,
                nodepool::Duration timeout) {
  nodepool::zk::Locker locker(loop, client, random);
  nodepool::SteadyTime deadline = loop.SteadyNow() + timeout;
  std::optional<nodepool::zk::HeldLock> lock = co_await locker.Acquire(directory, deadline);
  std::cout << (lock ? "held" : "timeout") << std::endl;
  if (lock) {
    co_await AwaitEndOfInput(loop);
    co_await locker.Release(*lock);
  }
  co_await client.Close();
}

}  // namespace

int main(int argc, char** argv) {
  std::string server = argc == 4 ? argv[1] : "";
  std::size_t colon = server.rfind(':');
  if (colon == std::string::npos) {
    std::cerr << "usage: lock_tool HOST:PORT DIRECTORY SECONDS\n";
    return 2;
  }
  Loop loop;
  nodepool::SystemRandom random;
  nodepool::zk::WireOptions options;
  options.servers.push_back({server.substr(0, colon), std::atoi(server.c_str() + colon + 1)});
  nodepool::zk::WireClient client(loop, random, options);
  auto timeout = std::chrono::milliseconds(static_cast<long>(std::atof(argv[3]) * 1000));
  try {
    nodepool::RunToEnd(loop, HoldLock(loop, client, random, argv[2], timeout));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
