#include "drivers/fake/fake_cloud.h"

#include <gtest/gtest.h>

#include <fstream>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "base/error.h"
#include "base/testing/test_environment.h"

namespace nodepool::drivers {

namespace {

using std::chrono::seconds;

class FakeCloudTest : public ::testing::Test {
 protected:
  FakeServerRequest Request() {
    FakeServerRequest request;
    request.name = "np0000000001";
    request.flavor = "Fake Flavor";
    request.metadata = {{"key", "value"}};
    return request;
  }
  Verdict CreateFails(FakeServerRequest request) {
    try {
      cloud.CreateServer(std::move(request));
    } catch (const Error& error) {
      return error.verdict();
    }
    ADD_FAILURE() << "the server was created";
    return Verdict::kFail;
  }

  static Task<> ExpectUploading(FakeCloud& cloud, std::string image) {
    EXPECT_FALSE(cloud.images().at(image).is_active);
    EXPECT_FALSE(cloud.HasImage(image));
    co_return;
  }

  testing::VirtualTime time;
  SeededRandom random{1};
  FakeCloud cloud{time.loop(), random, FakeSimulation()};
};

// drivers.md 10.1
TEST_F(FakeCloudTest, ServerIsActiveAfterTheLatency) {
  std::string id = cloud.CreateServer(Request());
  EXPECT_EQ(cloud.servers().at(id).status, FakeServerStatus::kBuild);
  SteadyTime start = time.loop().SteadyNow();
  FakeServer server = time.Run(cloud.WaitActive(id));
  EXPECT_EQ(time.loop().SteadyNow() - start, std::chrono::milliseconds(100));
  EXPECT_EQ(server.status, FakeServerStatus::kActive);
  EXPECT_EQ(server.metadata, Request().metadata);
  EXPECT_EQ(server.zone, "az1");
  time.Run(cloud.DeleteServer(id));
  EXPECT_TRUE(cloud.servers().empty());
  EXPECT_THROW(time.Run(cloud.DeleteServer(id)), Error);
}

TEST_F(FakeCloudTest, WrongRequestsAreRefused) {
  FakeServerRequest request = Request();
  request.flavor = "Huge";
  EXPECT_EQ(CreateFails(request), Verdict::kInvalid);
  request = Request();
  request.zone = "az9";
  EXPECT_EQ(CreateFails(request), Verdict::kInvalid);
  request = Request();
  request.image = "Windows";
  EXPECT_EQ(CreateFails(request), Verdict::kInvalid);
  request = Request();
  request.should_fail = true;
  EXPECT_EQ(CreateFails(request), Verdict::kFail);
  EXPECT_TRUE(cloud.servers().empty());
}

TEST_F(FakeCloudTest, LimitsAreEnforcedUntilSomethingIsDeleted) {
  FakeSimulation small;
  small.limits.instances = 1;
  cloud.Configure(small);
  std::string id = cloud.CreateServer(Request());
  EXPECT_EQ(CreateFails(Request()), Verdict::kQuota);
  time.Run(cloud.DeleteServer(id));
  cloud.CreateServer(Request());
  small.quota_error = false;
  cloud.Configure(small);
  cloud.CreateServer(Request());
  EXPECT_EQ(cloud.servers().size(), 2u);
}

TEST_F(FakeCloudTest, ADirectoryIsSharedAndOutlivesTheCloud) {
  testing::TemporaryFolder temporary;
  const std::string& folder = temporary.path();
  FakeSimulation shared;
  shared.directory = folder + "/cloud";
  shared.limits.instances = 1;
  std::string server, image;
  {
    FakeCloud one(time.loop(), random, shared);
    server = one.CreateServer(Request());
    image = one.UploadImage("debian", {{"a", "b"}}, {.format = "raw", .size = 7, .md5 = "123"});
  }
  FakeCloud two(time.loop(), random, shared);
  FakeCloud three(time.loop(), random, shared);
  EXPECT_EQ(two.servers().at(server).metadata, Request().metadata);
  EXPECT_EQ(two.servers().at(server).flavor.vcpus, 4);
  EXPECT_EQ(two.images().at(image).name, "debian");
  EXPECT_EQ(two.images().at(image).file.size, 7u);
  EXPECT_EQ(two.images().at(image).file.md5, "123");
  EXPECT_EQ(two.images().at(image).file.sha256, std::nullopt);
  EXPECT_TRUE(three.HasImage(image));
  EXPECT_THROW(three.CreateServer(Request()), Error) << "the limit counts everybody's servers";
  time.Run(two.DeleteServer(server));
  time.Run(two.DeleteImage(image));
  EXPECT_TRUE(three.servers().empty());
  EXPECT_TRUE(three.images().empty());
  three.CreateServer(Request());
  std::ofstream(folder + "/cloud/garbage") << "{";
  EXPECT_EQ(two.servers().size(), 1u);
}

TEST_F(FakeCloudTest, AnImageSeenDuringItsUploadIsSeenToBeThereAfterIt) {
  testing::TemporaryFolder temporary;
  const std::string& folder = temporary.path();
  FakeSimulation shared;
  shared.directory = folder + "/cloud";
  FakeCloud uploading(time.loop(), random, shared);
  FakeCloud reader(time.loop(), random, shared);
  auto announce = [&](std::string id) { return ExpectUploading(reader, std::move(id)); };
  std::string image = time.Run(uploading.UploadImage({.name = "debian"}, announce));
  EXPECT_TRUE(reader.HasImage(image));
}

TEST_F(FakeCloudTest, ADirectoryThatCannotBeMadeIsAFaultThatNamesIt) {
  FakeSimulation broken;
  broken.directory = "/proc/nodepool-cloud";
  try {
    cloud.Configure(broken);
    FAIL() << "it was made";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("/proc/nodepool-cloud"), std::string::npos);
  }
}

TEST_F(FakeCloudTest, SwitchesForTests) {
  cloud.FailNextCreates(1);
  EXPECT_EQ(CreateFails(Request()), Verdict::kFail);
  cloud.FailNextCreatesWithServer(1);
  std::string broken = cloud.CreateServer(Request());
  EXPECT_THROW(time.Run(cloud.WaitActive(broken)), Error);
  cloud.FailNextDeletes(1);
  EXPECT_THROW(time.Run(cloud.DeleteServer(broken)), Error);
  time.Run(cloud.DeleteServer(broken));
  EXPECT_EQ(cloud.created_count(), 1u);
  EXPECT_EQ(cloud.deleted_count(), 1u);
}

Task<> WaitAndCount(FakeCloud& cloud, std::string id, int& active) {
  co_await cloud.WaitActive(std::move(id));
  ++active;
}

TEST_F(FakeCloudTest, PausedCreationsStayInBuild) {
  cloud.PauseCreates();
  int active = 0;
  TaskGroup group(time.loop(), log::Logger("test.fake"));
  group.Spawn("wait", WaitAndCount(cloud, cloud.CreateServer(Request()), active));
  time.Advance(seconds(60));
  EXPECT_EQ(active, 0);
  cloud.ResumeCreates();
  time.Advance(seconds(1));
  EXPECT_EQ(active, 1);
}

TEST_F(FakeCloudTest, HangingServerEndsByItsDeletion) {
  cloud.HangNextCreates(1);
  int active = 0;
  TaskGroup group(time.loop(), log::Logger("test.fake"));
  std::string id = cloud.CreateServer(Request());
  group.Spawn("wait", WaitAndCount(cloud, id, active));
  time.Advance(std::chrono::hours(10));
  EXPECT_EQ(group.size(), 1u);
  time.Run(cloud.DeleteServer(id));
  time.Advance(seconds(1));
  EXPECT_EQ(group.size(), 0u);
  EXPECT_EQ(active, 0);
}

TEST_F(FakeCloudTest, FailureRateRepeatsWithItsSeed) {
  FakeSimulation shaky;
  shaky.create_failure_rate = 0.5;
  shaky.seed = 42;
  shaky.limits.instances = 1000;
  shaky.limits.cores = 1e6;
  shaky.limits.ram = 1e9;
  std::vector<std::string> runs;
  for (int run = 0; run < 2; ++run) {
    FakeCloud other(time.loop(), random, shaky);
    std::string outcome;
    for (int i = 0; i < 100; ++i) {
      try {
        other.CreateServer(Request());
        outcome += '+';
      } catch (const Error&) {
        outcome += '-';
      }
    }
    EXPECT_GT(other.servers().size(), 20u);
    EXPECT_LT(other.servers().size(), 80u);
    runs.push_back(outcome);
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST_F(FakeCloudTest, UploadsTakeTimeAndMayFail) {
  FakeSimulation slow;
  slow.upload_latency = std::chrono::seconds(5);
  FakeCloud cloud(time.loop(), random, slow);
  SteadyTime start = time.loop().SteadyNow();
  FakeImage image{.id = "", .name = "debian"};
  std::string announced;
  auto announce = [&](const std::string& id) {
    announced = id;
    EXPECT_FALSE(cloud.HasImage(id)) << "no machine boots from half of it";
    return time.loop().SleepFor({});
  };
  std::string id = time.Run(cloud.UploadImage(image, announce));
  EXPECT_EQ(announced, id);
  EXPECT_EQ(time.loop().SteadyNow() - start, slow.upload_latency);
  EXPECT_TRUE(cloud.HasImage(id));
  cloud.FailNextUploads(1);
  EXPECT_THROW(time.Run(cloud.UploadImage(image, announce)), Error);
  EXPECT_EQ(cloud.images().size(), 1u);
  cloud.FailNextImageDeletes(1);
  EXPECT_THROW(time.Run(cloud.DeleteImage(id)), Error);
  time.Run(cloud.DeleteImage(id));
  time.Run(cloud.DeleteImage(id));
  EXPECT_FALSE(cloud.HasImage(id));
}

TEST_F(FakeCloudTest, CloudsAreSharedByProviderName) {
  FakeClouds clouds;
  EXPECT_EQ(clouds.Find(ProviderName("a")), nullptr);
  FakeCloud& cloud = clouds.Of(ProviderName("a"), time.loop(), random, FakeSimulation());
  std::string image = cloud.UploadImage("debian", {});
  FakeSimulation changed;
  changed.limits.instances = 3;
  FakeCloud& again = clouds.Of(ProviderName("a"), time.loop(), random, changed);
  EXPECT_EQ(&again, &cloud);
  EXPECT_TRUE(again.HasImage(image));
  EXPECT_EQ(again.settings().limits.instances, 3);
  EXPECT_NE(&clouds.Of(ProviderName("b"), time.loop(), random, changed), &cloud);
}

}  // namespace

}  // namespace nodepool::drivers
