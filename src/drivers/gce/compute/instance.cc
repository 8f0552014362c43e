#include "drivers/gce/compute/instance.h"

#include "base/find_or_empty.h"
#include "base/json_entries.h"
#include "driver/cloud/api/url_text.h"
#include "driver/cloud/metadata.h"

namespace nodepool::drivers::gce {

namespace json = boost::json;
using driver::cloud::api::PercentEncoded;

namespace {

constexpr std::string_view kOwnPrefix = "nodepool_";
constexpr const char* kNameKey = "instance";
constexpr const char* kZoneKey = "zone";
constexpr const char* kAttemptKeyOfId = "attempt";
constexpr double kMostGigabytes = 1e9;

void ReadAddresses(const json::object& entry, GceInstance& instance) {
  const json::object* interface = FirstIn(entry, "networkInterfaces");
  if (interface == nullptr) return;
  instance.private_ipv4 = TextIn(*interface, "networkIP");
  if (const json::object* access = FirstIn(*interface, "accessConfigs")) {
    instance.public_ipv4 = TextIn(*access, "natIP");
    instance.has_public_ipv4 = true;
  }
  if (const json::object* access = FirstIn(*interface, "ipv6AccessConfigs"))
    instance.public_ipv6 = TextIn(*access, "externalIpv6");
}

void ReadMetadata(const json::object& entry, GceInstance& instance) {
  const json::object* metadata = ObjectIn(entry, "metadata");
  if (metadata == nullptr) return;
  for (const json::object* item : ObjectsIn(*metadata, "items")) {
    std::string key = TextIn(*item, "key");
    if (key.starts_with(kOwnPrefix)) instance.metadata[key] = TextIn(*item, "value");
  }
}

double SizeOfDisks(const json::object& entry) {
  double size = 0;
  for (const json::object* disk : ObjectsIn(entry, "disks"))
    size += std::strtod(TextIn(*disk, "diskSizeGb").c_str(), nullptr);
  return size >= 0 && size < kMostGigabytes ? size : 0;
}

}  // namespace

std::string InstancePath(const std::string& zone, const std::string& name) {
  return "zones/" + PercentEncoded(zone) + "/instances/" + PercentEncoded(name);
}

GceInstance ReadInstance(const json::object& entry) {
  GceInstance instance;
  instance.number = TextIn(entry, "id");
  instance.name = TextIn(entry, "name");
  instance.zone = LastSegment(TextIn(entry, "zone"));
  instance.type = LastSegment(TextIn(entry, "machineType"));
  instance.status = TextIn(entry, "status");
  ReadAddresses(entry, instance);
  ReadMetadata(entry, instance);
  const json::object* scheduling = ObjectIn(entry, "scheduling");
  instance.is_spot = scheduling != nullptr && (TextIn(*scheduling, "provisioningModel") == "SPOT" ||
                                               TruthIn(*scheduling, "preemptible"));
  const json::object* labels = ObjectIn(entry, "labels");
  instance.has_provider_label =
      labels != nullptr && TextIn(*labels, driver::cloud::kProviderKey) ==
                               FindOrEmpty(instance.metadata, driver::cloud::kProviderKey);
  instance.disk_size = SizeOfDisks(entry);
  return instance;
}

Task<GceInstances> ListInstancesIn(Compute& compute, std::string zone, std::string provider) {
  ComputeCall call{"instances.list", "zones/" + PercentEncoded(zone) + "/instances"};
  std::string filter;
  if (!provider.empty()) filter = std::string("labels.") + driver::cloud::kProviderKey + "=" + provider;
  std::vector<GceInstance> list =
      co_await compute.List<GceInstance>(std::move(call), std::move(filter), &ReadInstance);
  GceInstances instances;
  for (GceInstance& instance : list) {
    std::string name = instance.name;
    instances.insert_or_assign(std::move(name), std::move(instance));
  }
  co_return instances;
}

Task<std::optional<GceInstance>> FindInstance(Compute& compute, std::string zone, std::string name) {
  ComputeCall call{"instances.get", InstancePath(zone, name)};
  std::optional<json::object> found = co_await driver::cloud::api::IfFound(compute.Get(std::move(call)));
  if (!found) co_return std::nullopt;
  co_return ReadInstance(*found);
}

Task<std::optional<std::string>> ReadConsole(Compute& compute, std::string zone, std::string name) {
  constexpr std::size_t kMost = 16 * 1024;
  ComputeCall call{"instances.getSerialPortOutput", InstancePath(zone, name) + "/serialPort", "port=1"};
  json::object answer = co_await compute.Get(std::move(call));
  std::string text = TextIn(answer, "contents");
  if (text.empty()) co_return std::nullopt;
  if (text.size() > kMost) text.erase(0, text.find('\n', text.size() - kMost) + 1);
  co_return text;
}

json::value ExternalId(const MachineId& id, const std::string& usual) {
  if (id.zone == usual && id.attempt.empty()) return json::value(id.name);
  json::object external_id{{kNameKey, id.name}, {kZoneKey, id.zone}};
  if (!id.attempt.empty()) external_id[kAttemptKeyOfId] = id.attempt;
  return external_id;
}

MachineId ReadExternalId(const json::value& external_id, const std::string& usual) {
  if (external_id.is_string()) return {std::string(external_id.get_string()), usual};
  if (!external_id.is_object()) return {"", usual};
  const json::object& object = external_id.get_object();
  MachineId id{TextIn(object, kNameKey), TextIn(object, kZoneKey), TextIn(object, kAttemptKeyOfId)};
  if (id.zone.empty()) id.zone = usual;
  return id;
}

}  // namespace nodepool::drivers::gce
