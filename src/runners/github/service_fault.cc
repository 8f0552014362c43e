#include "runners/github/service_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <charconv>

#include "base/json_fields.h"
#include "base/text.h"

namespace nodepool::runners::github {
namespace {

constexpr std::size_t kShownRefusal = 300;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr Duration kLongestPause = std::chrono::hours(2);

std::string_view WithoutMark(std::string_view body) {
  if (body.starts_with(kByteOrderMark)) body.remove_prefix(kByteOrderMark.size());
  return body;
}

boost::json::value Parsed(std::string_view body) {
  boost::system::error_code error;
  boost::json::value value = boost::json::parse(WithoutMark(body), error);
  return error ? boost::json::value() : value;
}

std::optional<std::int64_t> WholeNumber(const std::string& text) {
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.empty() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Duration Bounded(std::int64_t seconds) {
  return std::chrono::seconds(std::clamp<std::int64_t>(
      seconds, 1, std::chrono::duration_cast<std::chrono::seconds>(kLongestPause).count()));
}

Verdict VerdictOfStatus(int status) {
  switch (status) {
    case 404:
      return Verdict::kNotFound;
    case 409:
      return Verdict::kConflict;
    case kTooMany:
      return Verdict::kRateLimited;
    case kUnauthorized:
    case kForbidden:
    case 408:
      return Verdict::kRetry;
    default:
      return status >= 500 ? Verdict::kRetry : Verdict::kInvalid;
  }
}

std::string IdsOf(const net::HttpReply& reply) {
  std::string ids;
  for (const char* header : {"activityid", "x-github-request-id"}) {
    const std::string& id = reply.Header(header);
    if (!id.empty()) ids += fmt::format(", {} {}", header, Excerpt(id));
  }
  return ids;
}

}  // namespace

bool ServiceError::Is(std::string_view name) const {
  std::size_t found = exception_.find(name);
  if (found == exception_.npos) return false;
  bool begins = found == 0 || exception_[found - 1] == '.';
  std::size_t end = found + name.size();
  return begins && (end == exception_.size() || exception_[end] == ',' || exception_[end] == ' ');
}

const ServiceError* RefusalIn(const Failure& failure) {
  try {
    std::rethrow_exception(failure.exception());
  } catch (const ServiceError& error) {
    return &error;  // the failure owns it
  } catch (...) {
    return nullptr;
  }
}

bool IsRefusedWith(const Failure& failure, int status) {
  const ServiceError* refusal = RefusalIn(failure);
  return refusal != nullptr && refusal->status() == status;
}

Refusal ReadRefusal(const net::HttpReply& reply) {
  boost::json::value body = Parsed(reply.body);
  if (const auto* object = body.if_object()) {
    return {TextIn(*object, "typeName"), Excerpt(TextIn(*object, "message"), kShownRefusal)};
  }
  std::string_view text = Trim(WithoutMark(reply.body));
  bool is_html = text.starts_with('<') || reply.Header("content-type").find("html") != std::string::npos;
  return {"", is_html ? "an answer in HTML, perhaps of a proxy" : Excerpt(text, kShownRefusal)};
}

std::optional<Duration> AskedPause(const net::HttpReply& reply, WallTime now) {
  if (reply.status != kForbidden && reply.status != kTooMany) return std::nullopt;
  if (auto seconds = WholeNumber(reply.Header("retry-after"))) return Bounded(*seconds);
  if (reply.Header("x-ratelimit-remaining") == "0") {
    auto reset = WholeNumber(reply.Header("x-ratelimit-reset"));
    return Bounded(reset ? *reset - static_cast<std::int64_t>(ToSeconds(now)) + 1 : 60);
  }
  if (reply.status == kTooMany) return std::chrono::minutes(1);
  return std::nullopt;
}

ServiceError ErrorOf(std::string_view call, const net::HttpReply& reply) {
  Refusal refusal = ReadRefusal(reply);
  std::string message = refusal.message.empty() ? "" : ": " + refusal.message;
  return {VerdictOfStatus(reply.status),
          fmt::format("{}: status {}{}{}", call, reply.status, message, IdsOf(reply)), reply.status,
          std::move(refusal.exception)};
}

boost::json::value ReadJson(std::string_view call, const net::HttpReply& reply) {
  boost::json::value value = Parsed(reply.body);
  if (value.is_null())
    throw Error(Verdict::kRetry,
                fmt::format("{}: the answer with status {} is not JSON{}", call, reply.status, IdsOf(reply)));
  return value;
}

}  // namespace nodepool::runners::github
