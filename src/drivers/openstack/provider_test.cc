// Quota, look-ups and leaks.
#include "base/json_fields.h"
#include "drivers/openstack/openstack_fixture_for_test.h"

namespace nodepool::drivers::openstack {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

TEST_F(OpenstackTest, QuotaIsTheLimitMinusForeignUse) {
  imposter.AddServer({{"owner", "other"}});
  Start();
  driver::QuotaInformation quota = provider->AvailableQuota();
  EXPECT_EQ(quota.Get("instances"), 9);
  EXPECT_EQ(quota.Get("cores"), 39);
  EXPECT_EQ(quota.Get("ram"), 81920 - 2048);
  EXPECT_EQ(quota.Get("volumes"), 20);
  EXPECT_EQ(quota.Get("volume-gb"), driver::kUnlimited) << "-1 means unlimited";
}

TEST_F(OpenstackTest, WithoutBlockStorageThereAreNoVolumes) {
  imposter.has_volumes = false;
  Start();
  EXPECT_EQ(provider->AvailableQuota().Get("volumes"), 0);
  EXPECT_EQ(provider->AvailableQuota().Get("instances"), 10);
}

// D-91
TEST_F(OpenstackTest, AServerOfAnUnknownFlavorCountsAsOne) {
  std::string id = imposter.AddServer({});
  imposter.servers[id].record["flavor"] = boost::json::object{{"id", "withdrawn"}};
  log::Capture capture;
  Start();
  EXPECT_EQ(provider->AvailableQuota().Get("instances"), 9);
  EXPECT_EQ(provider->AvailableQuota().Get("cores"), 40);
  provider->InvalidateQuota();
  time.Advance(10s);
  EXPECT_EQ(capture.Count("withdrawn"), 1);
}

TEST_F(OpenstackTest, SizesAreReadInEveryMicroversion) {
  std::string id = imposter.AddServer({});
  imposter.servers[id].record["flavor"] =
      boost::json::object{{"original_name", "gone"}, {"vcpus", 8}, {"ram", 1024}};
  Start();
  EXPECT_EQ(provider->AvailableQuota().Get("cores"), 32);
}

// D-91, D-26: the label fails alone, and heals when the flavor appears.
TEST_F(OpenstackTest, ALabelWithoutFlavorIsInError) {
  label->flavor_name = "m9.none";
  Start();
  EXPECT_THROW(provider->QuotaForLabel(*label), Error);
  EXPECT_EQ(provider->LabelReady(*label), driver::Readiness::kNotReady);
  label->flavor_name = "m1.small";
  time.Advance(6min);
  EXPECT_EQ(provider->QuotaForLabel(*label).Get("cores"), 1);
  EXPECT_EQ(provider->LabelReady(*label), driver::Readiness::kReady);
}

// A reload may put a label where another one was.
TEST_F(OpenstackTest, NeedsAndFaultsBelongToLabelsNotToTheirAddresses) {
  Start();
  OpenstackLabel broken = *label;
  broken.name = LabelName("broken");
  broken.flavor_name = "m9.none";
  EXPECT_EQ(provider->QuotaForLabel(*label).Get("cores"), 1);
  EXPECT_THROW(provider->QuotaForLabel(broken), Error);
  std::swap(*label, broken);
  EXPECT_THROW(provider->QuotaForLabel(*label), Error);
  EXPECT_EQ(provider->LabelReady(*label), driver::Readiness::kNotReady);
  EXPECT_EQ(provider->QuotaForLabel(broken).Get("cores"), 1);
}

TEST_F(OpenstackTest, NothingIsWrongWithWhatTheCloudHas) {
  label->networks = {"public"};
  Start();
  EXPECT_THAT(time.Run(adapter->FindFaults(*config)), ElementsAre());
  EXPECT_EQ(imposter.Count("POST", "/compute/v2.1/servers"), 0);
}

TEST_F(OpenstackTest, WhatTheCloudLacksIsNamed) {
  label->flavor_name = "m9.none";
  label->networks = {"nowhere"};
  config->cloud_images["debian"].external_name = "debain";
  Start();
  EXPECT_THAT(
      time.Run(adapter->FindFaults(*config)),
      ElementsAre("Unable to find flavor: m9.none (label small); the cloud has: m1.small, m1.large",
                  "the cloud has no active image debain", "Unable to find network nowhere in cloud vendor"));
}

TEST_F(OpenstackTest, ACloudThatRefusesTheLoginCannotBeUsed) {
  config->cloud_config.credentials.options["password"] = "wrong-password";
  Start();
  EXPECT_THROW(time.Run(adapter->FindFaults(*config)), Error);
}

TEST_F(OpenstackTest, AnImageThatIsNamedByItsId) {
  config->cloud_images["debian"].external_name = imposter.images.begin()->first;
  config->cloud_images["debian"].is_id = true;
  Start();
  Launch();
  EXPECT_EQ(TextIn(LastServerRequest(), "imageRef"), imposter.images.begin()->first);
  EXPECT_EQ(imposter.Counts().count("GET /image/v2/images"), 0u);
}

// Servers without a record are removed in the second sweep; O-leak-server.
TEST_F(OpenstackTest, LeakedServersAreRemoved) {
  Start();
  Launch();
  imposter.AddServer({{"nodepool_provider_name", "cloud"}, {"nodepool_node_id", "0000009999"}});
  imposter.AddServer({{"nodepool_provider_name", "other"}, {"nodepool_node_id", "0000009999"}});
  imposter.AddServer({});
  time.Advance(60s);
  time.Run(provider->CleanupLeakedResources());
  EXPECT_EQ(leaks.size(), 0u);
  time.Advance(60s);
  time.Run(provider->CleanupLeakedResources());
  EXPECT_THAT(leaks, ElementsAre("1 instances"));
  time.Advance(60s);
  time.Run(provider->CleanupLeakedResources());
  EXPECT_EQ(imposter.Counts()["DELETE /compute/v2.1/servers/ID"], 1);
}

// The list says it, so nothing is looked at twice.
// TAKE-2
TEST_F(OpenstackTest, AReadyNodeWhoseServerIsShutOffIsDeletedAtTheFirstCheck) {
  Start();
  Launch();
  auto state = [this] { return time.Run(store.nodes.Read(last_id))->record.state; };
  time.Advance(60s);
  time.Run(provider->CleanupLeakedResources());
  EXPECT_EQ(state(), NodeState::kReady);
  imposter.servers.begin()->second.record["status"] = "SHUTOFF";
  time.Advance(60s);
  time.Run(provider->CleanupLeakedResources());
  EXPECT_EQ(state(), NodeState::kDeleting);
}

// D-69
TEST_F(OpenstackTest, OldMarksCountForQuotaAndRarelyForLeaks) {
  Start();
  Launch();
  std::string old = R"({"provider_name": "cloud", "node_id": ")" + last_id.value + R"("})";
  imposter.AddServer({{"nodepool", old}});
  imposter.AddServer({{"nodepool", R"({"provider_name": "cloud", "node_id": "0000009999"})"}});
  imposter.AddServer({{"nodepool", R"({"provider_name": "cloud", "node_id": 17})"}});
  imposter.AddServer({{"nodepool", R"({"provider_name": "other", "node_id": "0000009999"})"}});
  imposter.AddServer({{"nodepool", "no JSON"}});
  time.Advance(10s);
  provider->InvalidateQuota();
  time.Advance(60s);
  EXPECT_EQ(provider->AvailableQuota().Get("instances"), 6) << "one of the five belongs to a node";
  auto sweep_twice = [&] {
    for (int i = 0; i < 2; ++i) {
      time.Run(provider->CleanupLeakedResources());
      time.Advance(60s);
    }
  };
  sweep_twice();
  EXPECT_EQ(leaks.size(), 0u);
  config->deletes_legacy_leaked = true;
  sweep_twice();
  // The server of a living node whose record names another server, and the server without a node.
  EXPECT_THAT(leaks, ElementsAre("2 instances"));
}

// operations.16.26: marks of the SQL era name their node by a number.
TEST_F(OpenstackTest, OldMarksNameTheirNodeByANumber) {
  Start();
  Launch();
  int node = std::stoi(last_id.value);
  auto mark = [](const std::string& id) { return R"({"provider_name": "cloud", "node_id": )" + id + "}"; };
  for (const std::string& id : {std::to_string(node), '"' + std::to_string(node) + '"'}) {
    imposter.AddServer({{"nodepool", mark(id)}});
  }
  imposter.AddServer({{"nodepool", mark("99999")}});
  std::string unreadable = imposter.AddServer({{"nodepool", "no JSON"}});
  imposter.AddServer({{"nodepool", "[1]"}});
  log::Capture capture;
  auto read_quota = [&] {
    time.Advance(10s);
    provider->InvalidateQuota();
    time.Advance(60s);
    return provider->AvailableQuota().Get("instances");
  };
  EXPECT_EQ(read_quota(), 7) << "the node's three servers are ours";
  EXPECT_EQ(read_quota(), 7);
  EXPECT_EQ(capture.Count("not a JSON object"), 2) << "once for each";
  EXPECT_EQ(capture.Count("Server " + unreadable), 1);
}

// LA-90, D-96, O-leak-ports: only ports that stay down, and only of our project.
TEST_F(OpenstackTest, LeakedPortsAreRemoved) {
  Start();
  imposter.ports["a"] = {.device_owner = "compute:az1", .status = "DOWN"};
  imposter.ports["b"] = {.device_owner = "", .status = "DOWN"};
  imposter.ports["c"] = {.device_owner = "network:dhcp", .status = "DOWN"};
  imposter.ports["d"] = {.device_owner = "compute:az1", .status = "ACTIVE"};
  imposter.ports["f"] = {.device_owner = "compute:az1", .status = "DOWN", .project = "other"};
  auto pass = [&] {
    time.Run(provider->CleanupLeakedResources());
    time.Advance(60s);
  };
  pass();
  imposter.ports["e"] = {.device_owner = "compute:az1", .status = "DOWN"};
  pass();
  EXPECT_EQ(imposter.ports.size(), 6u) << "not before the interval is over";
  for (int i = 0; i < 10; ++i) pass();
  EXPECT_THAT(leaks, ElementsAre("2 ports"));
  EXPECT_EQ(imposter.ports.size(), 4u);
  EXPECT_TRUE(imposter.ports.contains("e")) << "it was not down in the first sweep";
  EXPECT_TRUE(imposter.ports.contains("f")) << "it is another project's";
}

TEST_F(OpenstackTest, PortsStayWhereCleaningIsOff) {
  config->port_cleanup_interval = 0s;
  Start();
  imposter.ports["a"] = {.device_owner = "compute:az1", .status = "DOWN"};
  for (int i = 0; i < 30; ++i) {
    time.Run(provider->CleanupLeakedResources());
    time.Advance(60s);
  }
  EXPECT_EQ(imposter.ports.size(), 1u);
  EXPECT_EQ(imposter.Count("GET", "/network/v2.0/ports"), 0);
}

// D-94, D-96
TEST_F(OpenstackTest, UnusedFloatingIpsAreRemovedWhereConfigured) {
  imposter.floating_ips["free"] = {.address = "203.0.114.1"};
  imposter.floating_ips["used"] = {.address = "203.0.114.2", .port_id = "p"};
  imposter.floating_ips["others"] = {.address = "203.0.114.3", .project = "other"};
  Start();
  time.Run(provider->CleanupLeakedResources());
  time.Advance(60s);
  EXPECT_EQ(imposter.floating_ips.size(), 3u);
  config->clean_floating_ips = true;
  time.Run(provider->CleanupLeakedResources());
  time.Advance(60s);
  EXPECT_EQ(imposter.floating_ips.size(), 2u);
  EXPECT_TRUE(imposter.floating_ips.contains("used"));
  EXPECT_TRUE(imposter.floating_ips.contains("others")) << "an administrator sees those of other projects";
  EXPECT_THAT(leaks, ElementsAre("1 floatingips"));
}

class LeaksTest : public OpenstackTest {
 protected:
  void Sweep() {
    time.Run(provider->CleanupLeakedResources());
    time.Advance(60s);
  }

  // A record as a builder leaves it.
  Task<store::UploadKey> MakeUpload(std::string external_id) {
    std::optional<zk::HeldLock> lock = co_await store.images.TryLock(ImageName("debian"));
    ImageBuild build;
    build.state = ImageState::kReady;
    build.state_time = time.loop().Now() + 60s;
    store::StoredBuild made = co_await store.images.CreateBuild(ImageName("debian"), build, *lock);
    std::optional<zk::HeldLock> upload_lock = co_await store.images.TryLockUploads(made.id, config->name);
    ImageUpload upload;
    upload.state = ImageState::kReady;
    upload.external_id = external_id;
    store::StoredUpload stored =
        co_await store.images.CreateUpload(made.id, config->name, upload, *upload_lock);
    co_await store.tree.Unlock(*upload_lock);
    co_await store.tree.Unlock(*lock);
    co_return stored.id;
  }
  store::UploadKey FormerUpload() {
    store::UploadKey upload = time.Run(MakeUpload("gone"));
    time.Run(store.images.RemoveUpload(upload));
    return upload;
  }

  std::string AddMarkedImage(const store::UploadKey& upload, std::string provider_name, std::string status) {
    std::string id = imposter.AddImage("debian-1");
    boost::json::object& record = imposter.images.at(id).record;
    record["status"] = status;
    record["nodepool_provider_name"] = provider_name;
    record["nodepool_build_id"] = upload.build.build.value;
    record["nodepool_upload_id"] = upload.upload.value;
    return id;
  }
};

// A builder died between the cloud's answer and the record, or in the middle of the file; D-99.
TEST_F(LeaksTest, ImagesWithoutARecordAreRemoved) {
  store::UploadKey former = FormerUpload();
  std::string begun = AddMarkedImage(FormerUpload(), "cloud", "queued");
  std::string finished = AddMarkedImage(FormerUpload(), "cloud", "active");
  std::string others = AddMarkedImage(former, "other", "active");
  // It has the number of a deleted upload; a later upload of a Python builder uses it.
  std::string adopted = AddMarkedImage(former, "cloud", "active");
  time.Run(MakeUpload(adopted));
  AddMarkedImage(time.Run(MakeUpload("")), "cloud", "active");
  Start();
  time.Advance(1s);
  Sweep();
  EXPECT_EQ(leaks.size(), 0u);
  Sweep();
  EXPECT_THAT(leaks, ElementsAre("2 images"));
  EXPECT_FALSE(imposter.images.contains(begun) || imposter.images.contains(finished));
  EXPECT_TRUE(imposter.images.contains(others) && imposter.images.contains(adopted));
  EXPECT_EQ(imposter.LastCall("GET", "/image/v2/images")->Parameter("owner"),
            "9e6b19cfd71541fb91c6ec097a75cc0a");
}

// D-99
TEST_F(LeaksTest, ImagesOfALostTreeStay) {
  store::UploadKey lost = FormerUpload();
  time.Run(zk::DeleteRecursive(*client, "/nodepool/images"));
  AddMarkedImage(lost, "cloud", "active");
  Start();
  for (int i = 0; i < 3; ++i) Sweep();
  EXPECT_EQ(imposter.Count("GET", "/image/v2/images"), 0) << "none can have leaked";
  FormerUpload();
  for (int i = 0; i < 3; ++i) Sweep();
  EXPECT_GT(imposter.Count("GET", "/image/v2/images"), 0);
  EXPECT_EQ(leaks.size(), 0u);
}

// D-99
TEST_F(LeaksTest, VolumesThatOutliveTheirServersAreRemoved) {
  label->boot_from_volume = true;
  Start();
  Launch();
  NodeId former = time.Run(store.nodes.Create({}));
  time.Run(zk::DeleteRecursive(*client, "/nodepool/nodes/" + former.value));
  boost::json::object gone{{"nodepool_provider_name", "cloud"}, {"nodepool_node_id", former.value}};
  boost::json::object lost{{"nodepool_provider_name", "cloud"}, {"nodepool_node_id", "0000009999"}};
  boost::json::object alive{{"nodepool_provider_name", "cloud"}, {"nodepool_node_id", last_id.value}};
  imposter.volumes["leaked"] = {"available", 5, gone};
  imposter.volumes["broken"] = {"error", 5, gone};
  imposter.volumes["attached"] = {"in-use", 5, gone};
  imposter.volumes["alive"] = {"available", 5, alive};
  imposter.volumes["others"] = {"available", 5, {}};
  imposter.volumes["lost"] = {"available", 5, lost};  // its node was never in this tree
  Sweep();
  EXPECT_EQ(leaks.size(), 0u);
  Sweep();
  EXPECT_THAT(leaks, ElementsAre("2 volumes"));
  EXPECT_EQ(imposter.volumes.size(), 5u) << "the node's own, attached, alive, others and lost";
  EXPECT_FALSE(imposter.volumes.contains("leaked") || imposter.volumes.contains("broken"));
}

// If a service does not answer, only its own leaks stay.
TEST_F(LeaksTest, OneServiceThatFailsDoesNotBlockTheRest) {
  label->boot_from_volume = true;
  Start();
  imposter.AddServer({{"nodepool_provider_name", "cloud"}, {"nodepool_node_id", "0000009999"}});
  imposter.Add({.method = "GET", .path = "/volume", .status = 500, .times = 10});
  time.Advance(10s);
  Sweep();
  Sweep();
  EXPECT_THAT(leaks, ElementsAre("1 instances"));
}

// An idle provider makes few calls, once a minute.
TEST_F(OpenstackTest, AnIdleProviderMakesFewCalls) {
  Start();
  for (int i = 0; i < 10; ++i) {
    time.Run(provider->CleanupLeakedResources());
    time.Advance(60s);
  }
  EXPECT_LE(imposter.Count("GET", "/compute/v2.1/servers/detail"), 12);
  EXPECT_LE(imposter.Count("GET", "/network/v2.0/ports"), 2);
  EXPECT_LE(imposter.calls().size(), 30u);
}

}  // namespace
}  // namespace nodepool::drivers::openstack
