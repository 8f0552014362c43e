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

}  // namespace
}  // namespace nodepool
