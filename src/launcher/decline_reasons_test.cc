#include "model/decline_reasons.h"

#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What a failed request says of the pools that declined it (launcher.md 9.2).
class DeclineReasonsTest : public LauncherTest {
 protected:
  std::vector<std::string> ReasonsOfFailed(std::vector<std::string> labels) {
    RequestId id = Request(std::move(labels));
    EXPECT_TRUE(AwaitState(id, RequestState::kFailed));
    return DeclineReasons(*Read(id));
  }
  // By id, as the launcher shows them.
  std::map<RequestId, RequestStatus> Shown(const Running& running) {
    std::map<RequestId, RequestStatus> shown;
    running.launcher->ForEachRequest([&](const RequestStatus& status) {
      shown[status.id] = status;
      return true;
    });
    return shown;
  }
};

TEST_F(DeclineReasonsTest, ALabelThatNoPoolHas) {
  AddPool("hosts", "main", {"big"});
  StartLauncher();
  EXPECT_THAT(ReasonsOfFailed({"smal"}), ElementsAre("cloud main: it has no label smal; did you mean small?",
                                                     "hosts main: it has no label smal"));
}

TEST_F(DeclineReasonsTest, MoreThanThePoolMayHave) {
  AddPool("cloud", "main", {"small"}).max_servers = 5;
  StartLauncher();
  EXPECT_THAT(ReasonsOfFailed(std::vector<std::string>(6, "small")),
              ElementsAre("cloud main: 6 instances needed, the pool's max-servers is 5"));
}

TEST_F(DeclineReasonsTest, MoreThanTheCloudHas) {
  script().available = driver::QuotaInformation::Limit({{"cores", 3}});
  StartLauncher();
  EXPECT_THAT(ReasonsOfFailed({"small", "small"}),
              ElementsAre("cloud main: 4 cores needed, the quota in the cloud is 3"));
}

TEST_F(DeclineReasonsTest, APoolThatIsDisabled) {
  AddPool("cloud", "main", {"small"}).max_servers = 0;
  StartLauncher();
  EXPECT_THAT(ReasonsOfFailed({"small"}), ElementsAre("cloud main: its max-servers is 0, which disables it"));
}

TEST_F(DeclineReasonsTest, AnImageThatIsMissing) {
  script().not_ready = {LabelName("small")};
  StartLauncher();
  EXPECT_THAT(ReasonsOfFailed({"small"}),
              ElementsAre("cloud main: image image of label small is not available"));
}

TEST_F(DeclineReasonsTest, ALabelThatCannotBeLaunched) {
  script().label_errors.emplace(LabelName("small"), Error(Verdict::kInvalid, "no such flavor"));
  StartLauncher();
  EXPECT_THAT(ReasonsOfFailed({"small"}),
              ElementsAre("cloud main: label small cannot be launched: no such flavor"));
}

TEST_F(DeclineReasonsTest, ALaunchThatFailed) {
  script().launch_error = [](int) { return Error(Verdict::kFail, "Image not found:\nc851"); };
  StartLauncher();
  EXPECT_THAT(ReasonsOfFailed({"small"}),
              ElementsAre("cloud main: the launch of small failed: Image not found: c851"));
}

TEST_F(DeclineReasonsTest, ARequestThatSucceedsHasNoneAndNoKeyForThem) {
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_THAT(Read(id)->foreign.unknown, IsEmpty());
}

TEST_F(DeclineReasonsTest, AreShownForAnHourAfterTheClientHasDeletedTheRequest) {
  Running& running = StartLauncher();
  RequestId id = Request({"smal"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_FALSE(Shown(running).at(id).is_deleted);
  DeleteRequest(id);
  RequestId other = Request({"small"});
  time_.Advance(minutes(59));
  RequestStatus kept = Shown(running).at(id);
  EXPECT_TRUE(kept.is_deleted);
  EXPECT_EQ(kept.record->state, RequestState::kFailed);
  EXPECT_THAT(DeclineReasons(*kept.record),
              ElementsAre("cloud main: it has no label smal; did you mean small?"));
  EXPECT_FALSE(Shown(running).at(other).is_deleted);
  time_.Advance(minutes(2));
  EXPECT_FALSE(Shown(running).contains(id));
}

TEST_F(DeclineReasonsTest, OfVeryManyDeletedRequestsTheLastAreShown) {
  Running& running = StartLauncher();
  std::vector<RequestId> ids;
  for (int i = 0; i < 1010; ++i) ids.push_back(Request({"smal"}));
  for (const RequestId& id : ids) ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  time_.Advance(seconds(5));
  for (const RequestId& id : ids) DeleteRequest(id);
  time_.Advance(seconds(5));
  auto shown = Shown(running);
  EXPECT_EQ(shown.size(), 1000u);
  EXPECT_FALSE(shown.contains(ids.front()));
  EXPECT_TRUE(shown.contains(ids.back()));
}

TEST_F(DeclineReasonsTest, OfRequestsThatSucceededNothingIsKept) {
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  DeleteRequest(id);
  time_.Advance(seconds(5));
  EXPECT_THAT(Shown(running), IsEmpty());
}

}  // namespace
}  // namespace nodepool::launcher
