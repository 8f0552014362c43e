// Instances from the launch to the deletion (driver-gce.md 7 to 10, 14 to 17).
#include "driver/cloud/api/url_text.h"
#include "drivers/gce/gce_fixture_for_test.h"

namespace nodepool::drivers::gce {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string HeaderIn(const testing::GceImposter::Call& call, std::string_view name) {
  for (const auto& [key, value] : call.headers) {
    if (key == name) return value;
  }
  return "";
}

// GCE-4, GCE-19
TEST_F(GceTest, ANodeLivesAndDies) {
  Start();
  Launch();
  EXPECT_EQ(last.external_id, boost::json::value("np" + last_id.str()));
  EXPECT_EQ(last.cloud, "Google");
  EXPECT_EQ(last.region, "us-central1");
  EXPECT_EQ(last.az, "us-central1-a");
  EXPECT_EQ(last.public_ipv4, "192.0.2.1");
  EXPECT_EQ(last.interface_ip, "192.0.2.1");
  EXPECT_EQ(last.private_ipv4, "10.0.0.1");
  EXPECT_EQ(google.Count("instances.insert"), 1);
  EXPECT_EQ(google.Count("instances.get"), 0)
      << "the list, which all launches share, says what becomes of it";
  EXPECT_EQ(HeaderIn(google.Last("instances.insert"), "Authorization"), "Bearer ya29.secret");
  Delete();
  EXPECT_THAT(google.instances, IsEmpty());
  EXPECT_EQ(google.Count("instances.delete"), 1);
}

// GCE-15, GCE-16, GCE-29
TEST_F(GceTest, ALostAnswerMakesNoSecondInstance) {
  Start();
  google.faults.push_back({"instances.insert", 0, "", "", 1, true});
  Launch();
  EXPECT_THAT(results, ElementsAre("ready"));
  EXPECT_EQ(google.instances.size(), 1u);
  std::set<std::string> requests;
  for (const auto& call : google.calls) {
    if (call.action == "instances.insert") requests.insert(call.query);
  }
  EXPECT_EQ(requests.size(), 1u) << "the call was repeated with another requestId";
  EXPECT_EQ(requests.begin()->size(), std::string("requestId=").size() + 36);
}

// GCE-29
TEST_F(GceTest, PassingFaultsHaveNoEffect) {
  Start();
  FailNext("instances.insert", 503, "backendError", 2);
  FailNext("instances.list", 503, "backendError", 2);
  FailNext("images.getFromFamily", 500, "internalError", 2);
  Launch();
  Delete();
  EXPECT_THAT(results, ElementsAre("ready"));
}

// GCE-17
TEST_F(GceTest, ANamesakeOfAnotherInstallationIsLeftAlone) {
  config->launch_retries = 2;
  Start();
  // The tree is new: the first node's number is 0.
  AddInstance("np0000000000", Marks("0000000000"));
  Error error = LaunchFails();
  EXPECT_EQ(last_id.str(), "0000000000");
  EXPECT_THAT(error.message(), HasSubstr("it is not of this launch and is left alone"));
  EXPECT_THAT(google.instances, ::testing::SizeIs(1));
  Delete();
  EXPECT_THAT(google.instances, ::testing::SizeIs(1));
  EXPECT_EQ(google.Count("instances.delete"), 0);
}

// GCE-18, GCE-20
TEST_F(GceTest, CapacityIsSeenInTheOperation) {
  Start();
  google.refused_zones["us-central1-a"] = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS";
  SteadyTime begun = time.loop().SteadyNow();
  Error error = LaunchFails();
  EXPECT_EQ(error.verdict(), Verdict::kQuota) << "the request is handed back: " << error.message();
  EXPECT_THAT(results, Each("error.capacity"));
  EXPECT_EQ(results.size(), 3u);
  EXPECT_LE(time.loop().SteadyNow() - begun, std::chrono::minutes(1));
  EXPECT_THAT(google.instances, IsEmpty());
}

// GCE-21
TEST_F(GceTest, AnotherZoneWhereOneLacksCapacity) {
  config->zones = {"us-central1-a", "us-central1-b"};
  google.refused_zones["us-central1-a"] = "ZONE_RESOURCE_POOL_EXHAUSTED";
  Start();
  Launch();
  EXPECT_THAT(results, ElementsAre("ready"));
  EXPECT_EQ(last.az, "us-central1-b");
  boost::json::object id{{"instance", "np" + last_id.str()}, {"zone", "us-central1-b"}};
  EXPECT_EQ(last.external_id, boost::json::value(id));
  google.calls.clear();
  Delete();
  EXPECT_THAT(google.instances, IsEmpty());
  Launch();
  EXPECT_EQ(google.Count("instances.insert"), 1) << "the zone without capacity is tried last";
}

// GCE-25
TEST_F(GceTest, AQuotaIsNotAFailure) {
  Start();
  google.refused_zones["us-central1-a"] = "QUOTA_EXCEEDED";
  EXPECT_EQ(LaunchFails().verdict(), Verdict::kQuota);
  google.refused_zones.clear();
  FailNext("instances.insert", 403, "quotaExceeded", 1, "Quota 'CPUS' exceeded.  Limit: 8.0");
  EXPECT_EQ(LaunchFails().verdict(), Verdict::kQuota);
  EXPECT_THAT(results, ElementsAre("error.quota", "error.quota"));
}

// GCE-26, GCE-27
TEST_F(GceTest, RefusalsOfTheRateCostNoAttempt) {
  Start();
  for (const char* action : {"instances.insert", "instances.list", "images.getFromFamily"})
    FailNext(action, 403, "rateLimitExceeded", 8);
  Launch();
  EXPECT_THAT(results, ElementsAre("ready"));
}

// GCE-9, GCE-12, GCE-28
TEST_F(GceTest, WhatGoogleRefusesTwiceEndsTheLaunch) {
  Start();
  FailNext("instances.insert", 400, "invalid", 9, "Invalid value for field 'resource.disks[0]'");
  Error error = LaunchFails();
  EXPECT_EQ(google.Count("instances.insert"), 2);
  EXPECT_THAT(error.message(), HasSubstr("Invalid value for field 'resource.disks[0]'"));
}

// GCE-11
TEST_F(GceTest, AnUnknownMachineTypeConcernsItsLabelOnly) {
  auto other = std::make_shared<GceLabel>(*label);
  other->name = LabelName("odd");
  other->instance_types = {"e9-nothing"};
  pool->Offer(other);
  Start();
  EXPECT_THROW(adapter->QuotaForLabel(*other), Error);
  Launch();
  EXPECT_THAT(results, ElementsAre("ready"));
}

// GCE-32
TEST_F(GceTest, AnInstanceThatListsShowLate) {
  google.visible_after = std::chrono::seconds(5);
  Start();
  Launch();
  EXPECT_THAT(results, ElementsAre("ready"));
  EXPECT_EQ(google.Count("instances.insert"), 1);
}

// GCE-32
TEST_F(GceTest, ALaunchThatIsStoppedAtOnceLeavesNothing) {
  google.visible_after = std::chrono::seconds(5);
  config->launch_timeout = std::chrono::seconds(1);
  config->launch_retries = 1;
  Start();
  LaunchFails();
  EXPECT_EQ(google.instances.size(), 1u);
  Delete();
  EXPECT_THAT(google.instances, IsEmpty());
}

// GCE-34
TEST_F(GceTest, NamesComeFromUrlsOfWhateverHost) {
  using driver::cloud::api::LastSegment;
  EXPECT_EQ(LastSegment("https://compute.googleapis.com/compute/v1/projects/p/zones/z-a"), "z-a");
  EXPECT_EQ(LastSegment("https://www.googleapis.com/compute/v1/projects/p/zones/z-a"), "z-a");
  EXPECT_EQ(LastSegment("z-a"), "z-a");
}

// GCE-46
TEST_F(GceTest, WhatIsGoneIsGone) {
  Start();
  Launch();
  google.instances.clear();
  Delete();
  EXPECT_EQ(google.Count("instances.delete"), 0);
}

// GCE-47
TEST_F(GceTest, ADeletionDuringAnotherChangeIsRepeated) {
  Start();
  Launch();
  FailNext("instances.delete", 400, "resourceNotReady", 2);
  Delete();
  EXPECT_THAT(google.instances, IsEmpty());
}

// GCE-48
TEST_F(GceTest, TheNextAttemptWaitsForTheName) {
  Start();
  TaskGroup group(time.loop(), log::Logger("test"));
  group.Spawn("launch", LaunchNode());
  time.Advance(std::chrono::milliseconds(500));
  google.instances.begin()->second.status = "TERMINATED";
  time.Advance(std::chrono::minutes(1));
  time.Run(group.Stop());
  EXPECT_THAT(results, ElementsAre("error.status", "ready"));
  EXPECT_EQ(google.Count("instances.insert"), 2) << "none was refused for the name";
}

// GCE-35
TEST_F(GceTest, SpotInstancesAreDeletedWhenTheyAreTakenAway) {
  label->use_spot = true;
  label->spot_notice = 120;
  Start();
  Launch();
  boost::json::object scheduling = google.Last("instances.insert").body.at("scheduling").as_object();
  EXPECT_EQ(scheduling.at("provisioningModel"), "SPOT");
  EXPECT_EQ(scheduling.at("instanceTerminationAction"), "DELETE");
  EXPECT_EQ(scheduling.at("preemptionNoticeDuration").at("seconds"), "120");
}

// GCE-39
TEST_F(GceTest, ASpotInstanceThatIsTakenAwayBeforeItRuns) {
  label->use_spot = true;
  config->launch_retries = 1;
  Start();
  TaskGroup group(time.loop(), log::Logger("test"));
  group.Spawn("launch", LaunchNode());
  time.Advance(std::chrono::milliseconds(500));
  ASSERT_EQ(google.instances.size(), 1u);
  google.instances.begin()->second.status = "STOPPING";
  time.Advance(std::chrono::minutes(1));
  time.Run(group.Stop());
  EXPECT_THAT(results, ElementsAre("error.capacity"));
}

// GCE-36, GCE-38, TAKE-6
TEST_F(GceTest, StoppedAndPreemptedInstancesAreAnnounced) {
  label->use_spot = true;
  Start();
  AddInstance("np0000000041", Marks("0000000041")).status = "TERMINATED";
  AddInstance("np0000000042", Marks("0000000042"));
  auto& reused = AddInstance("np0000000043", Marks("0000000043"));
  AddInstance("np0000000044", Marks("0000000044", "others"));
  auto event = [](const char* name, const char* target) {
    return boost::json::object{
        {"name", name},
        {"operationType", "compute.instances.preempted"},
        {"targetLink", std::string("https://x/zones/us-central1-a/instances/") + target},
        {"targetId", "1"}};
  };
  google.events = {event("systemevent-1", "np0000000040"), event("systemevent-2", "np0000000043")};
  ASSERT_NE(reused.number, "1");
  PassListAge();
  std::vector<boost::json::value> ids;
  for (const char* id : {"np0000000040", "np0000000041", "np0000000042", "np0000000043", "np0000000044"})
    ids.emplace_back(id);
  std::vector<boost::json::value> asked = ids;
  auto ends = time.Run(adapter->AnnouncedEnds(std::move(asked)));
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].external_id, "np0000000040");
  EXPECT_THAT(ends[0].reason, HasSubstr("systemevent-1"));
  EXPECT_EQ(ends[1].external_id, "np0000000041");
  EXPECT_THAT(ends[1].reason, HasSubstr("TERMINATED"));
  EXPECT_THAT(time.Run(adapter->MissingMachines(std::move(ids))),
              ElementsAre(boost::json::value("np0000000040"), boost::json::value("np0000000044")));
}

// GCE-31
TEST_F(GceTest, AListThatCannotBeReadProvesNothing) {
  google.page_size = 1;
  Start();
  for (const char* id : {"0000000041", "0000000042", "0000000043"})
    AddInstance(std::string("np") + id, Marks(id));
  google.faults.push_back({"instances.list", 200, "", "", 1000, false,
                           "{\"items\": [], \"warning\": "
                           "{\"code\": \"UNREACHABLE\"}}"});
  std::vector<boost::json::value> ids{"np0000000099"};
  PassListAge();
  EXPECT_THAT(time.Run(adapter->MissingMachines(ids), std::chrono::hours(1)), IsEmpty());
  google.faults.clear();
  time.Advance(std::chrono::minutes(2));
  EXPECT_THAT(time.Run(adapter->MissingMachines(ids), std::chrono::hours(1)), ::testing::SizeIs(1));
}

// GCE-33
TEST_F(GceTest, AllPagesAreRead) {
  google.page_size = 5;
  Start();
  for (int i = 10; i < 50; ++i)
    AddInstance("np00000000" + std::to_string(i), Marks("00000000" + std::to_string(i)));
  PassListAge();
  EXPECT_EQ(time.Run(adapter->ListInstances()).size(), 40u);
}

// GCE-44, GCE-45
TEST_F(GceTest, LeakedInstancesAreDeletedInWhateverState) {
  config->zones = {"us-central1-a", "us-central1-b"};
  Start();
  AddInstance("np0000000041", Marks("0000000041")).status = "TERMINATED";
  AddInstance("np0000000042", Marks("0000000042"), "us-central1-b");
  AddInstance("np0000000043", Marks("0000000043", "others"));
  AddInstance("np0000000044", {});
  for (int sweep = 0; sweep < 3; ++sweep) {
    PassListAge();
    time.Run(provider->CleanupLeakedResources(), std::chrono::hours(1));
  }
  PassListAge();
  time.Run(adapter->ListInstances());
  EXPECT_EQ(google.instances.size(), 2u);
  EXPECT_TRUE(google.instances.contains("us-central1-a/np0000000043"));
  EXPECT_TRUE(google.instances.contains("us-central1-a/np0000000044"));
}

// GCE-8
TEST_F(GceTest, WithoutAPublicAddress) {
  pool->public_ipv4 = false;
  pool->public_ipv6 = true;
  pool->subnetwork = "ci-nodes";
  pool->network = std::nullopt;
  pool->tags = {"ci"};
  pool->service_account = ServiceAccount{"ci@p", {"scope"}};
  Start();
  Launch();
  boost::json::object body = google.Last("instances.insert").body;
  const boost::json::object& interface = body.at("networkInterfaces").at(0).as_object();
  EXPECT_FALSE(interface.contains("accessConfigs") || interface.contains("network"));
  EXPECT_EQ(interface.at("subnetwork"), "regions/us-central1/subnetworks/ci-nodes");
  EXPECT_EQ(interface.at("stackType"), "IPV4_IPV6");
  EXPECT_EQ(body.at("tags").at("items").at(0), "ci");
  EXPECT_EQ(body.at("serviceAccounts").at(0).at("email"), "ci@p");
  EXPECT_EQ(last.public_ipv4, std::nullopt);
  EXPECT_EQ(last.public_ipv6, "2001:db8::1");
}

// GCE-6
TEST_F(GceTest, AProviderWhoseNameIsNoLabel) {
  config->name = ProviderName("GCE.main");
  Start();
  Launch();
  Delete();
  EXPECT_THAT(results, ElementsAre("ready"));
  EXPECT_FALSE(google.calls.empty());
  for (const auto& call : google.calls) EXPECT_THAT(call.query, Not(HasSubstr("filter=labels")));
}

// GCE-49, GCE-50
TEST_F(GceTest, FamiliesAreReadAgain) {
  Start();
  Launch();
  google.families["debian-12"] = "debian-12-v2";
  Launch();
  auto source = [this] {
    return google.Last("instances.insert").body.at("disks").at(0).at("initializeParams").at("sourceImage");
  };
  EXPECT_EQ(source(), "https://www.googleapis.com/compute/v1/projects/p/global/images/debian-12-v1");
  time.Advance(std::chrono::minutes(5));
  FailNext("images.getFromFamily", 403, "rateLimitExceeded", 100);
  Launch();
  EXPECT_THAT(std::string(source().as_string()), HasSubstr("debian-12-v1")) << "the last good one";
  google.faults.clear();
  Launch();
  EXPECT_THAT(std::string(source().as_string()), HasSubstr("debian-12-v2"));
  time.Advance(std::chrono::minutes(5));
  google.families.clear();
  EXPECT_THAT(LaunchFails().message(), HasSubstr("project debian-cloud has no image of family debian-12"));
}

// GCE-60
TEST_F(GceTest, TheConsoleIsReadOnce) {
  Start();
  EXPECT_EQ(time.Run(adapter->ConsoleLog(*label, "np1")), "login: ");
  EXPECT_EQ(google.Count("instances.getSerialPortOutput"), 1);
}

// GCE-30
TEST_F(GceTest, OddAnswersAreErrors) {
  Start();
  for (const char* body : {"", "{", "[]", "{\"items\": 7}", "{\"items\": [7, {}, {\"name\": 5}]}",
                           "{\"name\": {}, \"status\": []}", "null", "<html>proxy</html>"}) {
    for (const char* action : {"instances.list", "instances.insert", "instances.get", "zoneOperations.get",
                               "regions.get", "machineTypes.get", "images.getFromFamily", "token"}) {
      google.faults.push_back({action, 200, "", "", 3, false, body});
    }
    time.Run(Attempt(LaunchNode()), std::chrono::hours(10));
    time.Run(Attempt(adapter->QuotaLimits()), std::chrono::hours(10));
    time.Run(Attempt(adapter->ListInstances()), std::chrono::hours(10));
    google.faults.clear();
    Delete();
  }
  EXPECT_THAT(google.instances, IsEmpty());
}

}  // namespace
}  // namespace nodepool::drivers::gce
