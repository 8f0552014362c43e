#include "net/http/peer_network.h"

#include <gtest/gtest.h>

namespace nodepool::net {
namespace {

// ACT-15
TEST(PeerNetworkTest, OfIpv6TheFirstHalfCounts) {
  EXPECT_EQ(NetworkOf("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(NetworkOf("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(NetworkOf("2001:db8:1:2::9"), NetworkOf("2001:db8:1:2:ffff::"));
  EXPECT_NE(NetworkOf("2001:db8:1:3::9"), NetworkOf("2001:db8:1:2::9"));
  EXPECT_EQ(NetworkOf("what"), "what");
}

}  // namespace
}  // namespace nodepool::net
