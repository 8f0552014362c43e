#include "drivers/aws/compute/instance.h"

#include <fmt/format.h>

#include "async/attempt.h"
#include "base/encoding.h"
#include "base/text.h"
#include "driver/cloud/launch/instance.h"
#include "driver/cloud/metadata.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/api/xml.h"
#include "drivers/aws/compute/instance_request.h"

namespace nodepool::drivers::aws {

namespace {

Task<Ec2Instances> ListInstances(Ec2& ec2, Query query) {
  query.Add("MaxResults", 1000);
  std::vector<Ec2Instance> list = co_await ec2.List(std::move(query), &ReadReservations);
  Ec2Instances instances;
  for (Ec2Instance& instance : list) {
    std::string id = instance.id;
    instances.insert_or_assign(std::move(id), std::move(instance));
  }
  co_return instances;
}

}  // namespace

std::map<std::string, std::string> ReadTagSet(const pugi::xml_node& node) {
  std::map<std::string, std::string> tags;
  for (const pugi::xml_node& tag : Items(node, "tagSet")) tags[TextAt(tag, {"key"})] = TextAt(tag, {"value"});
  return tags;
}

Ec2Instance ReadInstance(const pugi::xml_node& item) {
  Ec2Instance instance;
  instance.id = TextAt(item, {"instanceId"});
  instance.state = TextAt(item, {"instanceState", "name"});
  instance.type = TextAt(item, {"instanceType"});
  instance.zone = TextAt(item, {"placement", "availabilityZone"});
  instance.private_ipv4 = TextAt(item, {"privateIpAddress"});
  instance.public_ipv4 = TextAt(item, {"ipAddress"});
  instance.ipv6 = TextAt(item, {"networkInterfaceSet", "item", "ipv6AddressesSet", "item", "ipv6Address"});
  instance.is_spot = TextAt(item, {"instanceLifecycle"}) == "spot";
  instance.host = TextAt(item, {"placement", "hostId"});
  instance.tags = ReadTagSet(item);
  instance.reason_code = TextAt(item, {"stateReason", "code"});
  instance.reason = TextAt(item, {"stateReason", "message"});
  return instance;
}

std::vector<Ec2Instance> ReadReservation(const pugi::xml_node& root) {
  std::vector<Ec2Instance> instances;
  for (const pugi::xml_node& item : Items(root, "instancesSet")) {
    Ec2Instance instance = ReadInstance(item);
    if (!instance.id.empty()) instances.push_back(std::move(instance));
  }
  return instances;
}

std::vector<Ec2Instance> ReadReservations(const pugi::xml_node& root) {
  std::vector<Ec2Instance> instances;
  for (const pugi::xml_node& reservation : Items(root, "reservationSet")) {
    for (Ec2Instance& instance : ReadReservation(reservation)) instances.push_back(std::move(instance));
  }
  return instances;
}

Task<Ec2Instances> ListInstancesOf(Ec2& ec2, std::string provider) {
  Query query("DescribeInstances");
  query.AddFilter(std::string("tag:") + driver::cloud::kProviderKey, {std::move(provider)});
  return ListInstances(ec2, std::move(query));
}

Task<Ec2Instances> ListAllInstances(Ec2& ec2) { return ListInstances(ec2, Query("DescribeInstances")); }

namespace {

std::string ReadOutput(const pugi::xml_node& root) { return TextAt(root, {"output"}); }

Task<std::string> AskForConsole(Ec2& ec2, std::string instance, bool wants_latest) {
  Query query("GetConsoleOutput");
  query.Add("InstanceId", std::move(instance));
  if (wants_latest) query.Add("Latest", true);
  return ec2.Call<std::string>(std::move(query), &ReadOutput);
}

}  // namespace

Task<std::optional<std::string>> ReadConsole(Ec2& ec2, std::string instance) {
  Task<std::string> reading = AskForConsole(ec2, instance, true);
  Outcome<std::string> output = co_await Attempt(std::move(reading));
  // Types of before Nitro.
  if (!output && CodeOf(output.error()).starts_with("Unsupported")) {
    Task<std::string> again = AskForConsole(ec2, std::move(instance), false);
    output = co_await Attempt(std::move(again));
  }
  if (!output) output.error().Rethrow();
  co_return driver::cloud::EndOfConsole(FromBase64(*output).value_or(""));
}

std::vector<SpotRequest> ReadSpotRequests(const pugi::xml_node& root) {
  std::vector<SpotRequest> requests;
  for (const pugi::xml_node& item : Items(root, "spotInstanceRequestSet")) {
    SpotRequest request;
    request.instance = TextAt(item, {"instanceId"});
    request.status = TextAt(item, {"status", "code"});
    request.message = TextAt(item, {"status", "message"});
    if (!request.instance.empty()) requests.push_back(std::move(request));
  }
  return requests;
}

Task<std::vector<SpotRequest>> ListMarkedSpotRequests(Ec2& ec2) {
  Query query("DescribeSpotInstanceRequests");
  query.AddFilter("status-code", {"marked-for-termination", "marked-for-stop"});
  query.Add("MaxResults", 1000);
  return ec2.List(std::move(query), &ReadSpotRequests);
}

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
