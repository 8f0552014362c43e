#include "base/error.h"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

namespace nodepool {

std::string_view ToString(Verdict verdict) {
  switch (verdict) {
    case Verdict::kRetry:
      return "retry";
    case Verdict::kQuota:
      return "quota";
    case Verdict::kRateLimited:
      return "rate_limited";
    case Verdict::kNotFound:
      return "not_found";
    case Verdict::kConflict:
      return "conflict";
    case Verdict::kInvalid:
      return "invalid";
    case Verdict::kLostSession:
      return "lost_session";
    case Verdict::kCancelled:
      return "cancelled";
    case Verdict::kFail:
      return "fail";
    case Verdict::kTimedOut:
      return "timed_out";
  }
  return "fail";
}

Error::Error(Verdict verdict, std::string message) : verdict_(verdict), message_(std::move(message)) {}

Error Error::In(std::string_view context) const {
  return Error(verdict_, std::string(context) + ": " + message_);
}

Verdict VerdictOf(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return error.verdict();
  } catch (const boost::system::system_error& error) {
    return error.code() == boost::asio::error::operation_aborted ? Verdict::kCancelled : Verdict::kRetry;
  } catch (...) {
    return Verdict::kFail;
  }
}

std::string MessageOf(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const boost::system::system_error& error) {
    return error.code().message();  // what() also names a source file
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown exception";
  }
}

}  // namespace nodepool
