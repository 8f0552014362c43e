#include "drivers/kubernetes/api/status.h"

#include <boost/json/parse.hpp>

#include "base/json_fields.h"
#include "base/text.h"
#include "drivers/kubernetes/config/amounts.h"

namespace nodepool::drivers::kubernetes {

namespace api = driver::cloud::api;
namespace json = boost::json;

namespace {

constexpr std::string_view kTerminating = "NamespaceTerminating";

constexpr std::string_view kExceeded = "exceeded quota";

// Of OpenShift: "user ci cannot create more than 2 project(s)."
bool IsProjectLimit(const std::string& lower) {
  return lower.find("cannot create more than") != std::string::npos &&
         lower.find("project") != std::string::npos;
}

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
  // Of this namespace alone: another attempt has another one.
  if (fault.code == kTerminating) return Verdict::kFail;
  return api::VerdictOfStatus(status);
}

}  // namespace

bool MentionsQuota(std::string_view text) {
  std::string lower = Lower(text);
  return lower.find(kExceeded) != std::string::npos || IsProjectLimit(lower);
}

// "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1,pods=1, used: ..., limited: ...": what is not
// exceeded is not among them.
std::set<std::string> ExceededResources(std::string_view text) {
  std::string lower = Lower(text);
  if (IsProjectLimit(lower)) return {resource::kInstances};
  constexpr std::string_view kRequested = "requested: ";
  std::size_t begin = lower.find(kRequested, lower.find(kExceeded));
  if (begin == std::string::npos) return {};
  begin += kRequested.size();
  std::set<std::string> names;
  for (const std::string& part : Split(lower.substr(begin, lower.find(", ", begin) - begin), ',')) {
    std::size_t equals = part.find('=');
    if (equals != std::string::npos) names.insert(NameInRecords(part.substr(0, equals)));
  }
  return names;
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
