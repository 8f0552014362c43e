#include "drivers/aws/compute/instance.h"

#include "async/attempt.h"
#include "base/encoding.h"
#include "driver/cloud/metadata.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/api/xml.h"

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

constexpr std::size_t kMostBytes = 16 * 1024;

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
  std::string text = FromBase64(*output).value_or("");
  if (text.empty()) co_return std::nullopt;
  if (text.size() > kMostBytes) text.erase(0, text.find('\n', text.size() - kMostBytes) + 1);
  co_return text;
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

}  // namespace nodepool::drivers::aws
