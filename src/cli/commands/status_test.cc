// What `nodepool status` and `label-list` print about a site, and which columns `image-status` adds for
// operators.
#include "cli/commands/status.h"

#include <gmock/gmock.h>

#include "cli/commands/label_list.h"
#include "cli/commands/record_listings.h"
#include "cli/fixture_for_test.h"

namespace nodepool::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A launcher, a builder, a provider with a pool, and an image that is uploaded to it. The time is
// 1,700,000,000.
class StatusTest : public CommandTest {
 protected:
  void SetUp() override {
    Configure();
    Announce(R"("cloud": {"state": "up", "since": 1699999940, "limit": {"instances": 8}})");
    Put("/nodepool/components/builder/nb010000000001",
        R"({"hostname": "nb01", "state": "running", "version": "0.1.0"})");
    Put("/nodepool/components/pool/np010000000002",
        R"({"hostname": "np01", "state": "running", "id": "np01-PoolWorker.cloud-main-x", "name": "main", "locks_slots": true, )"
        R"("provider_name": "cloud", "supported_labels": ["small"]})");
    Build("b1", "ready", 1'699'990'000);
    Put("/nodepool/images/deb/builds/b1/providers/cloud/images/0000000001",
        R"({"state": "ready", "state_time": 1699990100})");
    Node node = ReadyNode();
    node.resources = {{"instances", 1}};
    AddNode(node);
    context_.ask_launcher = [this](std::string, std::string) { return Answer(); };
  }

  // An openstack-like provider whose pool boots `small` from image `deb`.
  void Configure() {
    config_->common.providers = {{ProviderName("cloud"), "openstack", {}}};
    config_->common.labels[LabelName("small")] = {LabelName("small"), 1, std::nullopt};
    config_->common.diskimages[ImageName("deb")].name = ImageName("deb");
    auto label = std::make_shared<driver::LabelConfig>();
    label->name = LabelName("small");
    label->diskimage = ImageName("deb");
    auto pool = std::make_shared<driver::PoolConfig>();
    pool->name = PoolName("main");
    pool->Offer(label);
    auto provider = std::make_shared<driver::ProviderConfig>();
    provider->name = ProviderName("cloud");
    provider->manages_images = true;
    provider->diskimages[ImageName("deb")] = std::make_shared<driver::ProviderDiskImage>();
    provider->pools[pool->name] = pool;
    config_->providers[provider->name] = provider;
  }

  void Announce(const std::string& providers) {
    Put("/nodepool/components/launcher/np010000000000",
        fmt::format(R"({{"hostname": "np01", "state": "running", "version": "0.1.0", "providers": {{{}}}}})",
                    providers));
  }
  void Build(const std::string& id, const std::string& state, int time) {
    Put("/nodepool/images/deb/builds/" + id,
        fmt::format(R"({{"state": "{}", "state_time": {}, "builder": "nb01"}})", state, time));
  }
  RequestId AddRequest(double created) {
    NodeRequest request;
    request.SetState(RequestState::kRequested, FromSeconds(created));
    request.node_types = {LabelName("small"), LabelName("small")};
    request.requestor = "zuul";
    return time_.Run(others_.requests.Create("200", std::move(request), false));
  }
  Task<std::string> Answer() {
    ++questions_;
    co_return answer_;
  }
  void Remove(const std::string& path) { zk_.tree().Delete({path, -1}, 0); }
  std::string Status() { return Shown(StatusListing(Output::kTable)); }
  void UseTerminal(std::size_t width) {
    context_.is_terminal = true;
    context_.terminal_width = [width] { return width; };
  }

  std::string answer_ = R"({"requests": []})";
  int questions_ = 0;
};

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
  EXPECT_THAT(ShownAsJson(StatusListing(Output::kJson)),
              StartsWith(R"({"look_at_first":[],"daemons":[{"kind":"builder","hostname":"nb01",)"
                         R"("state":"running","version":"0.1.0"},)"));
  EXPECT_THAT(out_.str(),
              HasSubstr(R"("pools":[{"provider":"cloud","pool":"main","state":"up","ready":1,)"
                        R"("building":0,"in_use":0,"held":0,"ending":0}],"requests":[],"images":[]})"));
}

TEST_F(StatusTest, AProviderThatCannotBeUsedComesFirst) {
  Announce(R"("cloud": {"state": "failing", "since": 1699999940, "fault": "401 from keystone"})");
  Build("b2", "failed", 1'699'999'000);
  EXPECT_THAT(Status(), StartsWith("Check first:\n"
                                   "- The launcher on np01 cannot use provider cloud: 401 from keystone\n"
                                   "- Image deb: its last build failed 16 min ago; log: nb01:/var/log/nodepool/builds/deb-b2.log\n"));
}

TEST_F(StatusTest, WhoIsMissingIsNamed) {
  Remove("/nodepool/components/builder/nb010000000001");
  EXPECT_THAT(Status(), StartsWith("Check first:\n"
                                   "- No builder runs: no image is built or uploaded\n"));
  Remove("/nodepool/components/launcher/np010000000000");
  Remove("/nodepool/components/pool/np010000000002");
  EXPECT_THAT(Status(), StartsWith("Check first:\n"
                                   "- No launcher runs: nobody takes requests or deletes nodes\n"
                                   "- No builder runs: no image is built or uploaded\n"
                                   "\n"
                                   "Provider"));
  EXPECT_THAT(out_.str(), HasSubstr("cloud     main  unserved"));
}

TEST_F(StatusTest, WhatNobodyServesOrOffersIsNamed) {
  config_->common.providers.push_back({ProviderName("new"), "fake", {}});
  config_->common.labels[LabelName("big")] = {LabelName("big"), 2, std::nullopt};
  EXPECT_THAT(Status(), StartsWith("Check first:\n"
                                   "- No launcher serves provider new\n"
                                   "- No pool offers label big, whose min-ready is 2\n"));
}

TEST_F(StatusTest, RequestsThatWaitForLongestComeFirstAndSayWhy) {
  RequestId young = AddRequest(1'699'999'990);
  EXPECT_THAT(Status(), StartsWith("All is well.\n"));
  RequestId old = AddRequest(1'699'990'000);
  answer_ = fmt::format(
      R"({{"requests":[{{"id":"{}","waits":[{{"provider":"cloud","pool":"main","text":"no capacity: cores"}}]}}]}})",
      old);
  UseTerminal(160);
  EXPECT_THAT(Status(), StartsWith("Check first:\n"
                                   "- 1 request waits for more than 5 minutes, 200-0000000001 for longest: "
                                   "cloud main: no capacity: cores\n"));
  EXPECT_THAT(
      out_.str(),
      HasSubstr(
          "Request         Waits        State      Labels       Requestor  Why\n"
          "200-0000000001  00:02:46:40  requested  small,small  zuul       cloud main: no capacity: cores\n"
          "200-0000000000  00:00:00:10  requested  small,small  zuul\n"));
  EXPECT_EQ(young.value, "200-0000000000");
}

TEST_F(StatusTest, ATableListsTenRequestsAndJsonAll) {
  for (int i = 0; i < 12; ++i) AddRequest(1'699'999'900 + i);
  EXPECT_THAT(Status(), HasSubstr("200-0000000009"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("200-0000000010")));
  EXPECT_THAT(ShownAsJson(StatusListing(Output::kJson)), HasSubstr("200-0000000011"));
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
  EXPECT_THAT(ShownAsJson(StatusListing(Output::kJson)),
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

TEST_F(StatusTest, Labels) {
  AddRequest(1'699'999'990);
  config_->common.labels[LabelName("big")] = {LabelName("big"), 0, std::nullopt};
  EXPECT_EQ(Shown(LabelListing()),
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
  EXPECT_THAT(ShownAsJson(LabelListing()), HasSubstr(R"("why":"image deb has no upload in cloud")"));
}

TEST_F(StatusTest, ImageStatusForPeople) {
  Build("b2", "failed", 1'699'999'000);
  Remove("/nodepool/images/deb/builds/b1/providers/cloud/images/0000000001");
  EXPECT_EQ(Shown(ImageStatusListing()),
            "+-------+--------+---------------+-------------------+\n"
            "| Image | Paused | Build Request | Build Request Age |\n"
            "+-------+--------+---------------+-------------------+\n"
            "| deb   | False  |               |                   |\n"
            "+-------+--------+---------------+-------------------+\n");
  UseTerminal(80);
  EXPECT_EQ(Shown(ImageStatusListing()),
            "+-------+--------+------------+-------------+--------------+----------------+\n"
            "| Image | Paused | Last Build | Build Age   | No Upload In | Labels Waiting |\n"
            "+-------+--------+------------+-------------+--------------+----------------+\n"
            "| deb   | False  | failed     | 00:00:16:40 | cloud        | small          |\n"
            "+-------+--------+------------+-------------+--------------+----------------+\n");
}

}  // namespace
}  // namespace nodepool::cli
