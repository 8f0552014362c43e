#include "drivers/openstack/faults.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "base/text.h"
#include "drivers/openstack/cloud_overlay.h"
#include "net/http.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;

namespace {

constexpr std::size_t kMaxText = 600;

// {"forbidden": {"message": "...", "code": 403}}, {"NeutronError": {...}},
// {"message": "..."}; neutron also has a text in place of the mapping.
std::string JsonText(const json::value& body) {
  if (!body.is_object()) return "";
  std::string text;
  auto add = [&text](const json::value* message) {
    if (message == nullptr || !message->is_string() || message->as_string().empty()) return;
    if (!text.empty()) text += "; ";
    text += std::string_view(message->as_string());
  };
  add(body.as_object().if_contains("message"));
  for (const auto& [key, member] : body.as_object()) {
    if (member.is_object()) add(member.as_object().if_contains("message"));
    if (key == "NeutronError" || key == "error") add(&member);
  }
  return text;
}

// Text between tags, blanks folded.
std::string WithoutTags(std::string_view body) {
  std::string text;
  bool is_tag = false;
  for (char c : body.substr(0, 16 * kMaxText)) {
    bool is_blank = c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '>';
    if (c == '<') is_tag = true;
    if (!is_tag && !is_blank) text += c;
    if (is_blank && !text.empty() && text.back() != ' ') text += ' ';
    if (c == '>') is_tag = false;
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

Verdict VerdictOfStatus(int status) {
  switch (status) {
    case 404:
    case 410:
      return Verdict::kNotFound;
    case 409:
      return Verdict::kConflict;
    case 408:
      return Verdict::kRetry;
    case 429:
      return Verdict::kRateLimited;
    default:
      return status >= 500 ? Verdict::kRetry : Verdict::kInvalid;
  }
}

}  // namespace

std::string FaultText(std::string_view body) {
  boost::system::error_code error;
  json::value parsed = json::parse(body.substr(0, 64 * 1024), error);
  std::string text = error ? WithoutTags(body) : JsonText(parsed);
  return Excerpt(text, kMaxText);
}

bool SpeaksOfQuota(std::string_view text) {
  std::string lower = Lower(std::string(text));
  auto says = [&lower](std::string_view words) { return lower.find(words) != std::string::npos; };
  return says("quota exceeded") || says("number of ports exceeded") || says("overquota") ||
         (says("quota") && says("exceed"));
}

ApiError MapFault(std::string_view call, int status, std::string_view body) {
  std::string text = FaultText(body);
  if (text.empty()) text = std::string(net::HttpReason(status));
  Verdict verdict = SpeaksOfQuota(text) ? Verdict::kQuota : VerdictOfStatus(status);
  return ApiError(verdict, fmt::format("{}: {} {}", call, status, text), status);
}

int StatusOf(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ApiError& fault) {
    return fault.status();
  } catch (...) {
    return 0;
  }
}

}  // namespace nodepool::drivers::openstack
