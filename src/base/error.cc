#include "base/error.h"

#include <algorithm>
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

namespace {

constexpr std::string_view kBegin = " (request id ";
constexpr std::size_t kMaxLength = 100;

bool IsUsual(char c) {
  bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_letter || (c >= '0' && c <= '9') || std::string_view("-_.:+/=").find(c) != std::string_view::npos;
}

}  // namespace

std::string WithRequestId(std::string message, std::string_view id) {
  if (id.empty() || id.size() > kMaxLength || !std::ranges::all_of(id, &IsUsual)) return message;
  message += kBegin;
  message += id;
  message += ')';
  return message;
}

std::string WithoutRequestIds(std::string_view message) {
  std::string text;
  while (true) {
    std::size_t begin = message.find(kBegin);
    std::size_t end = begin == std::string_view::npos ? begin : message.find(')', begin);
    if (end == std::string_view::npos) return text.append(message);
    text += message.substr(0, begin);
    message.remove_prefix(end + 1);
  }
}

bool ReplaceMessage(std::string& last, std::string_view message) {
  std::string text = WithoutRequestIds(message);
  bool is_other = text != last;
  last = std::move(text);
  return is_other;
}

}  // namespace nodepool
