#include "net/statsd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "async/testing/run_ready.h"
#include "base/error.h"

namespace nodepool::net {
namespace {

using boost::asio::ip::udp;
using metrics::Kind;
using metrics::Metric;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr Metric kServers{Kind::kGauge, "nodepool.provider.{provider}.max_servers", "", ""};
constexpr Metric kLaunch{Kind::kCounter, "nodepool.launch.requestor.{requestor~}.{result}", "", ""};
constexpr Metric kTime{Kind::kTiming, "nodepool.launch.{result}", "", ""};

class StatsdTest : public ::testing::Test {
 protected:
  // Every packet that has arrived.
  std::vector<std::string> Packets() {
    testing::RunReady(loop_);
    std::vector<std::string> packets;
    std::array<char, 65536> buffer;
    receiver_.non_blocking(true);
    boost::system::error_code error;
    while (true) {
      std::size_t size = receiver_.receive(boost::asio::buffer(buffer), 0, error);
      if (error) return packets;
      packets.emplace_back(buffer.data(), size);
    }
  }
  std::string port() const { return std::to_string(receiver_.local_endpoint().port()); }

  boost::asio::io_context context_;
  udp::socket receiver_{context_, udp::endpoint(boost::asio::ip::address_v4::loopback(), 0)};
  Loop loop_;
};

// Byte by byte; loopback delivers within the call that sends.
TEST_F(StatsdTest, EveryKindOfLine) {  // launcher.27.1, BB-33
  Statsd statsd(loop_, {"127.0.0.1", port()});
  statsd.Set(kServers, {"cloud.a"}, 5);
  statsd.Set(kServers, {"b"}, std::numeric_limits<double>::infinity());
  statsd.Set(kServers, {"c"}, -1);
  statsd.Set(kServers, {"d"}, 0);
  statsd.Set(kServers, {"e"}, 1'700'000'000);
  statsd.Add(kLaunch, {"NodePool:min-ready", "error.quota"});
  statsd.Observe(kTime, {"ready"}, std::chrono::microseconds(1'234'900));
  EXPECT_THAT(Packets(), ElementsAre("nodepool.provider.cloud.a.max_servers:5|g\n"
                                     "nodepool.provider.b.max_servers:inf|g\n"
                                     "nodepool.provider.c.max_servers:0|g\n"
                                     "nodepool.provider.c.max_servers:-1|g\n"
                                     "nodepool.provider.d.max_servers:0|g\n"
                                     "nodepool.provider.e.max_servers:1700000000|g\n"
                                     "nodepool.launch.requestor.NodePool_min-ready.error.quota:1|c\n"
                                     "nodepool.launch.ready:1234.000000|ms"));
}

TEST_F(StatsdTest, PacketsStayBelow512Bytes) {  // launcher.27.1
  Statsd statsd(loop_, {"127.0.0.1", port()});
  // A line is as long as the name and 34 bytes: two of 255 make 511 with the line
  // break, of 255 and 256 they would reach 512.
  std::string name(255 - 34, 'x');
  statsd.Set(kServers, {name}, 1);
  statsd.Set(kServers, {name}, 2);
  statsd.Set(kServers, {name}, 3);
  statsd.Set(kServers, {name + "y"}, 4);
  std::vector<std::string> packets = Packets();
  ASSERT_THAT(packets, ElementsAre(SizeIs(511), SizeIs(255), SizeIs(256)));
}

TEST_F(StatsdTest, LinesOfOneTurnOfTheLoopShareAPacket) {
  Statsd statsd(loop_, {"localhost", port()});
  statsd.Add(kLaunch, {"a", "ready"});
  statsd.Add(kLaunch, {"b", "ready"}, 2);
  EXPECT_THAT(Packets(), ElementsAre("nodepool.launch.requestor.a.ready:1|c\n"
                                     "nodepool.launch.requestor.b.ready:2|c"));
  statsd.Add(kLaunch, {"c", "ready"});
  EXPECT_THAT(Packets(), ElementsAre("nodepool.launch.requestor.c.ready:1|c"));
}

TEST_F(StatsdTest, ALateServerGetsNewLines) {
  udp::endpoint place = receiver_.local_endpoint();
  Statsd statsd(loop_, {"127.0.0.1", port()});
  receiver_.close();
  for (int i = 0; i < 3; ++i) {  // refused from the second one on
    statsd.Add(kLaunch, {"a", "ready"});
    testing::RunReady(loop_);
  }
  receiver_ = udp::socket(context_, place);
  statsd.Add(kLaunch, {"b", "ready"});
  Packets();  // the system may report the last refusal now
  statsd.Add(kLaunch, {"c", "ready"});
  EXPECT_THAT(Packets(), Contains("nodepool.launch.requestor.c.ready:1|c"));
}

TEST_F(StatsdTest, AnUnknownHostIsAClearError) {  // operations.3.2
  try {
    Statsd statsd(loop_, {"no-such-host.invalid", "8125"});
    FAIL() << "it was resolved";
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kInvalid);
    EXPECT_THAT(error.message(),
                ::testing::HasSubstr("no-such-host.invalid:8125 (STATSD_HOST, STATSD_PORT)"));
  }
}

TEST(StatsdAddressTest, EitherVariableIsEnough) {  // launcher.27.1
  EXPECT_EQ(StatsdFromEnvironment(nullptr, nullptr), std::nullopt);
  EXPECT_EQ(StatsdFromEnvironment("", ""), std::nullopt);
  EXPECT_EQ(StatsdFromEnvironment("stats", nullptr), (StatsdAddress{"stats", "8125"}));
  EXPECT_EQ(StatsdFromEnvironment("", "9125"), (StatsdAddress{"localhost", "9125"}));
  EXPECT_EQ(StatsdFromEnvironment("stats", "9125"), (StatsdAddress{"stats", "9125"}));
}

}  // namespace
}  // namespace nodepool::net
