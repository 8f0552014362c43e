// The problems of `nodepool status`: what comes first, how many requests each delays, since when, and that
// nothing is shown as healthy that is not.

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "cli/commands/status_fixture_for_test.h"
#include "listing/problem.h"

namespace nodepool::cli {
namespace {

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
