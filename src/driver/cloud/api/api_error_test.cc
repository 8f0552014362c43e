#include "driver/cloud/api/api_error.h"

#include <gtest/gtest.h>

namespace nodepool::driver::cloud::api {

namespace {

TEST(FaultText, OfAnyBody) {
  EXPECT_EQ(FaultText(R"({"forbidden": {"message": "not you", "code": 403}})"), "not you");
  EXPECT_EQ(FaultText(R"({"message": "one", "more": {"message": "two"}})"), "one; two");
  EXPECT_EQ(FaultText(R"({"error": "plain"})"), "plain");
  EXPECT_EQ(FaultText(R"({"message": "", "error": "plain"})"), "plain");
  EXPECT_EQ(FaultText(R"({"message": "one", "error": ""})"), "one");
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

TEST(CodeSetTest, CodesAndWhatBeginsOrEndsAlike) {
  const CodeSet codes = {"QUOTA", "IP_SPACE*", "*.NotFound"};
  for (const char* code : {"QUOTA", "IP_SPACE", "IP_SPACE_EXHAUSTED", "Subnet.NotFound"})
    EXPECT_TRUE(codes.contains(code)) << code;
  for (const char* code : {"", "QUOTAS", "NotFound", "xIP_SPACE"}) EXPECT_FALSE(codes.contains(code)) << code;
}

TEST(FaultRulesTest, TheFirstThatFitsDecides) {
  const std::vector<FaultRule> rules = {{429, {}, Verdict::kRateLimited},
                                        {403, {"off"}, Verdict::kRetry, "switch it on"},
                                        {0, {"off", "forbidden"}, Verdict::kInvalid}};
  EXPECT_EQ(Classify(rules, 429, "off", "no").verdict, Verdict::kRateLimited);
  Fault fault = Classify(rules, 403, "off", "no");
  EXPECT_EQ(fault.verdict, Verdict::kRetry);
  EXPECT_EQ(fault.text, "no; switch it on");
  EXPECT_EQ(fault.code, "off");
  EXPECT_EQ(Classify(rules, 400, "off", "no").verdict, Verdict::kInvalid);
  EXPECT_EQ(Classify(rules, 400, "off", "no").text, "no");
}

TEST(FaultRulesTest, WithoutARuleTheStatusDecides) {
  EXPECT_EQ(Classify({}, 400, "odd", "no").verdict, Verdict::kFail);
  EXPECT_EQ(Classify({}, 503, "odd", "no").verdict, VerdictOfStatus(503));
  EXPECT_EQ(Classify({}, 404, "", "no").verdict, VerdictOfStatus(404));
}

}  // namespace

}  // namespace nodepool::driver::cloud::api
