#include "driver/cloud/api/api_error.h"

#include <gtest/gtest.h>

namespace nodepool::driver::cloud::api {
namespace {

TEST(FaultText, OfAnyBody) {
  EXPECT_EQ(FaultText(R"({"forbidden": {"message": "not you", "code": 403}})"), "not you");
  EXPECT_EQ(FaultText(R"({"message": "one", "more": {"message": "two"}})"), "one; two");
  EXPECT_EQ(FaultText(R"({"error": "plain"})"), "plain");
  EXPECT_EQ(FaultText(R"({"VendorError": "plain"})"), "");
  EXPECT_EQ(FaultText(R"({"VendorError": "plain"})", {"VendorError"}), "plain");
  EXPECT_EQ(FaultText("<h1>No</h1>\n <p>luck</p>"), "No luck");
  EXPECT_EQ(FaultText(R"([1])"), "");
  EXPECT_LE(FaultText(std::string(100'000, 'x')).size(), 700u);
}

TEST(ApiErrors, HaveTheStatusAndItsReasonIfTheBodyHasNoText) {
  ApiError error = MakeApiError("GET things", 413, ReadFault(413, ""));
  EXPECT_EQ(error.message(), "GET things: 413 Payload Too Large");
  EXPECT_EQ(error.verdict(), Verdict::kInvalid);
  EXPECT_EQ(StatusOf(Failure(std::make_exception_ptr(error))), 413);
  EXPECT_EQ(StatusOf(Failure(Error(Verdict::kRetry, "no answer"))), 0);
  EXPECT_EQ(StatusOf(Outcome<int>(7)), 0);
}

TEST(ApiErrors, VerdictsOfStatuses) {
  EXPECT_EQ(VerdictOfStatus(404), Verdict::kNotFound);
  EXPECT_EQ(VerdictOfStatus(409), Verdict::kConflict);
  EXPECT_EQ(VerdictOfStatus(401), Verdict::kRetry);
  EXPECT_EQ(VerdictOfStatus(407), Verdict::kRetry);
  EXPECT_EQ(VerdictOfStatus(408), Verdict::kRetry);
  EXPECT_EQ(VerdictOfStatus(429), Verdict::kRateLimited);
  EXPECT_EQ(VerdictOfStatus(403), Verdict::kInvalid);
  EXPECT_EQ(VerdictOfStatus(502), Verdict::kRetry);
}

}  // namespace
}  // namespace nodepool::driver::cloud::api
