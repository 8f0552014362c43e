#include "driver/cloud/api/fault_rules.h"

#include <algorithm>

namespace nodepool::driver::cloud::api {

bool CodeSet::contains(std::string_view code) const {
  return std::ranges::any_of(codes_, [code](std::string_view one) {
    if (one.ends_with('*')) return code.starts_with(one.substr(0, one.size() - 1));
    return one.starts_with('*') ? code.ends_with(one.substr(1)) : code == one;
  });
}

Fault Classify(const std::vector<FaultRule>& rules, int status, std::string code, std::string text) {
  auto rule = std::ranges::find_if(rules, [&](const FaultRule& one) {
    bool has_status = one.status == 0 || one.status == status;
    return has_status && (one.codes.empty() || one.codes.contains(code));
  });
  Fault fault;
  if (rule != rules.end()) {
    fault.verdict = rule->verdict;
    text = WithRemedy(std::move(text), rule->remedy);
  } else if (code.empty() || status >= 500) {
    fault.verdict = VerdictOfStatus(status);
  }
  fault.text = std::move(text);
  fault.code = std::move(code);
  return fault;
}

}  // namespace nodepool::driver::cloud::api
