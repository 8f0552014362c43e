#include "drivers/openstack/api/faults.h"

#include "drivers/openstack/config/cloud_overlay.h"

namespace nodepool::drivers::openstack {

namespace api = driver::cloud::api;

bool SpeaksOfQuota(std::string_view text) {
  std::string lower = Lower(std::string(text));
  auto says = [&lower](std::string_view words) { return lower.find(words) != std::string::npos; };
  return says("quota exceeded") || says("number of ports exceeded") || says("overquota") ||
         (says("quota") && says("exceed"));
}

// {"forbidden": {"message": "...", "code": 403}}, {"NeutronError": {...}}, {"message": "..."};
// neutron also has a text in place of the mapping.
api::Fault ReadFault(int status, std::string_view body) {
  api::Fault fault;
  fault.text = api::FaultText(body, {"NeutronError", "error"});
  fault.verdict = SpeaksOfQuota(fault.text) ? Verdict::kQuota : api::VerdictOfStatus(status);
  return fault;
}

}  // namespace nodepool::drivers::openstack
