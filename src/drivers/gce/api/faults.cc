#include "drivers/gce/api/faults.h"

#include "base/json_entries.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "driver/cloud/api/fault_rules.h"

namespace nodepool::drivers::gce {

namespace api = driver::cloud::api;
namespace json = boost::json;

namespace {

constexpr std::size_t kMostBody = 256 * 1024;

const api::CodeSet kQuota = {"QUOTA_EXCEEDED", "quotaExceeded", "limitExceeded"};
const api::CodeSet kNoCapacity = {"ZONE_RESOURCE_POOL_EXHAUSTED*", "IP_SPACE_EXHAUSTED*",
                                  "RESOURCE_POOL_EXHAUSTED*"};
const api::CodeSet kBadSettings = {"invalid",          "required",    "badRequest", "badContent",
                                   "parseError",       "notFound",    "forbidden",  "insufficientPermissions",
                                   "invalidParameter", "invalidUsage"};
const api::CodeSet kNotReady = {"resourceNotReady", "resourceInUseByAnotherResource"};

// Credentials are of the account, not of the call: somebody replaces them, or allows the API.
const std::vector<api::FaultRule>& Rules() {
  static const std::vector<api::FaultRule> rules = {
      {429, {}, Verdict::kRateLimited},
      {0, {"rateLimitExceeded", "userRateLimitExceeded"}, Verdict::kRateLimited},
      {0, kQuota, Verdict::kQuota},
      {401, {}, Verdict::kRetry, "check the credentials of this provider"},
      {0, {"backendError", "internalError"}, Verdict::kRetry},
      {403, {"accessNotConfigured"}, Verdict::kRetry, "enable the API in the project"},
      {403, {"authError", "required", "accountDisabled"}, Verdict::kRetry},
      {0,
       {"forbidden", "insufficientPermissions"},
       Verdict::kInvalid,
       "give the account the role of docs/drivers/gce.md"},
      {404, {}, Verdict::kNotFound},
      {409, {}, Verdict::kConflict},
  };
  return rules;
}

}  // namespace

api::Fault ReadFault(int status, std::string_view body) {
  json::value parsed = body.size() > kMostBody ? json::value(nullptr) : ParsedJson(body);
  const json::object* error = ObjectIn(parsed, "error");
  if (error == nullptr) return api::Classify(Rules(), status, "", api::FaultText(body));
  std::string code = Excerpt(TextAt(*error, "errors/0/reason"), 100);
  std::string text = api::OneLine(TextIn(*error, "message"));
  if (text.empty()) text = code;
  return api::Classify(Rules(), status, std::move(code), std::move(text));
}

Meaning MeaningOf(std::string_view code, std::string_view text) {
  bool lacks_capacity = kNoCapacity.contains(code) || text.find("STOCKOUT") != std::string_view::npos;
  if (lacks_capacity) return Meaning::kNoCapacity;
  if (kQuota.contains(code)) return Meaning::kQuota;
  if (kBadSettings.contains(code)) return Meaning::kBadSettings;
  return kNotReady.contains(code) ? Meaning::kNotReady : Meaning::kOther;
}

std::string MetricIn(std::string_view text) {
  constexpr std::string_view kBefore = "Quota '";
  std::size_t begin = text.find(kBefore);
  if (begin == std::string_view::npos) return "";
  begin += kBefore.size();
  std::size_t end = text.find('\'', begin);
  return end == std::string_view::npos ? "" : std::string(text.substr(begin, end - begin));
}

}  // namespace nodepool::drivers::gce
