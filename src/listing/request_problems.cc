#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "listing/find_problems.h"

namespace nodepool::listing {
namespace {

using Severity = Problem::Severity;
using Waiting = std::vector<const store::StoredRequest*>;

// "8 of 8 instances": a limit that the tenant has reached, or that the request would exceed; empty: none.
std::string ReachedBy(const NodeRequest& request, const Resources& limits, const Resources& used) {
  for (const auto& [resource, limit] : limits) {
    auto found = used.find(resource);
    double amount = found == used.end() ? 0 : found->second;
    double more = resource == resource::kInstances ? static_cast<double>(request.node_types.size()) : 0;
    bool is_reached = more > 0 ? amount + more > limit : amount >= limit;
    if (is_reached) return fmt::format("{} of {} {}", amount, limit, resource);
  }
  return "";
}

void AddTenants(Problems& out, const StatusRecords& records, const Waiting& waiting) {
  std::map<std::string, std::vector<const NodeRequest*>> by_tenant;
  for (const store::StoredRequest* request : waiting) {
    if (request->record.tenant_name) by_tenant[*request->record.tenant_name].push_back(&request->record);
  }
  for (const auto& [tenant, requests] : by_tenant) {
    auto limits = records.configured.tenant_limits.find(tenant);
    if (limits == records.configured.tenant_limits.end()) continue;
    const Resources& used = records.caches.nodes.UsedByTenant(tenant);
    std::string reached = ReachedBy(*requests.front(), limits->second, used);
    if (reached.empty()) continue;
    out.push_back(
        {.kind = "tenant-limit",
         .name = tenant,
         .severity = Severity::kWait,
         .since = WaitsSince(*requests.front()),
         .subject = {"requests"},
         .text = fmt::format("Tenant {} has {}: {} of it {}", tenant, reached,
                             Counted(requests.size(), "request"), requests.size() == 1 ? "waits" : "wait"),
         .remedy = "Raise its limit in tenant-resource-limits, or wait for its jobs to end",
         .delayed_requests = requests.size()});
  }
}

void AddLongWaits(Problems& out, const StatusRecords& records, const Waiting& waiting) {
  std::map<std::string, Waiting> by_reason;
  for (const store::StoredRequest* request : waiting) {
    if (records.now - WaitsSince(request->record) < kLongWait) continue;
    auto why = records.why.find(request->id);
    by_reason[why == records.why.end() ? "" : InOneLine(why->second)].push_back(request);
  }
  for (const auto& [why, requests] : by_reason) {
    const store::StoredRequest& oldest = *requests.front();
    out.push_back(
        {.kind = "requests-waiting",
         .name = oldest.id.value,
         .severity = Severity::kWait,
         .since = WaitsSince(oldest.record),
         .subject = {"requests", oldest.id.value},
         .text = fmt::format(
             "{} for more than 5 minutes, {} for longest{}",
             requests.size() == 1 ? "1 request waits" : fmt::format("{} requests wait", requests.size()),
             oldest.id, why.empty() ? "" : ": " + why),
         .remedy = "nodepool request-list --detail shows what each pool says",
         .delayed_requests = requests.size()});
  }
}

}  // namespace

void FindRequestProblems(Problems& out, const StatusRecords& records) {
  Waiting waiting = WaitingRequests(records.caches.requests);
  AddTenants(out, records, waiting);
  AddLongWaits(out, records, waiting);
}

}  // namespace nodepool::listing
