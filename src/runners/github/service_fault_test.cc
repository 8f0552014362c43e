#include "runners/github/service_fault.h"

#include <gmock/gmock.h>

namespace nodepool::runners::github {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const WallTime kFaultNow = FromSeconds(1'700'000'000);

net::HttpReply Reply(int status, std::string body, net::HttpHeaders headers = {}) {
  return {status, std::move(headers), std::move(body)};
}

// RUN-11
TEST(ServiceFaultTest, RefusalsOfAllKindsAreRead) {
  std::string exception =
      "GitHub.Actions.Runtime.WebApi.JobStillRunningException, GitHub.Actions.Runtime.WebApi";
  ServiceError error = ErrorOf("DELETE agent", Reply(400, "\xef\xbb\xbf{\"typeName\": \"" + exception +
                                                              "\", \"message\": \"is running\"}"));
  EXPECT_TRUE(error.Is("JobStillRunningException"));
  EXPECT_FALSE(error.Is("StillRunningException"));
  EXPECT_FALSE(error.Is("JobStill"));
  EXPECT_EQ(error.message(), "DELETE agent: status 400: is running");
  EXPECT_EQ(ErrorOf("x", Reply(502, "<html>bad</html>")).message(),
            "x: status 502: an answer in HTML, perhaps of a proxy");
  EXPECT_EQ(ErrorOf("x", Reply(500, "plain\x1b[2J\n")).message(), "x: status 500: plain\\x1b[2J");
  EXPECT_EQ(ErrorOf("x", Reply(404, "")).message(), "x: status 404");
  EXPECT_LT(ErrorOf("x", Reply(500, std::string(100'000, 'a'))).message().size(), 400);
}

// RUN-11
TEST(ServiceFaultTest, IdsOfTheRequestAreNamed) {
  ServiceError error = ErrorOf("x", Reply(500, "", {{"activityid", "a-1"}, {"x-github-request-id", "b\n2"}}));
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("activityid a-1"), HasSubstr("b\\x0a2"), Not(HasSubstr("\n"))));
}

TEST(ServiceFaultTest, Verdicts) {
  EXPECT_EQ(ErrorOf("x", Reply(404, "")).verdict(), Verdict::kNotFound);
  EXPECT_EQ(ErrorOf("x", Reply(409, "")).verdict(), Verdict::kConflict);
  EXPECT_EQ(ErrorOf("x", Reply(429, "")).verdict(), Verdict::kRateLimited);
  EXPECT_EQ(ErrorOf("x", Reply(503, "")).verdict(), Verdict::kRetry);
  EXPECT_EQ(ErrorOf("x", Reply(401, "")).verdict(), Verdict::kRetry);
  EXPECT_EQ(ErrorOf("x", Reply(422, "")).verdict(), Verdict::kInvalid);
}

// RUN-61, RUN-62
TEST(ServiceFaultTest, PausesThatAreAskedFor) {
  EXPECT_EQ(AskedPause(Reply(403, "", {{"retry-after", "30"}}), kFaultNow), seconds(30));
  EXPECT_EQ(AskedPause(Reply(429, ""), kFaultNow), seconds(60));
  EXPECT_EQ(AskedPause(Reply(403, "", {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "1700000100"}}),
                       kFaultNow),
            seconds(101));
  EXPECT_EQ(AskedPause(Reply(403, ""), kFaultNow), std::nullopt);
  EXPECT_EQ(AskedPause(Reply(500, "", {{"retry-after", "30"}}), kFaultNow), std::nullopt);
}

// RUN-62: nothing from outside stops us for ever.
TEST(ServiceFaultTest, PausesAreBounded) {
  EXPECT_EQ(AskedPause(Reply(429, "", {{"retry-after", "999999999"}}), kFaultNow), std::chrono::hours(2));
  EXPECT_EQ(AskedPause(Reply(429, "", {{"retry-after", "-5"}}), kFaultNow), seconds(1));
  EXPECT_EQ(AskedPause(Reply(429, "", {{"retry-after", "soon"}}), kFaultNow), seconds(60));
  EXPECT_EQ(
      AskedPause(Reply(403, "", {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "x"}}), kFaultNow),
      seconds(60));
}

TEST(ServiceFaultTest, WhatIsNoJsonIsAnError) {
  EXPECT_THROW(ReadJson("x", Reply(200, "<html>")), Error);
  EXPECT_TRUE(ReadJson("x", Reply(200, "\xef\xbb\xbf{}")).is_object());
}

}  // namespace
}  // namespace nodepool::runners::github
