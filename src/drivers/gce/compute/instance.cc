#include "drivers/gce/compute/instance.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_fields.h"
#include "base/text.h"
#include "driver/cloud/api/url_text.h"
#include "driver/cloud/metadata.h"
#include "drivers/gce/api/services.h"

namespace nodepool::drivers::gce {

namespace json = boost::json;
using driver::cloud::api::LastSegment;
using driver::cloud::api::PercentEncoded;

namespace {

constexpr std::string_view kOwnPrefix = "nodepool_";
constexpr const char* kNameKey = "instance";
constexpr const char* kZoneKey = "zone";
constexpr const char* kAttemptKeyOfId = "attempt";
constexpr double kMostGigabytes = 1e9;
constexpr double kMostCores = 1e5;
constexpr double kMostRam = 1e9;

std::map<std::string, std::string> OwnMetadata(const json::object& entry) {
  std::map<std::string, std::string> own;
  const json::object* metadata = ObjectIn(entry, "metadata");
  if (metadata == nullptr) return own;
  for (const json::object* item : ObjectsIn(*metadata, "items")) {
    std::string key = TextIn(*item, "key");
    if (key.starts_with(kOwnPrefix)) own[key] = TextIn(*item, "value");
  }
  return own;
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
  instance.private_ipv4 = TextAt(entry, "networkInterfaces/0/networkIP");
  instance.public_ipv4 = TextAt(entry, "networkInterfaces/0/accessConfigs/0/natIP");
  instance.public_ipv6 = TextAt(entry, "networkInterfaces/0/ipv6AccessConfigs/0/externalIpv6");
  instance.has_public_ipv4 = ObjectAt(entry, "networkInterfaces/0/accessConfigs/0") != nullptr;
  instance.metadata = OwnMetadata(entry);
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
  for (GceInstance& instance : list) instances[instance.name] = std::move(instance);
  co_return instances;
}

Task<std::optional<GceInstance>> FindInstance(Compute& compute, std::string zone, std::string name) {
  ComputeCall call{"instances.get", InstancePath(zone, name)};
  std::optional<json::object> found = co_await driver::cloud::api::IfFound(compute.Get(std::move(call)));
  if (!found) co_return std::nullopt;
  co_return ReadInstance(*found);
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

Task<ImageSource> ReadNewest(Compute& compute, Family family) {
  ComputeCall call{"images.getFromFamily", "projects/" + PercentEncoded(family.first) +
                                               "/global/images/family/" + PercentEncoded(family.second)};
  Outcome<json::object> found = co_await Attempt(compute.Get(std::move(call)));
  if (FailedWith(found, Verdict::kNotFound)) {
    throw Error(Verdict::kInvalid, fmt::format("project {} has no image of family {}: {}", family.first,
                                               family.second, found.error().message()));
  }
  if (!found) found.error().Rethrow();
  ImageSource source{TextIn(*found, "selfLink"), TextIn(*found, "architecture")};
  if (source.url.empty()) throw Error(Verdict::kRetry, "images.getFromFamily was answered without an image");
  co_return source;
}

Task<std::optional<TypeSize>> ReadType(Compute& compute, Candidate candidate) {
  ComputeCall call{"machineTypes.get", "zones/" + PercentEncoded(candidate.place) + "/machineTypes/" +
                                           PercentEncoded(candidate.type)};
  Outcome<json::object> found = co_await Attempt(compute.Get(std::move(call)));
  // A name that is not well formed is refused in another way.
  bool is_refused = FailedWith(found, Verdict::kNotFound) || (!found && CodeOf(found.error()) == "invalid");
  if (is_refused) co_return std::nullopt;
  if (!found) found.error().Rethrow();
  TypeSize size{std::clamp(NumberIn(*found, "guestCpus"), 0.0, kMostCores),
                std::clamp(NumberIn(*found, "memoryMb"), 0.0, kMostRam), TextIn(*found, "architecture")};
  co_return size;
}

}  // namespace nodepool::drivers::gce
