#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::seconds;

class DriverFaultTest : public LauncherTest {
 protected:
  // The first launcher's fault of the label in pool `main` of provider `cloud`.
  std::optional<std::string> FaultOf(const std::string& label) {
    for (const ProviderStatus& provider : launchers_.front()->launcher->Providers()) {
      if (provider.name != ProviderName("cloud")) continue;
      for (const LabelStatus& status : provider.pools.at(0).labels) {
        if (status.name == LabelName(label)) return status.fault;
      }
    }
    return std::nullopt;
  }
};

// D-26
TEST_F(DriverFaultTest, ADriverThatCannotAnswerDefersOnlyItsOwnRequests) {
  AddPool("second", "main", {"other"});
  StartLauncher();
  script().label_errors.emplace(LabelName("small"), Error(Verdict::kRetry, "the cloud does not answer"));
  RequestId deferred = Request({"small"});
  RequestId served = Request({"other"});
  EXPECT_TRUE(AwaitState(served, RequestState::kFulfilled));
  time_.Advance(seconds(60));
  EXPECT_EQ(Read(deferred)->state, RequestState::kRequested);
  EXPECT_TRUE(Read(deferred)->declined_by.empty());
  EXPECT_EQ(FaultOf("small"), "the cloud does not answer");
  script().label_errors.clear();
  EXPECT_TRUE(AwaitState(deferred, RequestState::kFulfilled, seconds(11)));
  EXPECT_EQ(FaultOf("small"), std::nullopt);
}

// D-26
TEST_F(DriverFaultTest, AHandlerWaitsForADriverThatCannotAnswer) {
  script().available = driver::QuotaInformation::Limit({{"instances", 1}});
  StartLauncher();
  auto used = Use({"small"});
  RequestId waiting = Request({"small"});
  ASSERT_TRUE(AwaitState(waiting, RequestState::kPending));
  script().label_errors.emplace(LabelName("small"), Error(Verdict::kFail, "the cloud answers nonsense"));
  Return(used);
  time_.Advance(seconds(30));
  EXPECT_EQ(Read(waiting)->state, RequestState::kPending);
  script().label_errors.clear();
  EXPECT_TRUE(AwaitState(waiting, RequestState::kFulfilled, seconds(11)));
}

// D-26
TEST_F(DriverFaultTest, ALabelThatCanNeverWorkIsDeclined) {
  script().label_errors.emplace(LabelName("small"), Error(Verdict::kInvalid, "no such flavor"));
  StartLauncher();
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed));
}

TEST_F(DriverFaultTest, MinReadySurvivesADriverThatThrows) {
  label_config("small").min_ready = 1;
  script().label_errors.emplace(LabelName("small"), Error(Verdict::kRetry, "the cloud does not answer"));
  StartLauncher();
  time_.Advance(seconds(30));
  EXPECT_EQ(FreeNodes(), 0);
  script().label_errors.clear();
  EXPECT_TRUE(Await([this] { return FreeNodes() == 1; }));
}

}  // namespace
}  // namespace nodepool::launcher
