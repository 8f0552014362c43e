#include "listing/status.h"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "cli/fixture_for_test.h"

namespace nodepool::cli {

// What `nodepool status` and `label-list` print about a site, and which columns `image-status` adds for
// operators.

namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(StatusTest, AllIsWell) {
  UseTerminal(80);
  std::uint64_t before = our_writes();
  EXPECT_EQ(Status(),
            "All is well.\n"
            "\n"
            "Daemon    Host  State    Version\n"
            "builder   nb01  running  0.1.0\n"
            "launcher  np01  running  0.1.0\n"
            "\n"
            "Provider  Driver     Launcher  State  Nodes  Used         Free\n"
            "cloud     openstack  np01      up     1      instances 1  instances 7\n"
            "\n"
            "Provider  Pool  State  Ready  Building  In Use  Held  Ending\n"
            "cloud     main  up     1      0         0       0     0\n");
  EXPECT_EQ(our_writes(), before);
  EXPECT_EQ(questions_, 0) << "nothing waits";
}

TEST_F(StatusTest, AsJson) {
  EXPECT_THAT(ShownAsJson({"status"}),
              StartsWith(R"({"problems":[],"daemons":[{"kind":"builder","hostname":"nb01",)"
                         R"("state":"running","version":"0.1.0","page":null},)"));
  EXPECT_THAT(
      out_.str(),
      HasSubstr(R"("pools":[{"provider":"cloud","pool":"main","state":"up","ready":1,)"
                R"("building":0,"in_use":0,"held":0,"ending":0}],"requests":[],"runners":[],"images":[]})"));
}

TEST_F(StatusTest, LaunchersHaveAPageButThoseOfPython) {
  Put("/nodepool/components/launcher/np020000000000",
      R"({"hostname": "np02", "state": "running", "version": "0.1.0", "locks_slots": true})");
  EXPECT_THAT(Status(), HasSubstr("launcher  np01  running  0.1.0\n"
                                  "launcher  np02  running  0.1.0    http://np02:8005/\n"));
}

TEST_F(StatusTest, AProviderThatCannotBeUsedComesFirst) {
  Announce(R"("cloud": {"state": "failing", "since": 1699999940, "fault": "401 from keystone"})");
  Build("b2", "failed", 1'699'999'000);
  EXPECT_THAT(Status(),
              StartsWith("Check first:\n"
                         "- The launcher on np01 cannot use provider cloud: 401 from keystone\n"
                         "  Check its address and credentials (clouds.yaml): nodepool config-validate "
                         "--online\n"
                         "  For 00:00:01:00; more: nodepool info cloud\n"
                         "- Image deb: its last build failed; log: nb01:/var/log/nodepool/builds/deb-b2.log\n"
                         "  Read the end of its log, then nodepool image-build deb\n"
                         "  For 00:00:16:40; more: nodepool dib-image-list\n"));
  EXPECT_THAT(out_.str(), HasSubstr("cloud     main  failing"));
  EXPECT_THAT(
      ShownAsJson({"status"}),
      StartsWith(R"({"problems":[{"id":"provider-failing/cloud","kind":"provider-failing","severity":"bad",)"
                 R"("since":1.69999994E9,"topic":"providers","key":"cloud","text":"The launcher on np01 )"));
}

TEST_F(StatusTest, WhoIsMissingIsNamed) {
  Remove("/nodepool/components/builder/nb010000000001");
  EXPECT_THAT(Status(),
              StartsWith("Check first:\n"
                         "- No builder runs: no image is built or uploaded\n"
                         "  systemctl start nodepool-builder; if it ends at once, its log says why\n"
                         "  More: journalctl -u nodepool-builder -n 50\n"));
  Remove("/nodepool/components/launcher/np010000000000");
  Remove("/nodepool/components/pool/np010000000002");
  EXPECT_THAT(Status(),
              StartsWith("Check first:\n"
                         "- No launcher runs: nobody takes requests or deletes nodes\n"
                         "  systemctl start nodepool-launcher; if it ends at once, its log says why\n"
                         "  More: journalctl -u nodepool-launcher -n 50\n"
                         "- No builder runs: no image is built or uploaded\n"
                         "  systemctl start nodepool-builder; if it ends at once, its log says why\n"
                         "  More: journalctl -u nodepool-builder -n 50\n"
                         "\n"
                         "Provider"));
  EXPECT_THAT(out_.str(), HasSubstr("cloud     main  unserved"));
}

// RUN-73: what a service says is shown without what a terminal obeys.
TEST_F(StatusTest, FaultsOfRunnersAreNamed) {
  Put("/nodepool/runners/sets/octo/np-small",
      R"({"state": "fault", "fault": "they get no jobs: status 401: \u001b[2Jno", )"
      R"("remedy": "Correct the credentials", "since": 1})");
  EXPECT_THAT(Status(),
              HasSubstr("- The runners octo/np-small do not work: they get no jobs: status 401: \\x1b[2Jno\n"
                        "  Correct the credentials\n"));
}

TEST_F(StatusTest, WhatNobodyServesOrOffersIsNamed) {
  config_->common.providers.push_back({ProviderName("new"), "fake", {}});
  config_->common.labels[LabelName("big")] = {LabelName("big"), 2, std::nullopt};
  EXPECT_THAT(Status(), StartsWith("Check first:\n"
                                   "- No launcher serves provider new\n"
                                   "  Start the launcher that has it, or take it out of nodepool.yaml\n"
                                   "  More: nodepool info new\n"
                                   "- No pool offers label big, whose min-ready is 2\n"));
}

TEST_F(StatusTest, RequestsThatWaitForLongestComeFirstAndSayWhy) {
  RequestId young = AddRequest(1'699'999'990);
  EXPECT_THAT(Status(), StartsWith("All is well.\n"));
  RequestId old = AddRequest(1'699'990'000);
  answer_ = fmt::format(
      R"({{"requests":[{{"id":"{}","waits":[{{"provider":"cloud","pool":"main","reason":"capacity","text":"uses 2 of 2 cores"}}]}}]}})",
      old);
  UseTerminal(160);
  EXPECT_THAT(Status(), StartsWith("Check first:\n"
                                   "- 1 request waits for more than 5 minutes, 200-0000000001 for longest: "
                                   "cloud main uses 2 of 2 cores\n"));
  EXPECT_THAT(out_.str(),
              HasSubstr("Requests  Waits        For Longest     Labels  Why\n"
                        "1         00:02:46:40  200-0000000001  small   cloud main uses 2 of 2 cores\n"
                        "1         00:00:00:10  200-0000000000  small\n"));
  EXPECT_EQ(young.value, "200-0000000000");
}

TEST_F(StatusTest, ATableHasARowForEachReasonAndJsonARequest) {
  for (int i = 0; i < 12; ++i) AddRequest(1'699'999'900 + i);
  EXPECT_THAT(Status(), HasSubstr("12        00:00:01:40  200-0000000000  small"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("200-0000000010")));
  EXPECT_THAT(ShownAsJson({"status"}), HasSubstr("200-0000000011"));
}

TEST_F(StatusTest, ImagesThatAreNotWell) {
  EXPECT_THAT(Status(), Not(HasSubstr("Image")));
  config_->common.diskimages[ImageName("deb")].rebuild_age = std::chrono::hours(1);
  EXPECT_THAT(Status(), HasSubstr("- Image deb: it is 00:02:46:40 old\n"));
  Put("/nodepool/images/deb/pause", "");
  EXPECT_THAT(Status(), Not(HasSubstr("Image"))) << "a paused image may be old";
  Put("/nodepool/images/deb/builds/b1/providers/cloud/images/0000000001", R"({"state": "deleting"})");
  EXPECT_THAT(Status(), HasSubstr("- Image deb: no upload in cloud; wanted by small\n"));
  Build("b1", "deleting", 1'699'990'000);
  EXPECT_THAT(Status(), HasSubstr("- Image deb: no build is ready; no upload in cloud; wanted by small\n"));
  EXPECT_THAT(ShownAsJson({"status"}),
              HasSubstr(R"("images":[{"image":"deb","trouble":"no build is ready; no upload in cloud; )"
                        R"(wanted by small"}]})"));
}

TEST_F(StatusTest, NodesThatTheCloudDoesNotDelete) {
  Node node = ReadyNode();
  node.SetState(NodeState::kDeleting, FromSeconds(1'699'999'000));
  AddNode(node);
  EXPECT_THAT(Status(), StartsWith("Check first:\n"
                                   "- Provider cloud has been deleting 1 node for more than 10 minutes\n"));
}

TEST_F(StatusTest, ALauncherThatIsGone) {  // PAGE-20
  Node node = ReadyNode();
  node.provider = ProviderName("other");
  node.launcher = "np02.example.org-PoolWorker.other-main-x";
  AddNode(node);
  EXPECT_THAT(Status(),
              StartsWith("Check first:\n"
                         "- The launcher on np02.example.org is gone: nobody serves provider other, "
                         "which has 1 node\n"
                         "  systemctl start nodepool-launcher there; its log says why it ended\n"));
}

TEST_F(StatusTest, WhatLaunchersAnnounce) {  // PAGE-20
  config_->common.labels[LabelName("small")].min_ready = 3;
  Put("/nodepool/components/launcher/np010000000000",
      R"({"hostname": "np01", "state": "running", "configuration_rejected": {"since": 1699999940, )"
      R"("error": "nodepool.yaml:5:3: unknown driver"}, "shortages": {"small": {"since": 1699999000, )"
      R"("why": "cloud main: not enough capacity"}, "gone": {"since": 1, "why": "x"}}, "providers": )"
      R"({"cloud": {"state": "up", "since": 1699999940, "notices": ["1 of 2 hosts do not answer: a:22"]}}})");
  EXPECT_THAT(Status(),
              StartsWith("Check first:\n"
                         "- The launcher on np01 keeps its previous configuration: nodepool.yaml:5:3: "
                         "unknown driver\n"
                         "  Correct the file (nodepool config-validate); it is read again by itself\n"
                         "  For 00:00:01:00; more: nodepool config-validate\n"
                         "- Provider cloud: 1 of 2 hosts do not answer: a:22\n"
                         "  Start what does not answer, or take it out of nodepool.yaml\n"
                         "  More: nodepool info cloud\n"
                         "- Label small has 1 of 3 min-ready nodes: cloud main: not enough capacity\n"
                         "  Raise the limit that the reason names, give nodes back, or lower "
                         "min-ready\n"));
  EXPECT_THAT(ShownAsJson({"label-list"}), HasSubstr(R"("why":"cloud main: not enough capacity")"));
}

TEST_F(StatusTest, AnOpenBreaker) {  // BRK-13
  Put("/nodepool/breakers/cloud:main:small",
      R"({"kind": "key-scan", "kinds": "key-scan 3", "failures": 3, "attempts": 4, "said": "no answer", )"
      R"("opened": 1699999940, "next_probe": 1700000030, "tried_anyway": 2})");
  EXPECT_THAT(
      Status(),
      StartsWith("Check first:\n"
                 "- The breaker of label small in pool main of provider cloud is open: 3 of 4 launches "
                 "failed (key-scan 3), the last one: no answer\n"
                 "  Check network, security groups, boot-timeout, and that its image starts an SSH "
                 "server; it is tested by itself, and closes when a launch works\n"));
  EXPECT_THAT(ShownAsJson({"provider-list"}),
              HasSubstr(R"("why":"the breaker of label small in pool main is open: 3 of 4 launches failed )"
                        R"((key-scan 3), the last one: no answer")"));
  std::string info = Shown({"info", "cloud"});
  EXPECT_THAT(info, HasSubstr("Open breakers:\n"));
  EXPECT_THAT(info, HasSubstr("| main | small |"));
  EXPECT_THAT(ShownAsJson({"info", "cloud"}), HasSubstr(R"("breakers":[{"pool":"main","label":"small",)"));
}

TEST_F(StatusTest, ALabelThatCannotBeLaunched) {  // PAGE-20
  Put("/nodepool/components/pool/np010000000002",
      R"({"hostname": "np01", "state": "running", "id": "np01-PoolWorker.cloud-main-x", "name": "main", "locks_slots": true, )"
      R"("provider_name": "cloud", "supported_labels": ["small"], "label_faults": {"small": "no flavor"}})");
  EXPECT_THAT(Status(),
              StartsWith("Check first:\n"
                         "- Label small cannot be launched: cloud main: no flavor\n"
                         "  Correct the label in nodepool.yaml, or make what it names in the cloud\n"));
  EXPECT_THAT(ShownAsJson({"label-list"}), HasSubstr(R"("why":"cloud main: no flavor")"));
}

TEST_F(StatusTest, LimitsThatAreReachedWhileRequestsWait) {  // PAGE-20
  config_->common.tenant_limits["acme"] = {{"instances", 1}};
  Node node = ReadyNode();
  node.resources = {{"instances", 7}};
  node.tenant_name = "acme";
  AddNode(node);
  Put("/nodepool/components/pool/np010000000002",
      R"({"hostname": "np01", "state": "running", "id": "np01-PoolWorker.cloud-main-x", "name": "main", "locks_slots": true, )"
      R"("provider_name": "cloud", "supported_labels": ["small"], "paused": true})");
  NodeRequest request;
  request.SetState(RequestState::kRequested, FromSeconds(1'699'999'990));
  request.node_types = {LabelName("small")};
  request.tenant_name = "acme";
  time_.Run(others_.requests.Create("200", std::move(request), false));
  EXPECT_THAT(Status(),
              StartsWith("Check first:\n"
                         "- Provider cloud has no capacity for requests of pool main: in use are 8 of 8 "
                         "instances of the provider\n"
                         "  Raise the quota or the pool's limits, or give nodes back\n"
                         "  For 00:00:00:10; delays 1 request; more: nodepool list --provider cloud\n"
                         "- Tenant acme has 7 of 1 instances: 1 request of it waits\n"
                         "  Raise its limit in tenant-resource-limits, or wait for its jobs to end\n"));
}

TEST_F(StatusTest, AFailedUpload) {  // PAGE-20
  Put("/nodepool/images/deb/builds/b1/providers/cloud/images/0000000002",
      R"({"state": "failed", "state_time": 1699999000})");
  EXPECT_THAT(Status(),
              StartsWith("Check first:\n"
                         "- Image deb: the upload to cloud failed\n"
                         "  The builder's log says why; nodepool image-upload-retry cloud deb tries "
                         "again\n"));
}

TEST_F(StatusTest, Labels) {
  AddRequest(1'699'999'990);
  config_->common.labels[LabelName("big")] = {LabelName("big"), 0, std::nullopt};
  EXPECT_EQ(Shown({"label-list"}),
            "+-------+-----------+------------+-------+----------+--------+------+--------+---------+--------"
            "-----------+\n"
            "| Label | Min Ready | Pools      | Ready | Building | In Use | Held | Ending | Waiting | Why    "
            "           |\n"
            "+-------+-----------+------------+-------+----------+--------+------+--------+---------+--------"
            "-----------+\n"
            "| big   | 0         |            | 0     | 0        | 0      | 0    | 0      | 0       | no "
            "pool offers it |\n"
            "| small | 1         | cloud main | 1     | 0        | 0      | 0    | 0      | 1       |        "
            "           |\n"
            "+-------+-----------+------------+-------+----------+--------+------+--------+---------+--------"
            "-----------+\n");
}

TEST_F(StatusTest, ALabelSaysThatItsImageIsMissing) {
  Remove("/nodepool/images/deb/builds/b1/providers/cloud/images/0000000001");
  EXPECT_THAT(ShownAsJson({"label-list"}), HasSubstr(R"("why":"image deb has no upload in cloud")"));
}

TEST_F(StatusTest, ImageStatusForPeople) {
  Build("b2", "failed", 1'699'999'000);
  Remove("/nodepool/images/deb/builds/b1/providers/cloud/images/0000000001");
  EXPECT_EQ(
      Shown({"image-status"}),
      "+-------+--------+---------------+-------------------+------------+-------------+-------------+\n"
      "| Image | Paused | Build Request | Build Request Age | Last Build | Build Age   | Build Error |\n"
      "+-------+--------+---------------+-------------------+------------+-------------+-------------+\n"
      "| deb   | False  |               |                   | failed     | 00:00:16:40 |             |\n"
      "+-------+--------+---------------+-------------------+------------+-------------+-------------+\n");
  UseTerminal(80);
  EXPECT_EQ(Shown({"image-status"}),
            "+-------+--------+------------+-------------+--------------+----------------+\n"
            "| Image | Paused | Last Build | Build Age   | No Upload In | Labels Waiting |\n"
            "+-------+--------+------------+-------------+--------------+----------------+\n"
            "| deb   | False  | failed     | 00:00:16:40 | cloud        | small          |\n"
            "+-------+--------+------------+-------------+--------------+----------------+\n");
}

// The problems of `nodepool status`: what comes first, how many requests each delays, since when, and that
// nothing is shown as healthy that is not.

namespace json = boost::json;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ProblemsTest : public StatusTest {
 protected:
  json::array Problems() {
    return json::parse(ShownAsJson({"status"})).as_object().at("problems").as_array();
  }
  // "provider-failing/cloud 2": each problem with the requests that it delays.
  std::vector<std::string> Delays() {
    std::vector<std::string> delays;
    for (const json::value& problem : Problems()) {
      delays.push_back(fmt::format("{} {}", std::string_view(problem.at("id").as_string()),
                                   problem.at("delayed_requests").to_number<int>()));
    }
    return delays;
  }
  double SinceOf(std::string_view id) {
    for (const json::value& problem : Problems()) {
      if (problem.at("id").as_string() == id) return problem.at("since").to_number<double>();
    }
    return 0;
  }
  void AddPool(const std::string& provider, const std::string& more = "") {
    Put("/nodepool/components/pool/np02" + provider,
        fmt::format(R"({{"hostname": "np02", "state": "running", "id": "np02-PoolWorker.{0}-main-x", )"
                    R"("name": "main", "locks_slots": true, "provider_name": "{0}", "supported_labels": )"
                    R"(["small"]{1}}})",
                    provider, more));
  }
  RequestId Request(std::vector<std::string> labels, const std::string& provider = "") {
    NodeRequest request;
    request.SetState(RequestState::kRequested, FromSeconds(1'699'999'990));
    for (std::string& label : labels) request.node_types.emplace_back(std::move(label));
    request.provider = ProviderName(provider);
    return time_.Run(others_.requests.Create("200", std::move(request), false));
  }
  void Break(const std::string& key) {
    Put("/nodepool/breakers/" + key, R"({"kind": "boot", "kinds": "boot 3", "failures": 3, "attempts": 3, )"
                                     R"("said": "no host", "opened": 1699999950})");
  }
};

// PAGE-22
TEST_F(ProblemsTest, WhatDelaysMostComesFirstThenWhatLastsLongest) {
  config_->common.labels[LabelName("big")] = {LabelName("big"), 0, std::nullopt};
  Put("/nodepool/components/launcher/np010000000000",
      R"({"hostname": "np01", "state": "running", "configuration_rejected": {"since": 1699990000, )"
      R"("error": "line 5"}, "providers": {"cloud": {"state": "failing", "since": 1699999940, "fault": "401"}}})");
  Build("b2", "failed", 1'699'991'000);
  Request({"small"});
  Request({"small", "big"});
  Request({"big"});
  Request({"big"});
  EXPECT_THAT(Delays(), ElementsAre("label-unoffered/big 3", "provider-failing/cloud 2",
                                    "configuration-rejected/launcher/np01 0", "image-build-failed/deb 0"))
      << "an older image does not come before the configuration";
}

TEST_F(ProblemsTest, ARequestThatHasAnotherWayIsNotDelayed) {  // PAGE-22
  AddPool("other");
  Break("cloud");
  Request({"small"});
  EXPECT_THAT(Delays(), ElementsAre("breaker-open/cloud 0"));
  AddPool("other", R"(, "paused": true)");
  EXPECT_THAT(Delays(), ElementsAre("breaker-open/cloud 1", "quota-full/other/main 1"))
      << "each of the two would be a way";
  EXPECT_EQ(SinceOf("quota-full/other/main"), 1'699'999'990) << "since the first request waits";
  EXPECT_EQ(SinceOf("breaker-open/cloud"), 1'699'999'950);
}

TEST_F(ProblemsTest, TheRequestedProviderIsTheOnlyWay) {  // PAGE-22
  AddPool("other");
  Break("cloud:main:small");
  Request({"small"}, "other");
  EXPECT_THAT(Delays(), ElementsAre("breaker-open/cloud/main/small 0"));
  Request({"small"}, "cloud");
  EXPECT_THAT(Delays(), ElementsAre("breaker-open/cloud/main/small 1"));
}

TEST_F(ProblemsTest, ARequestWhoseNodesAreOnTheirWayIsNotDelayed) {  // PAGE-22
  Break("cloud:main");
  Node node = ReadyNode();
  node.SetState(NodeState::kBuilding, FromSeconds(1'699'999'995));
  node.allocated_to = Request({"small"});
  AddNode(node);
  EXPECT_THAT(Delays(), ElementsAre("breaker-open/cloud/main 0"));
}

TEST_F(ProblemsTest, WithoutALauncherEveryRequestWaits) {  // PAGE-22
  Remove("/nodepool/components/launcher/np010000000000");
  Remove("/nodepool/components/pool/np010000000002");
  Request({"small"});
  Request({"unknown"});
  EXPECT_THAT(Delays(), ElementsAre("no-launcher 2"));
}

TEST_F(ProblemsTest, AProviderThatNobodyServesDelaysWhatOnlyItHas) {  // PAGE-22
  Put("/nodepool/components/launcher/np010000000000", R"({"hostname": "np01", "state": "running"})");
  Remove("/nodepool/components/pool/np010000000002");
  Request({"small"});
  std::vector<std::string> delays = Delays();
  EXPECT_THAT(delays, ::testing::Contains("provider-unserved/cloud 1"));
}

TEST_F(ProblemsTest, TheScreenSaysSinceWhenAndWhatShowsMore) {  // PAGE-22
  Break("cloud");
  Request({"small"});
  EXPECT_THAT(Status(), HasSubstr("closes when a launch works\n"
                                  "  For 00:00:00:50; delays 1 request; more: nodepool info cloud\n"));
}

TEST_F(ProblemsTest, EveryKindHasACommand) {  // PAGE-22
  for (std::string_view kind : listing::ProblemKinds()) {
    std::string command = listing::CommandOf({.kind = kind, .subject = {"providers", "c1"}});
    EXPECT_THAT(command, ::testing::MatchesRegex("(nodepool|journalctl) .+")) << kind;
    EXPECT_THAT(command, Not(HasSubstr("KEY")));
  }
}

TEST_F(ProblemsTest, WhatCannotLaunchIsNotShownAsUp) {  // PAGE-23
  Break("cloud:main");
  EXPECT_THAT(Status(), HasSubstr("cloud     main  failing  1"));
  EXPECT_THAT(out_.str(), HasSubstr("cloud     openstack  np01      up"));
  Break("cloud");
  EXPECT_THAT(Status(), HasSubstr("cloud     openstack  np01      failing  00:00:00:50"));
}

TEST_F(ProblemsTest, AFailedUploadIsAProblemUntilANewerOneIsReady) {  // PAGE-23
  std::string uploads = "/nodepool/images/deb/builds/b1/providers/cloud/images/";
  Put(uploads + "0000000002", R"({"state": "failed", "state_time": 1699999000, "error": "no ssh server"})");
  Put(uploads + "0000000003", R"({"state": "uploading", "state_time": 1699999500})");
  EXPECT_THAT(Delays(), ElementsAre("image-upload-failed/deb/cloud 0")) << "it is tried again";
  EXPECT_EQ(SinceOf("image-upload-failed/deb/cloud"), 1'699'999'000);
  EXPECT_THAT(ShownAsJson({"image-status"}), HasSubstr(R"("upload_error":"cloud: no ssh server")"));
  Put(uploads + "0000000003", R"({"state": "ready", "state_time": 1699999600})");
  EXPECT_THAT(Delays(), ElementsAre());
}

TEST_F(ProblemsTest, ALabelThatNobodyOffersIsAProblemWhileARequestWantsIt) {  // PAGE-23
  config_->common.labels[LabelName("big")] = {LabelName("big"), 0, std::nullopt};
  EXPECT_THAT(Delays(), ElementsAre());
  Request({"big"});
  EXPECT_THAT(Delays(), ElementsAre("label-unoffered/big 1"));
}

}  // namespace

}  // namespace nodepool::cli
