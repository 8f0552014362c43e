#include "zk/server/server_thread.h"

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <semaphore>

#include "base/error.h"
#include "zk/wire/wire_for_test.h"

namespace nodepool::zk::server {
namespace {

using boost::asio::ip::tcp;

class ServerThreadTest : public ::testing::Test, protected RealTime {
 protected:
  static ServerOptions OptionsFor(const tcp::acceptor& reserved) {
    ServerOptions options;
    options.port = reserved.local_endpoint().port();
    return options;
  }
  // A free port of the loopback address: nobody else gets it while this is bound and does not listen.
  tcp::acceptor Reserve() {
    tcp::acceptor acceptor(loop.context());
    acceptor.open(tcp::v4());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind({boost::asio::ip::address_v4::loopback(), 0});
    return acceptor;
  }
};

Task<> CreateNode(WireClient& client) {
  (void)co_await client.Create("/node", "data", CreateMode::kPersistent);
}

Task<> ReadNode(WireClient& client, bool& is_answered) {
  (void)co_await client.Get("/node");
  is_answered = true;
}

TEST_F(ServerThreadTest, ServesTheProcessThatItIsPartOf) {
  tcp::acceptor reserved = Reserve();
  ServerThread server(OptionsFor(reserved));
  Await(server.Start());
  WireOptions options;
  options.servers = {{"127.0.0.1", reserved.local_endpoint().port()}};
  WireClient client(loop, random, options);
  TaskGroup group(loop, log::Logger("test.server_thread"));
  Await(CreateNode(client));

  // While the server is busy this loop goes on; what it has asked is answered afterwards.
  std::binary_semaphore is_busy(0), may_go_on(0);
  boost::asio::post(server.loop().context(), [&] {
    is_busy.release();
    may_go_on.acquire();
  });
  is_busy.acquire();
  bool is_answered = false;
  group.Spawn("read", ReadNode(client, is_answered));
  Await(loop.SleepFor(std::chrono::milliseconds(20)));
  EXPECT_FALSE(is_answered);
  may_go_on.release();
  EXPECT_TRUE(Until([&] { return is_answered; }));
  RunToEnd(loop, group.Stop());
  Await(client.Close());
  Await(server.Stop());
}

TEST_F(ServerThreadTest, SaysWhyItCannotStart) {
  tcp::acceptor taken = Reserve();
  taken.listen();
  ServerThread server(OptionsFor(taken));
  EXPECT_EQ(ErrorOf(server.Start()).verdict(), Verdict::kInvalid);
  Await(server.Stop());
}

}  // namespace
}  // namespace nodepool::zk::server
