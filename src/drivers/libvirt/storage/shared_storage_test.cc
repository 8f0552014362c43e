#include "drivers/libvirt/storage/shared_storage.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "drivers/libvirt/machine/machine_fixture_for_test.h"

namespace nodepool::drivers::libvirt {
namespace {

using driver::testing::Recorder;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Hosts a and b have one storage pool, c another one; each pool has 100 GiB.
class SharedStorageTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    AddHost("b");
    AddHost("c");
    prepare = [](testing::FakeHypervisor& host) {
      host.space = {std::uint64_t{100} << 30, std::uint64_t{100} << 30};
      host.size.shared_storage = "netfs nfs:/jobs";
    };
    Start(false);
    Fake("c").size.shared_storage = "netfs nfs:/other";
    time.Run(adapter->QuotaLimits());
  }
};

// driver-libvirt.md 12.1
TEST_F(SharedStorageTest, CountsOnce) {
  EXPECT_EQ(time.Run(adapter->QuotaLimits()).Get("volume-gb"), 180) << "90 % of two pools";
  EXPECT_EQ(time.Run(adapter->QuotaLimits()).Get("cores"), 24);
}

// driver-libvirt.md 13.2
TEST_F(SharedStorageTest, IsFullForAllHostsThatHaveIt) {
  label->vcpus = 1;
  label->disk = 80;
  label->host = "a";
  Recorder first;
  Create(first, "0000000001");
  label->host = "b";
  EXPECT_THAT(CreateFails("0000000002").message(), HasSubstr("b: 10 of 90 GiB of disk free, needs 80"));
  label->host = "c";
  Recorder third;
  EXPECT_EQ(Create(third, "0000000003").host_id, "c");
}

// driver-libvirt.md 12.1
TEST_F(SharedStorageTest, GetsAnImageOnce) {
  std::string file = ::testing::TempDir() + "libvirt_shared_" + std::to_string(getpid());
  std::ofstream(file) << "image";
  driver::ImageUploadParameters upload;
  upload.filename = file;
  upload.format = "raw";
  upload.metadata = {{"nodepool_build_id", "0000000003"}, {"nodepool_upload_id", "0000000001"}};
  upload.announce = [](std::string) -> Task<> { co_return; };
  std::string volume = time.Run(adapter->UploadImage(std::move(upload)));
  std::filesystem::remove(file);
  EXPECT_TRUE(Fake("a").volumes.contains(volume));
  EXPECT_FALSE(Fake("b").volumes.contains(volume)) << "what a has is on b, too";
  EXPECT_TRUE(Fake("c").volumes.contains(volume));
}

}  // namespace
}  // namespace nodepool::drivers::libvirt
