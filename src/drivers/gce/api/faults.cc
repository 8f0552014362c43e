#include "drivers/gce/api/faults.h"

#include <boost/json/parse.hpp>
#include <set>

#include "base/json_fields.h"
#include "base/text.h"

namespace nodepool::drivers::gce {

namespace api = driver::cloud::api;
namespace json = boost::json;

namespace {

using Codes = std::set<std::string_view>;

constexpr std::size_t kMostBody = 256 * 1024;

const Codes kRate = {"rateLimitExceeded", "userRateLimitExceeded"};
const Codes kQuota = {"QUOTA_EXCEEDED", "quotaExceeded", "limitExceeded"};
const Codes kCredential = {"authError", "required", "accountDisabled", "accessNotConfigured"};
const Codes kForbidden = {"forbidden", "insufficientPermissions"};
const Codes kTransient = {"backendError", "internalError"};
const Codes kBadSettings = {"invalid",          "required",    "badRequest", "badContent",
                            "parseError",       "notFound",    "forbidden",  "insufficientPermissions",
                            "invalidParameter", "invalidUsage"};
const Codes kNotReady = {"resourceNotReady", "resourceInUseByAnotherResource"};

// Null: the body is something else.
json::value Parsed(std::string_view body) {
  boost::system::error_code error;
  if (body.size() > kMostBody) return nullptr;
  json::value value = json::parse(body, error);
  return error ? json::value(nullptr) : value;
}

Verdict VerdictOf(const std::string& reason, int status) {
  if (status == 429 || kRate.contains(reason)) return Verdict::kRateLimited;
  if (kQuota.contains(reason)) return Verdict::kQuota;
  // Of the account, not of the call: somebody replaces the credential, or allows the API.
  if (status == 401 || kTransient.contains(reason)) return Verdict::kRetry;
  if (status == 403 && kCredential.contains(reason)) return Verdict::kRetry;
  if (kForbidden.contains(reason)) return Verdict::kInvalid;
  if (status == 404) return Verdict::kNotFound;
  if (status == 409) return Verdict::kConflict;
  if (reason.empty() || status >= 500) return api::VerdictOfStatus(status);
  return Verdict::kFail;
}

// What an operator does about a refusal; empty: the message says it.
std::string_view RemedyFor(const std::string& reason, int status) {
  if (status == 401) return "check the credentials of this provider";
  if (reason == "accessNotConfigured") return "enable the API in the project";
  if (kForbidden.contains(reason)) return "give the account the role of docs/drivers/gce.md";
  return "";
}

}  // namespace

api::Fault ReadFault(int status, std::string_view body) {
  json::value parsed = Parsed(body);
  const json::object* error = ObjectIn(parsed, "error");
  api::Fault fault;
  if (error == nullptr) {
    fault.text = api::FaultText(body);
  } else {
    const json::array* errors = ArrayIn(*error, "errors");
    const json::object* first = errors == nullptr || errors->empty() ? nullptr : errors->front().if_object();
    if (first != nullptr) fault.code = Excerpt(TextIn(*first, "reason"), 100);
    fault.text = api::OneLine(TextIn(*error, "message"));
    if (fault.text.empty()) fault.text = fault.code;
  }
  fault.verdict = VerdictOf(fault.code, status);
  fault.text = api::WithRemedy(std::move(fault.text), RemedyFor(fault.code, status));
  return fault;
}

bool MeansNoCapacity(std::string_view code, std::string_view text) {
  bool is_code = code.starts_with("ZONE_RESOURCE_POOL_EXHAUSTED") || code.starts_with("IP_SPACE_EXHAUSTED") ||
                 code.starts_with("RESOURCE_POOL_EXHAUSTED");
  return is_code || text.find("STOCKOUT") != std::string_view::npos;
}

bool MeansQuota(std::string_view code) { return kQuota.contains(code); }

bool MeansBadSettings(std::string_view code) { return kBadSettings.contains(code); }

bool MeansNotReady(std::string_view code) { return kNotReady.contains(code); }

std::string MetricIn(std::string_view text) {
  constexpr std::string_view kBefore = "Quota '";
  std::size_t begin = text.find(kBefore);
  if (begin == std::string_view::npos) return "";
  begin += kBefore.size();
  std::size_t end = text.find('\'', begin);
  return end == std::string_view::npos ? "" : std::string(text.substr(begin, end - begin));
}

}  // namespace nodepool::drivers::gce
