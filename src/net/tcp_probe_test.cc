#include "net/tcp_probe.h"

#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>

#include "async/loop.h"

namespace nodepool::net {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;

class TcpProbeTest : public ::testing::Test {
 protected:
  std::optional<std::string> Probe(std::vector<std::string> addresses, Duration limit) {
    int port = acceptor_.local_endpoint().port();
    SteadyTime deadline = loop_.SteadyNow() + limit;
    return RunToEnd(loop_, FirstToAccept(loop_, std::move(addresses), port, deadline));
  }

  Loop loop_;
  tcp::acceptor acceptor_{loop_.context(), tcp::endpoint(boost::asio::ip::make_address("127.0.0.2"), 0)};
};

TEST_F(TcpProbeTest, TheOneThatAcceptsIsFound) {
  EXPECT_EQ(Probe({"127.0.0.3", "no address", "127.0.0.2"}, 30s), "127.0.0.2");
}

TEST_F(TcpProbeTest, NoneIsFoundInTime) {
  SteadyTime start = loop_.SteadyNow();
  EXPECT_EQ(Probe({"127.0.0.3", "127.0.0.4"}, 300ms), std::nullopt);
  EXPECT_LT(loop_.SteadyNow() - start, 10s);
}

}  // namespace
}  // namespace nodepool::net
