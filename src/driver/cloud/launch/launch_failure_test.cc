#include "driver/cloud/launch/launch_failure.h"

#include <gtest/gtest.h>

#include "driver/cloud/adapter.h"
#include "driver/cloud/api/api_error.h"
#include "driver/refusal.h"

namespace nodepool::driver::cloud {
namespace {

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
