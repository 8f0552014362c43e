// What `nodepool runners` prints about sets of runners and their jobs.

#include <gmock/gmock.h>

#include "cli/fixture_for_test.h"
#include "model/lease.h"

namespace nodepool::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// One set with a job that waits, one that runs, one that was lost, and a runner that has no node yet.
class RunnersCommandTest : public CommandTest {
 protected:
  void SetUp() override {
    Put("/nodepool/runners/sets/octo/small",
        R"({"state": "listening", "since": 1699999000, "waiting": 1, "max_runners": 4, "why": "1 of their nodes are requested", )"
        R"("jobs": [{"request": 7, "repository": "octo/app", "workflow": ".github/workflows/ci.yaml", "job": "test", )"
        R"("queued_time": 1699999990}], "lost": [{"repository": "octo/lib", "job": "build", "node": "0000000009", )"
        R"("reason": "its node is gone", "time": 1699999000}]})");
    Put("/nodepool/runners/runs/00000001",
        R"({"state": "job", "service": "octo", "set": "small", "runner_name": "np-1", "node": "0000000004", )"
        R"("repository": "octo/app", "job": "build", "run_url": "https://github.com/octo/app/actions/runs/1", "job_time": 1699999700})");
    Put("/nodepool/runners/runs/00000002",
        R"({"state": "wanted", "service": "octo", "set": "small", "runner_name": "np-2", "lease": "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee", )"
        R"("created_time": 1699999995})");
    context_.ask_launcher = [](LauncherAddress, std::string) -> Task<std::string> {
      co_return R"({"requests":[{"id":"200-0000000000","waits":[{"provider":"cloud","pool":"main","reason":"capacity","text":"uses 2 of 2 cores"}]}]})";
    };
  }
  void AddWaitingRequest() {
    Put("/nodepool/components/launcher/np010000000000",
        R"({"hostname": "np01", "state": "running", "version": "0.1.0"})");
    Lease lease;
    lease.client = "runners:octo";
    lease.labels = {LabelName("small")};
    NodeRequest request = RequestFor(LeaseId(std::string(32, 'e')), lease, FromSeconds(1'699'999'995));
    time_.Run(others_.requests.Create("200", std::move(request), false));
  }
};

// RUN-73
TEST_F(RunnersCommandTest, SetsAndTheirJobs) {
  std::string shown = Shown({"runners", "--wide"});
  EXPECT_THAT(shown, HasSubstr("octo/small"));
  EXPECT_THAT(shown, HasSubstr("1 of their nodes are requested"));
  EXPECT_THAT(shown, HasSubstr("its node is gone"));
  EXPECT_THAT(shown, HasSubstr("https://github.com/octo/app/actions/runs/1"));
  EXPECT_THAT(
      ShownAsJson({"runners"}),
      HasSubstr(R"("repository":"octo/app","job":"build","workflow":null,"node":"0000000004","why":null)"));
}

// RUN-42, RUN-73
TEST_F(RunnersCommandTest, WhyARunnerHasNoNodeIsAsLaunchersSay) {
  EXPECT_THAT(Shown({"runners", "--wide"}), HasSubstr("a node is requested"));
  AddWaitingRequest();
  EXPECT_THAT(Shown({"runners", "--wide"}), HasSubstr("cloud main uses 2 of 2 cores"));
}

// RUN-73: names come from strangers.
TEST_F(RunnersCommandTest, HostileNamesObeyNobody) {
  Put("/nodepool/runners/runs/00000003",
      R"({"state": "job", "service": "octo", "set": "sm\u001b[2Jall", "runner_name": "np-3", "node": "0000000004\n", )"
      R"("repository": "octo/\u202eapp", "job": "b\u001b]0;x\u0007\nERROR all is lost", "workflow": "\u0000", )"
      R"("run_url": "https://x/\r\n"})");
  for (const std::string& shown :
       {Shown({"runners", "--wide"}), Shown({"status"}), Shown({"list", "--detail"})}) {
    for (const char* bad : {"\x1b", "\x07", "\r", "\xe2\x80\xae", "\nERROR"})
      EXPECT_THAT(shown, Not(HasSubstr(bad)));
  }
  EXPECT_THAT(Shown({"runners", "--wide"}), HasSubstr("\\x1b]0;x\\x07"));
}

// RUN-53, RUN-73
TEST_F(RunnersCommandTest, TheStatusNamesLostJobs) {
  EXPECT_THAT(
      Shown({"status"}),
      HasSubstr("- The job build of octo/lib was lost on node 0000000009: its node is gone\n"
                "  Run it again in the service, which fails it after some minutes and does not repeat it\n"));
}

}  // namespace
}  // namespace nodepool::cli
