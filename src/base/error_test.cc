#include "base/error.h"

#include <gtest/gtest.h>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

namespace nodepool {

namespace {

TEST(ErrorTest, ContextIsPutInFront) {
  Error error = Error(Verdict::kNotFound, "no such node").In("delete 0000000042");
  EXPECT_EQ(error.message(), "delete 0000000042: no such node");
  EXPECT_EQ(error.verdict(), Verdict::kNotFound);
}

TEST(ErrorTest, VerdictOfForeignExceptions) {
  auto aborted = boost::system::system_error(boost::asio::error::operation_aborted);
  EXPECT_EQ(VerdictOf(std::make_exception_ptr(aborted)), Verdict::kCancelled);
  auto refused = boost::system::system_error(boost::asio::error::connection_refused);
  EXPECT_EQ(VerdictOf(std::make_exception_ptr(refused)), Verdict::kRetry);
  EXPECT_EQ(VerdictOf(std::make_exception_ptr(std::runtime_error("x"))), Verdict::kFail);
  EXPECT_EQ(VerdictOf(std::make_exception_ptr(Error(Verdict::kQuota, "full"))), Verdict::kQuota);
}

TEST(ErrorTest, MessageOfAnyException) {
  EXPECT_EQ(MessageOf(std::make_exception_ptr(std::runtime_error("x"))), "x");
  EXPECT_EQ(MessageOf(std::make_exception_ptr(7)), "unknown exception");
  static constexpr boost::source_location kHere = BOOST_CURRENT_LOCATION;
  boost::system::error_code refused(ECONNREFUSED, boost::system::system_category(), &kHere);
  EXPECT_EQ(MessageOf(std::make_exception_ptr(boost::system::system_error(refused))), "Connection refused");
}

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
