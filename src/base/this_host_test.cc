#include "base/this_host.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/ip/udp.hpp>

namespace nodepool {
namespace {

TEST(ThisHostTest, KnowsItsOwnNamesAndAddresses) {
  for (const char* host :
       {"localhost", "LOCALHOST", "x.localhost", "127.0.0.1", "127.8.0.1", "::1", "0.0.0.0"})
    EXPECT_TRUE(IsThisHost(host)) << host;
  EXPECT_TRUE(IsThisHost(boost::asio::ip::host_name()));
  for (const char* host : {"", "localhost.example.org", "192.0.2.7", "2001:db8::7", "no-such-host"})
    EXPECT_FALSE(IsThisHost(host)) << host;
}

// The address from which other hosts would be reached; there may be none.
TEST(ThisHostTest, KnowsTheAddressesOfItsInterfaces) {
  using boost::asio::ip::udp;
  boost::asio::io_context context;
  udp::socket socket(context, udp::v4());
  boost::system::error_code fault;
  socket.connect({boost::asio::ip::make_address("192.0.2.7"), 9}, fault);
  if (fault) return;
  EXPECT_TRUE(IsThisHost(socket.local_endpoint().address().to_string()));
}

}  // namespace
}  // namespace nodepool
