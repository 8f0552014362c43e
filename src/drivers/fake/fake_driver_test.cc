#include "drivers/fake/fake_driver.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "async/task_group.h"
#include "driver/cloud/testing/provider_fixture.h"
#include "drivers/fake/fake_config.h"

namespace nodepool::drivers {

namespace {

class FakeDriverTest : public driver::cloud::CloudFixture<FakeConfig, FakeLabel> {
 protected:
  FakeDriverTest() : CloudFixture("fake-cloud", "fake") {
    label->cloud_image = "precise";
    label->min_ram = 8192;
    config->cloud = "anything";
    driver::cloud::CloudImage image;
    image.name = "precise";
    image.external_name = "Fake Precise";
    config->cloud_images[image.name] = image;
  }
  void Start() {
    provider = fake.CreateProvider(Environment(), config);
    time.Run(provider->Start());
  }
  FakeCloud& cloud() { return *fake.clouds().Find(config->name); }

  FakeDriver fake;
};

// drivers.md 10.1, D-98
TEST_F(FakeDriverTest, LaunchesAndDeletesASimulatedServer) {
  Start();
  EXPECT_EQ(provider->LabelReady(*label), driver::Readiness::kReady);
  time.Run(LaunchNode());
  EXPECT_EQ(last.state, NodeState::kReady);
  EXPECT_EQ(last.interface_ip, "fake");
  EXPECT_EQ(last.public_ipv4, "fake");
  EXPECT_EQ(last.public_ipv6, "");
  EXPECT_EQ(last.host_id, "fake");
  EXPECT_EQ(last.cloud, "anything");
  EXPECT_EQ(last.host_keys, std::vector<std::string>{"ssh-rsa FAKEKEY"});
  EXPECT_EQ(last.resources, (Resources{{"cores", 4}, {"instances", 1}, {"ram", 8192}}));
  EXPECT_TRUE(last.az == "az1" || last.az == "az2");
  ASSERT_EQ(cloud().servers().size(), 1u);
  EXPECT_EQ(cloud().servers().begin()->second.metadata.at("nodepool_node_id"), last_id.str());
  time.Run(provider->DeleteResources(last_id, last));
  EXPECT_TRUE(cloud().servers().empty());
}

TEST_F(FakeDriverTest, AddressesDependOnTheNetwork) {
  label->networks = {"fake-ipv6-network-name"};
  Start();
  time.Run(LaunchNode());
  EXPECT_EQ(last.public_ipv6, "fake_v6");
  EXPECT_EQ(last.interface_ip, "fake_v6");
  EXPECT_EQ(last.host_id, "fake_host_id");
  label->networks = {"no-auto-ip-network-name"};
  time.Run(LaunchNode());
  EXPECT_EQ(last.public_ipv4, "");
  EXPECT_EQ(last.interface_ip, "fake");
}

TEST_F(FakeDriverTest, WithoutKeyCheckingThereAreNoKeys) {
  label->host_key_checking = false;
  Start();
  time.Run(LaunchNode());
  EXPECT_TRUE(last.host_keys.empty());
}

TEST_F(FakeDriverTest, QuotaIsKnownAndReachingItAborts) {
  config->simulation.limits.instances = 1;
  Start();
  EXPECT_EQ(provider->AvailableQuota().Get("instances"), 1);
  time.Run(LaunchNode());
  try {
    time.Run(LaunchNode());
    FAIL() << "the second node was launched";
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kQuota);
    EXPECT_NE(error.message().find("Quota exceeded"), std::string::npos);
  }
}

TEST_F(FakeDriverTest, VolumesAreCounted) {
  label->boot_from_volume = true;
  label->volume_size = 20;
  Start();
  EXPECT_EQ(provider->QuotaForLabel(*label).resources(),
            (Resources{{"cores", 4}, {"instances", 1}, {"ram", 8192}, {"volumes", 1}, {"volume-gb", 20}}));
}

// A reload may put a label where another one was.
TEST_F(FakeDriverTest, NeedsBelongToLabelsNotToTheirAddresses) {
  Start();
  FakeLabel other = *label;
  other.name = LabelName("other");
  other.boot_from_volume = true;
  other.volume_size = 20;
  EXPECT_EQ(provider->QuotaForLabel(*label).Get("volumes"), 0);
  EXPECT_EQ(provider->QuotaForLabel(other).Get("volumes"), 1);
  std::swap(*label, other);
  EXPECT_EQ(provider->QuotaForLabel(*label).Get("volumes"), 1);
  EXPECT_EQ(provider->QuotaForLabel(other).Get("volumes"), 0);
}

TEST_F(FakeDriverTest, LabelsThatCannotWork) {
  Start();
  label->cloud_image = "unknown";
  EXPECT_EQ(provider->LabelReady(*label), driver::Readiness::kNotReady);
  label->min_ram = 1 << 20;
  EXPECT_THROW(provider->QuotaForLabel(*label), Error);
}

TEST_F(FakeDriverTest, ReconfigurationKeepsServers) {
  Start();
  time.Run(LaunchNode());
  std::unique_ptr<driver::Provider> old = std::move(provider);
  Start();
  time.Run(old->Stop());
  time.Run(provider->DeleteResources(last_id, last));
  EXPECT_TRUE(cloud().servers().empty());
}

// drivers.md 5.10
TEST_F(FakeDriverTest, UploadsAndDeletesImages) {
  auto store = fake.CreateImageStore({time.loop(), random, blocking_pool}, config);
  driver::ImageUploadParameters upload;
  upload.name = "debian-1";
  upload.filename = "/dev/null";
  upload.format = "qcow2";
  upload.metadata = {{"nodepool_build_id", "abc"}, {"number", 1}};
  upload.md5 = "123";
  std::string id = time.Run(store->UploadImage(upload));
  const FakeImage& image = cloud().images().at(id);
  EXPECT_EQ(image.name, "debian-1");
  EXPECT_EQ(image.metadata,
            (std::map<std::string, std::string>{
                {"nodepool_build_id", "abc"}, {"nodepool_provider_name", "fake-cloud"}, {"number", "1"}}));
  EXPECT_EQ(image.file.format, "qcow2");
  EXPECT_EQ(image.file.md5, "123");
  auto tools = fake.CreateOperatorTools({{time.loop(), random, blocking_pool}, this->store}, config);
  std::vector<driver::ListedImage> listed = time.Run(tools->ListImages());
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].id, id);
  time.Run(store->DeleteImage(id));
  EXPECT_TRUE(cloud().images().empty());
  time.Run(store->DeleteImage(id));
}

TEST_F(FakeDriverTest, UploadsAreBoundedInTimeAndNeedAFile) {
  config->simulation.upload_latency = std::chrono::hours(3);
  auto store = fake.CreateImageStore({time.loop(), random, blocking_pool}, config);
  driver::ImageUploadParameters upload;
  upload.filename = "/dev/null";
  upload.timeout = std::chrono::seconds(60);
  EXPECT_THROW(time.Run(store->UploadImage(upload)), Error);
  EXPECT_TRUE(cloud().images().empty());
  upload.filename = "/dev/null/none";
  upload.timeout = std::chrono::hours(4);
  EXPECT_THROW(time.Run(store->UploadImage(upload)), Error);
}

TEST_F(FakeDriverTest, LeakedServerIsRemoved) {
  Start();
  FakeServerRequest request;
  request.flavor = "Fake Flavor";
  request.metadata = {{"nodepool_provider_name", "fake-cloud"}, {"nodepool_node_id", "0000099999"}};
  cloud().CreateServer(request);
  time.Run(provider->CleanupLeakedResources());
  EXPECT_EQ(cloud().servers().size(), 1u);
  time.Run(provider->CleanupLeakedResources());
  EXPECT_TRUE(cloud().servers().empty());
}

TEST_F(FakeDriverTest, AReadyNodeWhoseServerWasTakenAwayIsDeleted) {
  Start();
  time.Run(LaunchNode());
  cloud().TakeAway(cloud().servers().begin()->first);
  time.Run(provider->CleanupLeakedResources());
  EXPECT_EQ(time.Run(store.nodes.Read(last_id))->record.state, NodeState::kReady);
  time.Run(provider->CleanupLeakedResources());
  EXPECT_EQ(time.Run(store.nodes.Read(last_id))->record.state, NodeState::kDeleting);
}

// Four writes for a node: create, lock with `building`, external_id, `ready`; one
// more to unlock it.
TEST_F(FakeDriverTest, AThousandLaunchesCostFiveWritesEach) {
  config->simulation.create_latency = Duration::zero();
  config->simulation.limits = {.cores = 1e6, .instances = 1e6, .ram = 1e9, .volumes = 1e6, .volume_gb = 1e6};
  Start();
  SteadyTime start = time.loop().SteadyNow();
  time.Run(LaunchNode());
  std::uint64_t before = zk.counters(*client).writes;
  constexpr int kCount = 1000;
  TaskGroup group(time.loop(), log::Logger("test.fake"));
  for (int i = 0; i < kCount; ++i) group.Spawn("launch", LaunchNode());
  ASSERT_TRUE(time.RunUntil([&] { return group.size() == 0; }));
  EXPECT_EQ(cloud().servers().size(), kCount + 1u);
  EXPECT_EQ(zk.counters(*client).writes - before, 5u * kCount);
  EXPECT_EQ(time.loop().SteadyNow(), start) << "zero latency needs no time";
}

// D-81
TEST_F(FakeDriverTest, ATestInAnotherProcessControlsTheCloud) {
  Start();
  auto ask = [this](std::string method, std::string path, std::string body = "") {
    net::HttpRequest request;
    request.method = std::move(method);
    request.path = std::move(path);
    request.body = std::move(body);
    return time.Run(FakeControl::Answer(cloud(), std::move(request)));
  };
  EXPECT_EQ(ask("PUT", "/settings", R"({"create-latency": 2.5, "limits": {"instances": 1}})").status, 200);
  EXPECT_EQ(cloud().settings().create_latency, std::chrono::milliseconds(2500));
  EXPECT_EQ(cloud().settings().limits.instances, 1);
  boost::json::value settings = boost::json::parse(ask("GET", "/settings").body);
  EXPECT_EQ(settings.at("create-latency").to_number<double>(), 2.5);
  EXPECT_EQ(settings.at("limits").at("instances").to_number<double>(), 1);

  EXPECT_EQ(ask("POST", "/faults", R"({"creates": 2})").status, 200);
  time.Run(LaunchNode());
  boost::json::value servers = boost::json::parse(ask("GET", "/servers").body);
  ASSERT_EQ(servers.as_array().size(), 1u) << "the third attempt";
  EXPECT_EQ(servers.at(0).at("status"), "ACTIVE");
  EXPECT_EQ(servers.at(0).at("metadata").at("nodepool_node_id"), boost::json::value(last_id.str()));
  std::string path = "/servers/" + std::string(servers.at(0).at("id").as_string());
  EXPECT_EQ(ask("DELETE", path).status, 200);
  EXPECT_EQ(ask("DELETE", path).status, 404);
  EXPECT_EQ(ask("GET", "/servers").body, "[]");
  EXPECT_NE(ask("GET", "/images").body.find("Fake Precise"), std::string::npos);

  for (const char* wrong : {"", "[]", R"({"create-latency": -1})", R"({"create-latency": "x"})",
                            R"({"colour": 1})", R"({"limits": {"create-latency": 1}})"})
    EXPECT_EQ(ask("PUT", "/settings", wrong).status, 400) << wrong;
  EXPECT_EQ(ask("POST", "/faults", R"({"creates": 1e99})").status, 400);
  EXPECT_EQ(ask("GET", "/nothing").status, 404);
}

}  // namespace

}  // namespace nodepool::drivers
