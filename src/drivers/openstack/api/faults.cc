#include "drivers/openstack/api/faults.h"

#include "base/text.h"

namespace nodepool::drivers::openstack {

namespace api = driver::cloud::api;

bool MentionsQuota(std::string_view text) {
  std::string lower = Lower(std::string(text));
  auto says = [&lower](std::string_view words) { return lower.find(words) != std::string::npos; };
  return says("quota exceeded") || says("number of ports exceeded") || says("overquota") ||
         (says("maximum number of") && says("exceeded")) || (says("quota") && says("exceed"));
}

// {"forbidden": {"message": "...", "code": 403}}, {"NeutronError": {...}}, {"message": "..."};
// neutron may also send a text instead of the mapping.
api::Fault ReadFault(int status, std::string_view body) {
  api::Fault fault;
  fault.text = api::FaultText(body, {"NeutronError", "error"});
  fault.verdict = MentionsQuota(fault.text) ? Verdict::kQuota : api::VerdictOfStatus(status);
  return fault;
}

}  // namespace nodepool::drivers::openstack
