// Servers from creation to deletion.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "async/task_group.h"
#include "base/json_fields.h"
#include "drivers/openstack/openstack_fixture_for_test.h"

namespace nodepool::drivers::openstack {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// LA-01, D-71, O-assign, O-net-name, O-sg
TEST_F(OpenstackTest, AServerIsMadeAndItsNodeDescribed) {
  label->instance_properties = {{"team", "ci"}, {"count", 3}, {"groups", "mine"}, {"nodepool_node_id", "no"}};
  label->key_name = "ci-key";
  label->userdata = "#cloud-config\n";
  label->networks = {"private"};
  pool->security_groups = {"web", "ssh"};
  config->cloud_images["debian"].config_drive = true;
  Start();
  Launch();
  EXPECT_EQ(last.state, NodeState::kReady);
  EXPECT_EQ(last.external_id.as_string(), imposter.servers.begin()->first);
  EXPECT_EQ(last.cloud, "vendor");
  EXPECT_EQ(last.region, std::nullopt);
  EXPECT_TRUE(last.az == "az1" || last.az == "az2");
  EXPECT_EQ(last.host_id, "host-1");
  EXPECT_EQ(last.interface_ip, last.private_ipv4);
  EXPECT_EQ(last.public_ipv4, "");
  EXPECT_EQ(last.resources, (Resources{{"cores", 1}, {"instances", 1}, {"ram", 2048}}));
  boost::json::object server = LastServerRequest();
  EXPECT_EQ(TextIn(server, "name"), "np" + last_id.value);
  EXPECT_EQ(TextIn(server, "imageRef"), imposter.images.begin()->first);
  EXPECT_EQ(TextIn(server, "flavorRef"), "081bc1e4-c34c-42be-8ce3-407b131586f6");
  EXPECT_EQ(TextIn(server, "key_name"), "ci-key");
  EXPECT_EQ(TextIn(server, "user_data"), "I2Nsb3VkLWNvbmZpZwo=");
  EXPECT_EQ(server.at("config_drive"), true);
  EXPECT_EQ(TextIn(server, "availability_zone"), *last.az);
  EXPECT_EQ(boost::json::serialize(server.at("security_groups")), R"([{"name":"web"},{"name":"ssh"}])");
  EXPECT_EQ(boost::json::serialize(server.at("networks")),
            R"([{"uuid":"18670c80-bb08-4bcd-9ce3-0e5536646fbc"}])");
  const boost::json::object& metadata = server.at("metadata").as_object();
  EXPECT_EQ(TextIn(metadata, "groups"), "mine");
  EXPECT_EQ(TextIn(metadata, "team"), "ci");
  EXPECT_EQ(TextIn(metadata, "count"), "3");
  EXPECT_EQ(TextIn(metadata, "nodepool_node_id"), last_id.value);
  EXPECT_EQ(TextIn(metadata, "nodepool_pool_name"), "main");
  EXPECT_EQ(TextIn(metadata, "nodepool_provider_name"), "cloud");
  EXPECT_EQ(TextIn(metadata, "nodepool_image_name"), "debian");
  EXPECT_THAT(TextIn(metadata, "nodepool_attempt"), ::testing::SizeIs(32));
}

// The server carries the attempt's mark, so it is known to be the attempt's own.
TEST_F(OpenstackTest, AServerWhoseAnswerWasLostIsFoundByItsMark) {
  Start();
  imposter.AddServer({{"nodepool_node_id", "0000000000"}, {"nodepool_provider_name", "cloud"}});
  imposter.Add({.method = "POST", .path = "/compute/v2.1/servers", .breaks = true, .has_effect = true});
  Launch();
  EXPECT_EQ(last.state, NodeState::kReady);
  EXPECT_THAT(results, ElementsAre("ready"));
  EXPECT_EQ(imposter.Count("POST", "/compute/v2.1/servers"), 1);
  std::string id(last.external_id.as_string());
  const boost::json::object& metadata = imposter.servers.at(id).record.at("metadata").as_object();
  EXPECT_EQ(TextIn(metadata, "nodepool_node_id"), last_id.value);
}

// Others of the same node and provider are another installation's, or a former node's.
TEST_F(OpenstackTest, AServerWithoutTheMarkIsNotUsed) {
  Start();
  for (const char* mark : {"", "0123456789abcdef0123456789abcdef"}) {
    imposter.AddServer({{"nodepool_node_id", "0000000000"},
                        {"nodepool_provider_name", "cloud"},
                        {"nodepool_attempt", mark}});
  }
  imposter.Add({.method = "POST", .path = "/compute/v2.1/servers", .status = 502});
  Launch();
  EXPECT_EQ(results.back(), "ready");
  EXPECT_EQ(imposter.Count("POST", "/compute/v2.1/servers"), 2);
  EXPECT_EQ(imposter.servers.size(), 3u);
}

// LA-37: without groups the request names none; the same holds for everything else that is not set.
TEST_F(OpenstackTest, WhatIsNotConfiguredIsNotSent) {
  Start();
  Launch();
  boost::json::object server = LastServerRequest();
  for (const char* key : {"security_groups", "key_name", "user_data", "config_drive"}) {
    EXPECT_FALSE(server.contains(key)) << key;
  }
  EXPECT_EQ(TextIn(server, "networks"), "auto");
  EXPECT_EQ(server.at("metadata").as_object().at("groups"), "cloud,debian,small");
  EXPECT_EQ(imposter.LastCall("POST", "/compute/v2.1/servers")->headers.at("openstack-api-version"),
            "compute 2.93");
}

// LA-27, O-dyn-none
TEST_F(OpenstackTest, PropertiesAreMadeFromTheRequest) {
  label->dynamic_instance_properties = {{"tenant", "Tenant is {request.tenant_name}"},
                                        {"event", "{request.event_id} {{x}}"},
                                        {"labels", "{request.labels}"},
                                        {"broken", "{request.nothing}"}};
  Start();
  Launch();
  boost::json::object metadata = LastServerRequest().at("metadata").as_object();
  EXPECT_EQ(TextIn(metadata, "tenant"), "Tenant is tenant-1");
  EXPECT_EQ(TextIn(metadata, "event"), "None {x}");
  EXPECT_EQ(TextIn(metadata, "labels"), "['small']");
  EXPECT_FALSE(metadata.contains("broken"));
}

// O-bfv
TEST_F(OpenstackTest, BootingFromAVolume) {
  label->boot_from_volume = true;
  label->volume_size = 20;
  Start();
  Launch();
  boost::json::object server = LastServerRequest();
  EXPECT_EQ(server.at("imageRef"), "");
  EXPECT_EQ(boost::json::serialize(server.at("block_device_mapping_v2")),
            R"([{"boot_index":"0","delete_on_termination":true,"destination_type":"volume",)"
            R"("source_type":"image","uuid":")" +
                imposter.images.begin()->first + R"(","volume_size":"20"}])");
  EXPECT_EQ(last.resources->at("volume-gb"), 20);
  ASSERT_EQ(imposter.volumes.size(), 1u);
  const boost::json::object& marks = imposter.volumes.begin()->second.metadata;
  EXPECT_EQ(TextIn(marks, "nodepool_node_id"), last_id.value);
  EXPECT_EQ(TextIn(marks, "nodepool_provider_name"), "cloud");
  Delete();
  EXPECT_TRUE(imposter.volumes.empty());
}

TEST_F(OpenstackTest, AVolumeThatCannotBeMarkedIsNotAFailure) {
  label->boot_from_volume = true;
  Start();
  imposter.Add({.method = "POST", .path = "/volume", .status = 403, .body = "policy"});
  Launch();
  EXPECT_THAT(results, ElementsAre("ready"));
}

// The calls of a node's life: few, and the same for each; O-delete.
TEST_F(OpenstackTest, CallsOfANodesLife) {
  Start();
  Launch();
  Delete();
  EXPECT_EQ(imposter.Count("POST", "/compute/v2.1/servers"), 1);
  imposter.ClearCalls();
  Launch();
  std::string server = "/compute/v2.1/servers/" + imposter.servers.begin()->first;
  Delete();
  EXPECT_THAT(
      imposter.Counts(),
      UnorderedElementsAre(Pair("POST /compute/v2.1/servers", 1), Pair("DELETE /compute/v2.1/servers/ID", 1),
                           Pair("GET /compute/v2.1/servers/detail", ::testing::Le(4))));
}

// Fifty nodes at a time share the lists.
TEST_F(OpenstackTest, ManyNodesShareTheLists) {
  imposter.limits["maxTotalInstances"] = 100;
  imposter.next_lists_until_active = 3;
  Start();
  TaskGroup launches(time.loop(), log::Logger("test"));
  for (int i = 0; i < 50; ++i) launches.Spawn("launch", LaunchNode());
  time.Run(launches.Join());
  EXPECT_EQ(imposter.servers.size(), 50u);
  EXPECT_EQ(imposter.Count("POST", "/compute/v2.1/servers"), 50);
  EXPECT_LE(imposter.Count("GET", "/compute/v2.1/servers/detail"), 5);
  EXPECT_EQ(imposter.Count("GET", "/network/v2.0/networks"), 1);
  EXPECT_LE(imposter.calls().size(), 60u);
}

// D-92: the id of a server that is born in ERROR is stored, and it is deleted before
// the next attempt; O-launch-fail.
TEST_F(OpenstackTest, AServerInErrorIsDeletedBeforeTheNextOne) {
  imposter.next_server_becomes = "ERROR";
  imposter.next_server_fault = "Build of instance aborted: nothing works";
  Start();
  Error error = LaunchFails();
  EXPECT_THAT(error.message(), AllOf(HasSubstr("status ERROR"), HasSubstr("nothing works")));
  EXPECT_THAT(results, ElementsAre("error.status", "error.status", "error.status"));
  EXPECT_EQ(imposter.Count("POST", "/compute/v2.1/servers"), 3);
  EXPECT_EQ(imposter.servers.size(), 1u);
  EXPECT_EQ(last.external_id.as_string(), imposter.servers.begin()->first);
}

// Metrics count it as every server in ERROR, as the Python implementation does.
TEST_F(OpenstackTest, NoCapacityInTheCloudIsAServerInError) {
  imposter.next_server_becomes = "ERROR";
  imposter.next_server_fault = "No valid host was found. There are not enough hosts available.";
  config->launch_retries = 1;
  Start();
  LaunchFails();
  EXPECT_THAT(results, ElementsAre("error.status"));
}

// LA-79, O-over-quota, O-fault-quota
TEST_F(OpenstackTest, QuotaRefusalsHaveSeveralForms) {
  Start();
  auto reads_of_quota = [this] {
    time.Advance(10s);
    return imposter.Count("GET", "/compute/v2.1/limits");
  };
  EXPECT_EQ(reads_of_quota(), 0);
  imposter.limits["maxTotalInstances"] = 0;
  EXPECT_EQ(LaunchFails().verdict(), Verdict::kQuota);
  EXPECT_EQ(reads_of_quota(), 1);
  EXPECT_EQ(provider->AvailableQuota().Get("instances"), 0);
  imposter.limits["maxTotalInstances"] = 10;
  imposter.Add({.method = "POST",
                .path = "/compute/v2.1/servers",
                .status = 403,
                .body = R"({"forbidden":{"message":"Maximum number of ports exceeded","code":403}})"});
  EXPECT_EQ(LaunchFails().verdict(), Verdict::kQuota);
  EXPECT_EQ(reads_of_quota(), 2);
  imposter.next_server_becomes = "ERROR";
  imposter.next_server_fault = "Requested volume or snapshot exceeds allowed gigabytes quota.";
  EXPECT_EQ(LaunchFails().verdict(), Verdict::kQuota);
  EXPECT_EQ(reads_of_quota(), 3);
  EXPECT_EQ(imposter.Count("POST", "/compute/v2.1/servers"), 3) << "a refusal is no attempt that is repeated";
  EXPECT_THAT(results, ElementsAre("error.quota", "error.quota", "error.quota"));
}

// O-launch-timeout
TEST_F(OpenstackTest, AServerThatIsStuckEndsWithTheTimeOut) {
  imposter.next_lists_until_active = 1'000'000;
  config->launch_timeout = 60s;
  config->launch_retries = 2;
  Start();
  LaunchFails();
  EXPECT_THAT(results, ElementsAre("error.servercreatetimeout", "error.servercreatetimeout"));
  EXPECT_EQ(imposter.servers.size(), 1u);
}

TEST_F(OpenstackTest, AServerThatVanishesIsAFailure) {
  imposter.next_lists_until_active = 1'000'000;
  config->launch_retries = 1;
  Start();
  TaskGroup launches(time.loop(), log::Logger("test"));
  launches.Spawn("launch", LaunchNode());
  time.Advance(5s);
  ASSERT_EQ(imposter.servers.size(), 1u);
  imposter.servers.clear();
  time.Run(launches.Join());
  EXPECT_THAT(results, ElementsAre("error.status"));
}

// LA-45, O-delete-listed: a deleted server that is still listed is gone.
TEST_F(OpenstackTest, ADeletedServerThatIsListedIsGone) {
  Start();
  Launch();
  imposter.servers.begin()->second.lists_until_gone = 1000;
  imposter.servers.begin()->second.record["status"] = "deleted";
  imposter.Add({.method = "DELETE", .path = "/compute/v2.1/servers", .status = 204});
  Delete();
  EXPECT_EQ(imposter.servers.size(), 1u);
  driver::QuotaInformation before = provider->AvailableQuota();
  EXPECT_EQ(before.Get("instances"), 10);
}

TEST_F(OpenstackTest, AServerThatIsGoneIsDeleted) {
  Start();
  Launch();
  imposter.servers.clear();
  imposter.ClearCalls();
  Delete();
  EXPECT_EQ(imposter.calls().size(), 1u);
}

// O-launch-delete-error
TEST_F(OpenstackTest, TheServerOfAFailedAttemptIsDeletedInTheEnd) {
  imposter.next_server_becomes = "ERROR";
  imposter.failing_deletes = 1;
  Start();
  TaskGroup launches(time.loop(), log::Logger("test"));
  launches.Spawn("launch", LaunchNode());
  ASSERT_TRUE(time.RunUntil([&] { return !imposter.servers.empty(); }));
  imposter.next_server_becomes = "ACTIVE";
  time.Run(launches.Join());
  EXPECT_EQ(last.state, NodeState::kReady);
  for (int i = 0; i < 3; ++i) {
    time.Advance(60s);
    time.Run(provider->CleanupLeakedResources());
  }
  time.Advance(60s);
  ASSERT_EQ(imposter.servers.size(), 1u);
  EXPECT_EQ(last.external_id.as_string(), imposter.servers.begin()->first);
}

// O-delete-fail
TEST_F(OpenstackTest, ADeletionThatFailsIsReportedSoon) {
  Start();
  Launch();
  imposter.failing_deletes = 1;
  SteadyTime before = time.loop().SteadyNow();
  EXPECT_THROW(Delete(), Error);
  EXPECT_LT(time.loop().SteadyNow() - before, 30s);
  Delete();
  EXPECT_TRUE(imposter.servers.empty());
}

// After a refusal as invalid everything is looked up again: the image or the zone may have changed;
// O-az-change.
TEST_F(OpenstackTest, AnInvalidRequestClearsTheCachedLookUps) {
  Start();
  imposter.Add({.method = "POST",
                .path = "/compute/v2.1/servers",
                .status = 400,
                .body = R"({"badRequest":{"message":"Image not found.","code":400}})"});
  Launch();
  EXPECT_THAT(results, ElementsAre("error.unknown", "ready"));
  EXPECT_EQ(imposter.Count("GET", "/image/v2/images"), 1);
  EXPECT_EQ(imposter.Count("GET", "/compute/v2.1/flavors/detail"), 1);
  int zones_asked = imposter.Count("GET", "/compute/v2.1/os-availability-zone");
  time.Run(adapter->AvailabilityZones());
  EXPECT_EQ(imposter.Count("GET", "/compute/v2.1/os-availability-zone"), zones_asked + 1);
}

// D-93
TEST_F(OpenstackTest, AFailedListFailsNoLaunch) {
  Start();
  imposter.Add({.method = "GET", .path = "/compute/v2.1/servers/detail", .status = 500, .times = 3});
  Launch();
  imposter.Add({.method = "GET", .path = "/compute/v2.1/servers/detail", .status = 500, .times = 3});
  Delete();
  EXPECT_THAT(results, ElementsAre("ready"));
}

// O-keyscan-console
TEST_F(OpenstackTest, TheConsoleIsReadWhereItIsWanted) {
  Start();
  boost::json::value id("x");
  EXPECT_EQ(time.Run(adapter->ConsoleLog(*label, id)), std::nullopt);
  label->console_log = true;
  EXPECT_EQ(time.Run(adapter->ConsoleLog(*label, id)), "console line 1\nconsole line 2\n");
}

}  // namespace
}  // namespace nodepool::drivers::openstack
