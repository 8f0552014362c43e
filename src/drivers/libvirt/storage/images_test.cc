#include "drivers/libvirt/storage/images.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "drivers/libvirt/machine/machine_fixture_for_test.h"
#include "drivers/libvirt/storage/boot_image.h"

namespace nodepool::drivers::libvirt {

namespace {

using driver::Readiness;
using driver::testing::Recorder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class UploadTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    file_ = ::testing::TempDir() + "libvirt_upload_" + std::to_string(getpid());
    std::ofstream(file_) << "image";
  }
  void TearDown() override {
    std::filesystem::remove(file_);
    MachineTest::TearDown();
  }
  Task<std::string> Upload(std::string sha256 = "5e") {
    driver::ImageUploadParameters upload;
    upload.filename = file_;
    upload.format = "raw";
    upload.sha256 = std::move(sha256);
    upload.metadata = {{"nodepool_build_id", "0000000003"}, {"nodepool_upload_id", "0000000001"}};
    upload.announce = [this](std::string id) { return Note(std::move(id)); };
    return adapter->UploadImage(std::move(upload));
  }
  Task<> Note(std::string id) {
    announced_ = std::move(id);
    volumes_then_ = Fake().volumes.size();
    co_return;
  }

  std::string file_;
  std::string announced_;
  std::size_t volumes_then_ = 0;
};

constexpr const char* kUpload = "np.here.image.0000000003.0000000001.raw";

// LV-18
TEST_F(UploadTest, AnImageGoesToEveryHostUnderOneName) {
  AddHost("b");
  Start();
  EXPECT_EQ(time.Run(Upload()), kUpload);
  EXPECT_EQ(announced_, kUpload);
  EXPECT_EQ(volumes_then_, 1u) << "the id is known before the volume exists";
  for (const char* host : {"a", "b"}) {
    EXPECT_EQ(Fake(host).volumes.at(kUpload).capacity, 5u) << host;
    EXPECT_EQ(Fake(host).contents.at(kUpload), file_) << host;
  }
  EXPECT_EQ(time.Run(adapter->ListImages()).size(), 1u);
}

// LV-18, LV-19
TEST_F(UploadTest, AWrongChecksumFailsAndLeavesNothing) {
  Start();
  auto outcome = time.Run(Attempt(Upload("00")));
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message(), HasSubstr("has the SHA-256 5e, but its build has 00"));
  EXPECT_FALSE(Fake().volumes.contains(kUpload));
}

// LV-19
TEST_F(UploadTest, WhatAnEarlierTryHasLeftIsReplaced) {
  Start();
  Fake().AddVolume({kUpload, "/p", "raw", 1, 1, ""});
  time.Run(Upload());
  EXPECT_EQ(Fake().volumes.at(kUpload).capacity, 5u);
}

// LV-37
TEST_F(UploadTest, AMachineOfARawImageIsRawWhateverItBeginsWith) {
  Start();
  time.Run(Upload());
  Fake().volumes.at(kUpload).format = "qcow2";
  label->cloud_image = std::nullopt;
  label->diskimage = ImageName("d");
  label->disk = 10;
  Recorder machine;
  auto parameters = Parameters("0000000042");
  parameters.image_external_id = kUpload;
  time.Run(adapter->Create(machine, std::move(parameters)));
  EXPECT_THAT(Fake().domains.begin()->second, HasSubstr("<format type=\"raw\" />"));
}

class CopyTest : public UploadTest {
 protected:
  void SetUp() override {
    UploadTest::SetUp();
    AddHost("b");
    label->cloud_image = std::nullopt;
    label->diskimage = ImageName("d");
    label->disk = 10;
    label->vcpus = 4;
  }
  // Host b was away during the upload.
  void UploadWithoutB() {
    Start();
    Fake("b").Break("libvirtd has closed the connection");
    time.Run(Upload());
    Fake("b").is_reachable = true;
    time.Advance(std::chrono::minutes(2));
    EXPECT_FALSE(Fake("b").volumes.contains(kUpload));
  }
  Task<driver::cloud::Instance> Machine(Recorder& machine, std::string node) {
    auto parameters = Parameters(node);
    parameters.image_external_id = kUpload;
    return adapter->Create(machine, std::move(parameters));
  }
};

// LV-23
TEST_F(CopyTest, AHostThatLacksAnImageGetsItOnce) {
  UploadWithoutB();
  std::vector<Recorder> machines(4);
  TaskGroup group(time.loop(), log::Logger("test"));
  auto drop = [](Task<driver::cloud::Instance> creation) -> Task<> { co_await std::move(creation); };
  for (std::size_t i = 0; i < machines.size(); ++i) {
    group.Spawn("creation", drop(Machine(machines[i], fmt::format("000000000{}", i))));
  }
  ASSERT_TRUE(time.RunUntil([&] { return group.size() == 0; }, std::chrono::minutes(10)));
  EXPECT_EQ(Fake("b").copies, 1);
  EXPECT_EQ(Fake("b").contents.at(kUpload), file_);
  EXPECT_FALSE(Fake("b").volumes.contains(std::string(kUpload) + ".unfinished"));
  EXPECT_EQ(Fake("a").domains.size(), 2u) << "those come first that have it";
  EXPECT_EQ(Fake("b").domains.size(), 2u);
}

// LV-23
TEST_F(CopyTest, WhatACopyHasLeftIsNotTakenForTheImage) {
  UploadWithoutB();
  label->host = "b";
  Fake("b").fails_transfers = true;
  Recorder first, second;
  EXPECT_TRUE(FailedWith(time.Run(Attempt(Machine(first, "0000000001")), kLong), Verdict::kRetry));
  EXPECT_THAT(Fake("b").domains, ::testing::IsEmpty());
  Fake("b").fails_transfers = false;
  time.Run(Machine(second, "0000000002"), kLong);
  EXPECT_EQ(Fake("b").contents.at(kUpload), file_);
  EXPECT_EQ(Fake("b").domains.size(), 1u);
}

// LV-23
TEST_F(CopyTest, AnUploadGoesOnWithoutAHostThatIsLost) {
  Start();
  Fake("b").fails_transfers = true;
  EXPECT_EQ(time.Run(Upload()), kUpload);
  EXPECT_FALSE(Fake("b").volumes.contains(kUpload));
  Fake("a").fails_transfers = true;
  auto outcome = time.Run(Attempt(Upload()));
  EXPECT_TRUE(FailedWith(outcome, Verdict::kRetry)) << "no host has it";
  EXPECT_FALSE(Fake("a").volumes.contains(kUpload));
  EXPECT_FALSE(Fake("b").volumes.contains(std::string(kUpload) + ".unfinished"));
}

// LV-20
TEST_F(UploadTest, AnImageIsNotDeletedWhileSomethingIsBackedByIt) {
  Start();
  time.Run(Upload());
  Fake().AddVolume({"by-hand.qcow2", "/p", "qcow2", 1, 1, "/pool/" + std::string(kUpload)});
  auto outcome = time.Run(Attempt(adapter->DeleteImage(kUpload)));
  EXPECT_TRUE(FailedWith(outcome, Verdict::kRetry));
  EXPECT_THAT(outcome.error().message(), HasSubstr("is in use by by-hand.qcow2"));
  Fake().volumes.erase("by-hand.qcow2");
  time.Run(adapter->DeleteImage(kUpload));
  time.Run(adapter->DeleteImage(kUpload));
  time.Run(adapter->DeleteImage("debian.qcow2"));
  EXPECT_FALSE(Fake().volumes.contains(kUpload));
  EXPECT_TRUE(Fake().volumes.contains("debian.qcow2")) << "not uploaded by us";
}

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
