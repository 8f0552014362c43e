#include "driver/cloud/launch/node_record.h"

#include <gtest/gtest.h>

#include "driver/cloud/adapter.h"
#include "driver/cloud/api/api_error.h"
#include "driver/driver.h"

namespace nodepool::driver::cloud {

namespace {

TEST(LaunchCommentTest, WithoutChoiceAndPriceThereIsNone) {
  Instance instance;
  instance.machine_type = "m5.large";
  EXPECT_EQ(LaunchComment(instance, ""), "");
}

TEST(LaunchCommentTest, SaysWhatWhyAndThePrice) {
  Instance instance;
  instance.machine_type = "m5.large";
  EXPECT_EQ(LaunchComment(instance, "m5.large in b, the first choice"),
            "Launched as m5.large in b, the first choice");
  instance.hourly_price = 0.096;
  EXPECT_EQ(LaunchComment(instance, ""), "Launched as m5.large; 0.096 per hour");
  instance.choice = "m5.large in a, chosen by the cloud";
  EXPECT_EQ(LaunchComment(instance, ""), "Launched as m5.large in a, chosen by the cloud; 0.096 per hour");
}

TEST(LaunchCommentTest, OnlyItsOwnKindIsReplaced) {
  EXPECT_TRUE(IsLaunchComment("Launched as x"));
  EXPECT_FALSE(IsLaunchComment("held for Ann"));
}

template <class E>
FailureKind KindOfError(E error) {
  return KindOf(Failure(std::make_exception_ptr(std::move(error))));
}

FailureKind KindOfAnswer(int status, const std::string& message, const std::string& code = "") {
  return KindOfError(api::ApiError(Verdict::kFail, message, status, code));
}

FailureKind KindOfLaunch(LaunchError::Kind kind, const std::string& message) {
  return KindOfError(LaunchError(kind, message));
}

// BRK-1
TEST(FailureKinds, FollowTheVerdict) {
  EXPECT_EQ(KindOfError(Error(Verdict::kQuota, "no more cores")), FailureKind::kQuota);
  EXPECT_EQ(KindOfError(Refusal(Refusal::Kind::kQuota, "no more cores")), FailureKind::kQuota);
  EXPECT_EQ(KindOfError(Error(Verdict::kTimedOut, "the launch timed out")), FailureKind::kBoot);
  EXPECT_EQ(KindOfError(Error(Verdict::kFail, "anything")), FailureKind::kOther);
  EXPECT_EQ(KindOfError(Error(Verdict::kInvalid, "image debian is not there")), FailureKind::kImage);
  EXPECT_EQ(KindOfError(Error(Verdict::kInvalid, "flavor m1 is not there")), FailureKind::kOther);
  EXPECT_EQ(KindOfError(std::runtime_error("a bug")), FailureKind::kOther);
}

// BRK-1
TEST(FailureKinds, FollowTheAdapter) {
  using Kind = LaunchError::Kind;
  EXPECT_EQ(KindOfLaunch(Kind::kCapacity, "no host"), FailureKind::kCapacity);
  EXPECT_EQ(KindOfLaunch(Kind::kStatus, "the server is in state ERROR"), FailureKind::kBoot);
  EXPECT_EQ(KindOfLaunch(Kind::kStatus, "ErrImagePull: no such tag"), FailureKind::kImage);
  EXPECT_EQ(KindOfLaunch(Kind::kNetwork, "no address"), FailureKind::kBoot);
}

// BRK-1
TEST(FailureKinds, FollowTheCloudsAnswer) {
  for (int status : {401, 403, 407})
    EXPECT_EQ(KindOfAnswer(status, "not you"), FailureKind::kAuthentication) << status;
  EXPECT_EQ(KindOfAnswer(400, "no", "AuthFailure"), FailureKind::kAuthentication);
  EXPECT_EQ(KindOfAnswer(400, "no", "UnauthorizedOperation"), FailureKind::kAuthentication);
  EXPECT_EQ(KindOfAnswer(400, "no", "InvalidAMIID.NotFound"), FailureKind::kImage);
  EXPECT_EQ(KindOfAnswer(400, "Image debian is not active"), FailureKind::kImage);
  EXPECT_EQ(KindOfAnswer(500, "the image service is down"), FailureKind::kOther);
  EXPECT_EQ(KindOfAnswer(400, "bad flavor"), FailureKind::kOther);
}

}  // namespace

}  // namespace nodepool::driver::cloud
