// What a cloud lacked when it was last read may be there when a request comes.
#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::seconds;

class LookAgainTest : public LauncherTest {
 protected:
  // A reading of the cloud that takes a second and finds the image that has appeared.
  Task<> FindImage() {
    co_await time_.loop().SleepFor(seconds(1));
    script().not_ready.clear();
  }
  Task<> Fail() {
    co_await time_.loop().SleepFor(seconds(1));
    if (failures_ > 0 && failures_-- > 0) throw Error(Verdict::kRetry, "the cloud is away");
    script().not_ready.clear();
  }

  Task<> MendLabel() {
    script().label_errors.clear();
    co_return;
  }

  int failures_ = 0;
};

// drivers.md 5.12
TEST_F(LookAgainTest, AnImageThatHasAppearedServesTheRequest) {
  script().not_ready = {LabelName("small")};
  script().look_again = [this] { return FindImage(); };
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(script().looks, 1);
  EXPECT_TRUE(Read(id)->declined_by.empty());
}

TEST_F(LookAgainTest, ALabelInErrorThatIsMendedServesTheRequest) {
  script().label_errors.emplace(LabelName("small"), Error(Verdict::kInvalid, "no such flavor"));
  script().look_again = [this] { return MendLabel(); };
  StartLauncher();
  RequestId id = Request({"small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

TEST_F(LookAgainTest, AnImageThatIsStillMissingFailsTheRequestAfterOneLook) {
  script().not_ready = {LabelName("small")};
  StartLauncher();
  RequestId id = Request({"small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(script().looks, 1);
}

TEST_F(LookAgainTest, WithoutAnAnswerNothingIsDeclined) {
  failures_ = 3;
  script().not_ready = {LabelName("small")};
  script().look_again = [this] { return Fail(); };
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(script().looks, 4);
}

TEST_F(LookAgainTest, ALabelThatIsNotOfferedNeedsNoLook) {
  StartLauncher();
  RequestId id = Request({"no-such-label"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(script().looks, 0);
}

}  // namespace
}  // namespace nodepool::launcher
