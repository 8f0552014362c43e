#include "base/request_id.h"

#include <gtest/gtest.h>

namespace nodepool {
namespace {

TEST(RequestIdTest, IsAddedAndLeftOut) {
  std::string message = WithRequestId("RunInstances: 403 no", "0a-1b");
  EXPECT_EQ(message, "RunInstances: 403 no (request id 0a-1b)");
  EXPECT_EQ(WithoutRequestIds("ec2: " + message + "; " + message),
            "ec2: RunInstances: 403 no; RunInstances: 403 no");
  EXPECT_EQ(WithoutRequestIds("nothing (of that kind)"), "nothing (of that kind)");
  EXPECT_EQ(WithoutRequestIds("cut (request id 0a"), "cut (request id 0a");
}

TEST(RequestIdTest, WhatIsNoIdIsNotAdded) {
  for (const std::string& id :
       {std::string(), std::string("a b"), std::string("a\nb"), std::string("<a>"), std::string(101, 'a')}) {
    EXPECT_EQ(WithRequestId("no", id), "no") << id;
  }
}

TEST(RequestIdTest, TheSameMessageIsNoNews) {
  std::string last;
  EXPECT_TRUE(ReplaceMessage(last, "no (request id 1)"));
  EXPECT_FALSE(ReplaceMessage(last, "no (request id 2)"));
  EXPECT_TRUE(ReplaceMessage(last, "never (request id 2)"));
}

}  // namespace
}  // namespace nodepool
