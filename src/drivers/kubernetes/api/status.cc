#include "drivers/kubernetes/api/status.h"

#include <boost/json/parse.hpp>

#include "base/json_fields.h"
#include "base/text.h"

namespace nodepool::drivers::kubernetes {

namespace api = driver::cloud::api;
namespace json = boost::json;

namespace {

constexpr std::string_view kTerminating = "NamespaceTerminating";

bool HasCause(const json::object& status, std::string_view reason) {
  const json::object* details = ObjectIn(status, "details");
  const json::array* causes = details == nullptr ? nullptr : ArrayIn(*details, "causes");
  if (causes == nullptr) return false;
  for (const json::value& cause : *causes) {
    if (cause.is_object() && TextIn(cause.as_object(), "reason") == reason) return true;
  }
  return false;
}

Verdict VerdictOfStatus(int status, const api::Fault& fault) {
  if (MentionsQuota(fault.text)) return Verdict::kQuota;
  // Operators and rotated credentials mend it without a change of ours.
  if (status == 401 || fault.code == kTerminating) return Verdict::kRetry;
  return api::VerdictOfStatus(status);
}

}  // namespace

bool MentionsQuota(std::string_view text) {
  std::string lower = Lower(text);
  if (lower.find("exceeded quota") != std::string::npos) return true;
  // OpenShift's limit of projects: "user ci cannot create more than 2 project(s)."
  return lower.find("cannot create more than") != std::string::npos &&
         lower.find("project") != std::string::npos;
}

api::Fault ReadStatus(int status, std::string_view body) {
  api::Fault fault;
  fault.text = api::FaultText(body);
  boost::system::error_code error;
  json::value parsed = json::parse(body.substr(0, 64 * 1024), error);
  if (!error && parsed.is_object()) {
    fault.code = TextIn(parsed.as_object(), "reason");
    if (HasCause(parsed.as_object(), kTerminating)) fault.code = kTerminating;
  }
  fault.verdict = VerdictOfStatus(status, fault);
  return fault;
}

std::string ReasonOf(const Failure& failure) {
  try {
    failure.Rethrow();
  } catch (const api::ApiError& error) {
    return error.code();
  } catch (...) {
    return "";
  }
}

}  // namespace nodepool::drivers::kubernetes
