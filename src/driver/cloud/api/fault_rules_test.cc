#include "driver/cloud/api/fault_rules.h"

#include <gtest/gtest.h>

namespace nodepool::driver::cloud::api {
namespace {

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
