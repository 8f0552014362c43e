// Pools and networks that are made, on libvirt's test driver: a host in the process that lives as long as its
// connection.
#include "drivers/libvirt/host/places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace nodepool::drivers::libvirt {
namespace {

using ::testing::HasSubstr;

NewNetwork Network(const std::string& name = "made") {
  return {name, boost::asio::ip::make_network_v4("192.168.150.0/24"), false};
}

class PlacesTest : public ::testing::Test {
 protected:
  void SetUp() override { connection = virConnectOpen("test:///default"); }
  void TearDown() override { virConnectClose(connection); }

  std::string ErrorOf(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kInvalid);
      return error.message();
    }
    return "no error";
  }

  virConnectPtr connection = nullptr;
};

// LV-46
TEST_F(PlacesTest, APoolIsMadeOnceAndStartedWithItsHost) {
  StoragePool wanted{"made", "/made"};
  PoolHandle pool = OpenPool(connection, wanted);
  EXPECT_EQ(virStoragePoolIsActive(pool.get()), 1);
  int starts_with_host = 0;
  virStoragePoolGetAutostart(pool.get(), &starts_with_host);
  EXPECT_EQ(starts_with_host, 1);
  Allocated<char> xml(virStoragePoolGetXMLDesc(pool.get(), 0));
  EXPECT_THAT(xml.get(), HasSubstr("<path>/made</path>"));
  virStoragePoolDestroy(pool.get());
  EXPECT_EQ(virStoragePoolIsActive(OpenPool(connection, wanted).get()), 1);
}

TEST_F(PlacesTest, APoolWithoutAPathHasToExist) {
  EXPECT_THAT(ErrorOf([&] {
                OpenPool(connection, {"nowhere", std::nullopt});
              }),
              HasSubstr("opening storage pool nowhere"));
}

TEST_F(PlacesTest, ANetworkIsMadeOnceAndStartedWithItsHost) {
  OpenNetwork(connection, "made", Network());
  NetworkHandle network(virNetworkLookupByName(connection, "made"));
  ASSERT_TRUE(network);
  EXPECT_EQ(virNetworkIsActive(network.get()), 1);
  int starts_with_host = 0;
  virNetworkGetAutostart(network.get(), &starts_with_host);
  EXPECT_EQ(starts_with_host, 1);
  virNetworkDestroy(network.get());
  OpenNetwork(connection, "made", Network());
  EXPECT_EQ(virNetworkIsActive(network.get()), 1);
}

TEST_F(PlacesTest, ANetworkThatIsNotOursHasToExistAndRun) {
  EXPECT_THAT(ErrorOf([&] { OpenNetwork(connection, "nowhere", std::nullopt); }),
              HasSubstr("finding network nowhere"));
  NetworkHandle network(virNetworkLookupByName(connection, "default"));
  virNetworkDestroy(network.get());
  EXPECT_THAT(ErrorOf([&] { OpenNetwork(connection, "default", std::nullopt); }),
              HasSubstr("virsh net-start default"));
}

}  // namespace
}  // namespace nodepool::drivers::libvirt
