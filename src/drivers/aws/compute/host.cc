#include "drivers/aws/compute/host.h"

#include <fmt/format.h>

#include "async/attempt.h"
#include "base/text.h"
#include "driver/cloud/metadata.h"
#include "drivers/aws/api/xml.h"
#include "drivers/aws/compute/instance.h"
#include "drivers/aws/compute/instance_request.h"

namespace nodepool::drivers::aws {

namespace {

std::string ReadAllocation(const pugi::xml_node& root) { return TextAt(root, {"hostIdSet", "item"}); }

// Why the host could not be released; empty: it could, or there is none. EC2 reports it in an answer that is
// no error.
std::string ReadRelease(const pugi::xml_node& root) {
  for (const pugi::xml_node& item : Items(root, "unsuccessful")) {
    if (TextAt(item, {"error", "code"}).ends_with(".NotFound")) continue;
    return Excerpt(TextAt(item, {"error", "code"}) + ": " + TextAt(item, {"error", "message"}), 300);
  }
  return "";
}

}  // namespace

std::vector<Host> ReadHosts(const pugi::xml_node& root) {
  std::vector<Host> hosts;
  for (const pugi::xml_node& item : Items(root, "hostSet")) {
    Host host{TextAt(item, {"hostId"}), TextAt(item, {"state"}), ReadTagSet(item)};
    if (!host.id.empty()) hosts.push_back(std::move(host));
  }
  return hosts;
}

Task<Hosts> ListHostsOf(Ec2& ec2, std::string provider) {
  Query query("DescribeHosts");
  query.AddFilter(std::string("tag:") + driver::cloud::kProviderKey, {std::move(provider)});
  std::vector<Host> list = co_await ec2.List(std::move(query), &ReadHosts);
  Hosts hosts;
  for (Host& host : list) {
    std::string id = host.id;
    hosts.insert_or_assign(std::move(id), std::move(host));
  }
  co_return hosts;
}

Task<std::string> AllocateHost(Ec2& ec2, std::string type, std::string zone,
                               std::map<std::string, std::string> tags, std::string token) {
  Query query("AllocateHosts");
  query.Add("AutoPlacement", "off").Add("HostRecovery", "off").Add("HostMaintenance", "off");
  query.Add("AvailabilityZone", zone).Add("InstanceType", type).Add("Quantity", 1);
  query.Add("ClientToken", token);
  AddTagSpecifications({"dedicated-host"}, tags, query);
  std::string id = co_await ec2.Call<std::string>(std::move(query), &ReadAllocation);
  if (id.empty()) throw Error(Verdict::kRetry, "AWS accepted a dedicated host and returned no id");
  co_return id;
}

Task<> ReleaseHost(Ec2& ec2, std::string id) {
  Query query("ReleaseHosts");
  query.AddList("HostId", {id});
  Task<std::string> call = ec2.Call<std::string>(std::move(query), &ReadRelease);
  Outcome<std::string> refusal = co_await Attempt(std::move(call));
  if (FailedWith(refusal, Verdict::kNotFound)) co_return;
  if (!refusal) refusal.error().Rethrow();
  if (!refusal->empty()) {
    throw Error(Verdict::kRetry, fmt::format("dedicated host {} cannot be released yet: {}", id, *refusal));
  }
}

}  // namespace nodepool::drivers::aws
