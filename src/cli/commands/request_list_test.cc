#include <gmock/gmock.h>

#include "cli/fixture_for_test.h"
#include "model/decline_reasons.h"

namespace nodepool::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RequestDetailTest : public CommandTest {
 protected:
  void SetUp() override {
    NodeRequest request;
    request.SetState(RequestState::kRequested, FromSeconds(1'699'999'940));
    request.node_types = {LabelName("small")};
    request.requestor = "zuul";
    request.tenant_name = "t1";
    id_ = time_.Run(others_.requests.Create("200", std::move(request), false));
    context_.ask_launcher = [this](LauncherAddress launcher, std::string target) {
      return Answer(std::move(launcher.hostname), std::move(target));
    };
    for (const char* hostname : {"np01", "np02"}) AddLauncher(hostname);
    AddLauncher("np01");  // a second process on the same host
  }
  void AddLauncher(const char* hostname) {
    std::string path = fmt::format("/nodepool/components/launcher/{}{:010}", hostname, ++launchers_);
    std::string record =
        fmt::format(R"({{"hostname": "{}", "kind": "launcher", "state": "running"}})", hostname);
    time_.Run(zk::EnsurePath(*others_client_, "/nodepool/components/launcher"));
    zk_.tree().Create({path, record}, 0, time_.clock().Now());
  }
  Task<std::string> Answer(std::string hostname, std::string target) {
    EXPECT_EQ(target, "/api/v1/requests");
    asked_.push_back(hostname);
    if (!answers_.contains(hostname)) throw Error(Verdict::kRetry, "timed out");
    co_return answers_.at(hostname);
  }

  RequestId id_;
  int launchers_ = 0;
  std::vector<std::string> asked_;
  std::map<std::string, std::string> answers_;
};

TEST_F(RequestDetailTest, SaysWhyARequestWaits) {
  answers_["np01"] = fmt::format(
      R"({{"requests":[{{"id":"{}","waits":[{{"provider":"cloud","pool":"main","reason":"tenant-limit",)"
      R"("text":"tenant t1 has 8 of max-servers 8"}},{{"provider":"other","pool":"main",)"
      R"("reason":"others-can-serve","text":"left to cloud main, which has its labels"}}]}}]}})",
      id_);
  Shown({"request-list", "--detail"});
  EXPECT_THAT(asked_, ::testing::UnorderedElementsAre("np01", "np02"));
  EXPECT_THAT(out_.str(),
              HasSubstr("| Age         | Tenant | Waits For                        | Declined Because |"));
  EXPECT_THAT(out_.str(), HasSubstr("| t1     | tenant t1 has 8 of max-servers 8 |"));
  EXPECT_EQ(log_.Count("Why requests wait is not known of all: launcher np02 does not answer: timed out"), 1);
  EXPECT_THAT(Shown({"request-list", "--all-pools"}),
              HasSubstr("| left to cloud main, which has its labels"));
  EXPECT_THAT(ShownAsJson({"request-list", "--detail"}),
              HasSubstr(R"("waits":[{"launcher":"np01","provider":"cloud","pool":"main",)"
                        R"("reason":"tenant-limit","text":"tenant t1 has 8 of max-servers 8"},)"));
}

TEST_F(RequestDetailTest, SaysWhyARequestFailed) {
  NodeRequest request;
  request.SetState(RequestState::kFailed, FromSeconds(1'699'999'940));
  request.node_types = {LabelName("smal")};
  AddDeclineReason(request, "cloud main: it has no label smal; did you mean small?");
  AddDeclineReason(request, "hosts main: it has no label smal");
  time_.Run(others_.requests.Create("200", std::move(request), false));
  EXPECT_THAT(Shown({"request-list", "--detail"}),
              AllOf(HasSubstr("| cloud main: it has no label smal; did you mean small? |"),
                    HasSubstr("| hosts main: it has no label smal                      |")));
  EXPECT_THAT(ShownAsJson({"request-list", "--detail"}),
              HasSubstr(R"("decline_reasons":["cloud main: it has no label smal; did you mean small?",)"
                        R"("hosts main: it has no label smal"])"));
}

TEST_F(RequestDetailTest, RequestsThatFailedAndAreDeletedFollow) {
  answers_["np01"] = R"({"requests":[{"id":"100-0000000042","state":"failed","age":90,"labels":["large"],)"
                     R"("requestor":"zuul","tenant":"t2","priority":3,"event_id":"e1","nodes":[],)"
                     R"("declined_by":["np01-x"],"waits":[],"decline_reasons":["cloud main: it is full"],)"
                     R"("is_deleted":true}]})";
  answers_["np02"] = answers_["np01"];
  std::string json = ShownAsJson({"request-list", "--detail"});
  EXPECT_THAT(json, HasSubstr(R"({"id":"100-0000000042","relative_priority":3,"state":"failed",)"
                              R"("requestor":"zuul","node_types":["large"],"nodes":[],)"
                              R"("declined_by":["np01-x"],"event_id":"e1",)"));
  EXPECT_THAT(json, HasSubstr(R"("decline_reasons":["cloud main: it is full"])"));
  EXPECT_LT(json.find(id_.value), json.find("100-0000000042"));
  EXPECT_EQ(json.find("100-0000000042"), json.rfind("100-0000000042")) << "both launchers remember it";
}

TEST_F(RequestDetailTest, TheListStandsWhateverLaunchersAnswer) {
  for (const char* answer : {"", "[]", "{}", R"({"requests":[1]})", R"({"requests":[{"id":"x"}]})",
                             R"({"requests":[{"id":"x","waits":[1]}]})"}) {
    answers_["np01"] = answer;
    int complaints = log_.Count("Why requests wait is not known of all: launcher np01");
    EXPECT_THAT(Shown({"request-list", "--detail"}), HasSubstr(id_.value));
    EXPECT_EQ(log_.Count("Why requests wait is not known of all: launcher np01"), complaints + 1) << answer;
  }
}

}  // namespace
}  // namespace nodepool::cli
