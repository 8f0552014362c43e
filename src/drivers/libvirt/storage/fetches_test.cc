#include "drivers/libvirt/storage/fetches.h"

#include "drivers/libvirt/machine/machine_fixture_for_test.h"

namespace nodepool::drivers::libvirt {
namespace {

using driver::Readiness;
using driver::testing::Recorder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kFetched = "np.here.cloud.5e.qcow2";

class FetchTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    LibvirtCloudImage& image = config->cloud_images["debian"];
    image.external_name = kFetched;
    image.format = "qcow2";
    image.origin = ImageOrigin{"https://images.example.org/debian.qcow2", "sha256", "5e"};
  }
  bool IsReady() { return adapter->LabelReady(*label) == Readiness::kReady; }
};

// LV-22
TEST_F(FetchTest, AnImageIsFetchedOnceForEachHostAndThenItsLabelIsReady) {
  AddHost("b");
  Start();
  EXPECT_FALSE(IsReady());
  ASSERT_TRUE(time.RunUntil([&] { return IsReady(); }, std::chrono::minutes(5)));
  EXPECT_GT(framework.capacity, 0);
  EXPECT_EQ(adapter->QuotaForLabel(*label).Get("volume-gb"), 3);
  Recorder machine;
  Create(machine);
  time.Advance(std::chrono::minutes(10));
  time.Run(adapter->QuotaLimits());
  time.Advance(std::chrono::minutes(10));
  EXPECT_EQ(Fake("a").fetches, 1);
  EXPECT_EQ(Fake("b").fetches, 1);
  EXPECT_FALSE(Fake("a").volumes.contains(std::string(kFetched) + ".unfinished"));
}

// LV-22
TEST_F(FetchTest, AWrongChecksumLeavesNothingAndIsTriedAgainAfterFiveMinutes) {
  prepare = [](testing::FakeHypervisor& host) { host.checksum = "00"; };
  Start();
  time.Advance(std::chrono::minutes(2));
  time.Run(adapter->QuotaLimits());
  time.Advance(std::chrono::minutes(2));
  EXPECT_FALSE(IsReady());
  EXPECT_EQ(Fake().fetches, 1);
  EXPECT_EQ(Fake().volumes.size(), 1u);
  Fake().checksum = "5e";
  time.Advance(std::chrono::minutes(5));
  time.Run(adapter->QuotaLimits());
  EXPECT_TRUE(time.RunUntil([&] { return IsReady(); }, std::chrono::minutes(5)));
}

// LV-22
TEST_F(FetchTest, WhatAKilledLauncherHasLeftIsFetchedAgain) {
  prepare = [](testing::FakeHypervisor& host) {
    host.AddVolume({kFetched, "/pool/half", "raw", kGibibyte, kGibibyte / 2, ""});
    host.AddVolume({std::string(kFetched) + ".unfinished", "/pool/mark", "raw", 0, 0, ""});
  };
  Start();
  EXPECT_FALSE(IsReady()) << "half an image is none";
  EXPECT_TRUE(time.RunUntil([&] { return IsReady(); }, std::chrono::minutes(10)));
  EXPECT_EQ(Fake().fetches, 1);
  EXPECT_EQ(Fake().contents.at(kFetched), "https://images.example.org/debian.qcow2");
}

// LV-22
TEST_F(FetchTest, AnImageThatTheConfigurationNoLongerHasIsDeletedWhenNothingRunsFromIt) {
  const std::string old = "np.here.cloud.0123456789abcdef.qcow2", half = "np.here.cloud.00112233445566ff.raw";
  const std::string other = "np.there.cloud.0123456789abcdef.qcow2";
  Start();
  ASSERT_TRUE(time.RunUntil([&] { return IsReady(); }, std::chrono::minutes(5)));
  for (const std::string& name : {old, other, half + ".unfinished"}) {
    Fake().AddVolume({name, "/pool/" + name, "qcow2", 1, 1, ""});
  }
  Fake().AddVolume({"np.here.node.0000000007.0a1b2c3d.root", "/p", "qcow2", 1, 1, "/pool/" + old});
  auto pass = [this](Duration duration) {
    time.Advance(duration);
    time.Run(adapter->ListResources());
  };
  pass({});
  pass(std::chrono::hours(1));
  EXPECT_TRUE(Fake().volumes.contains(half + ".unfinished")) << "another process may be fetching it";
  pass(std::chrono::hours(1));
  EXPECT_FALSE(Fake().volumes.contains(half + ".unfinished"));
  EXPECT_TRUE(Fake().volumes.contains(old)) << "a machine runs from it";
  Fake().volumes.erase("np.here.node.0000000007.0a1b2c3d.root");
  pass(std::chrono::minutes(1));
  EXPECT_FALSE(Fake().volumes.contains(old));
  EXPECT_TRUE(Fake().volumes.contains(other)) << "of another provider";
  EXPECT_TRUE(Fake().volumes.contains("np.here.cloud.5e.qcow2"));
}

}  // namespace
}  // namespace nodepool::drivers::libvirt
