#include "drivers/aws/compute/quota.h"

#include <fmt/format.h>

#include <optional>

#include "async/task.h"
#include "base/error.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "drivers/aws/compute/instance.h"

namespace nodepool::drivers::aws {

namespace {

constexpr Duration kLimitsLast = std::chrono::minutes(5);
constexpr const char* kEc2Quotas = "ec2";
constexpr const char* kEbsQuotas = "ebs";
// AWS's limits are in TiB; 1000 is on the safe side.
constexpr double kGigabytes = 1000;

}  // namespace

Task<Resources> AccountLimits::Read(std::set<std::string> instances, std::set<std::string> storage,
                                    std::set<std::string> iops) {
  if (!instances.empty()) co_await Refresh(kEc2Quotas);
  if (!storage.empty() || !iops.empty()) co_await Refresh(kEbsQuotas);
  Resources limits;
  Add(kEc2Quotas, instances, 1, limits);
  Add(kEbsQuotas, storage, kGigabytes, limits);
  Add(kEbsQuotas, iops, 1, limits);
  co_return limits;
}

Task<> AccountLimits::Refresh(std::string service) {
  Known& known = known_[service];
  SteadyTime now = loop_.SteadyNow();
  bool is_fresh = known.read != SteadyTime() && now - known.read < kLimitsLast;
  if (is_fresh) co_return;
  Outcome<std::map<std::string, double>> read = co_await Attempt(quotas_.List(service));
  if (read) {
    known = {std::move(*read), now, ""};
    co_return;
  }
  bool is_new = ReplaceMessage(known.fault, read.error().message());
  logger_.Write(is_new ? log::Level::kWarning : log::Level::kDebug,
                fmt::format("The quotas of {} could not be read; {}: {}", service,
                            known.limits.empty() ? "AWS's own refusals are the limit" : "the last ones count",
                            read.error().message()));
}

void AccountLimits::Add(const std::string& service, const std::set<std::string>& codes, double factor,
                        Resources& limits) {
  const Known& known = known_[service];
  for (const std::string& code : codes) {
    auto limit = known.limits.find(code);
    if (limit != known.limits.end()) {
      limits[code] = limit->second * factor;
    } else if (!known.limits.empty() && unknown_.insert(code).second) {
      logger_.Warning("AWS reports no quota {} of {}: what counts under it is not limited", code, service);
    }
  }
}

using driver::QuotaInformation;

namespace {

// The codes of the quotas under which the provider's nodes count.
struct UsedCodes {
  std::set<std::string> types;      // names of instance types, not codes
  std::set<std::string> instances;  // of virtual CPUs, and of dedicated hosts
  std::set<std::string> storage;
  std::set<std::string> iops;
};

void AddCode(std::string_view code, std::set<std::string>& codes) {
  if (!code.empty()) codes.emplace(code);
}

UsedCodes CodesOf(const AwsConfig& config) {
  UsedCodes used;
  for (const AwsLabel* label : driver::cloud::LabelsOf<AwsLabel>(config)) {
    if (!label->fault.empty()) continue;
    for (const std::string& type : label->instance_types) {
      used.types.insert(type);
      AddCode(label->dedicated_host ? CodeOfHost(type) : CodeOfType(type, label->use_spot), used.instances);
    }
    VolumeCodes volume = CodesOfVolume(label->volume.type.value_or(""));
    AddCode(volume.storage, used.storage);
    AddCode(volume.iops, used.iops);
  }
  return used;
}

QuotaInformation UseOfVolume(std::string_view type, double size, double iops) {
  VolumeCodes codes = CodesOfVolume(type);
  Resources use;
  if (!codes.storage.empty() && size > 0) use[std::string(codes.storage)] = size;
  if (!codes.iops.empty() && iops > 0) use[std::string(codes.iops)] = iops;
  return QuotaInformation::Amount(std::move(use));
}

}  // namespace

QuotaInformation NeedOf(const AwsCloud& cloud, const AwsLabel& label) {
  if (!label.fault.empty()) {
    throw Error(Verdict::kInvalid,
                fmt::format("no node of label {} can be made: {}", label.name, label.fault));
  }
  auto need = [&](const std::string& type, const TypeSize&) {
    return NeedOf(cloud.types, label, type).resources();
  };
  std::optional<Resources> least =
      cloud.types.LeastNeed(label.instance_types, need, "the instance types of AWS are not known yet");
  if (!least) {
    throw Error(Verdict::kInvalid, fmt::format("region {} has no instance type {}", cloud.region,
                                               Excerpt(Join(label.instance_types, ", "))));
  }
  if (label.fleet_strategy && !cloud.templates.are_ready()) {
    throw Error(Verdict::kRetry, "the launch templates of its fleets are not made yet");
  }
  return QuotaInformation::Amount(std::move(*least));
}

QuotaInformation NeedOf(const InstanceTypes& types, const AwsLabel& label, const std::string& type) {
  QuotaInformation need = label.dedicated_host ? NeedOfHost(type) : types.NeedOf(type, label.use_spot);
  const RootVolume& volume = label.volume;
  need.Add(UseOfVolume(volume.type.value_or(""), volume.size.value_or(0), volume.iops.value_or(0)));
  return need;
}

Task<QuotaInformation> ReadLimits(const AwsConfig& config, InstanceTypes& types, AccountLimits& account) {
  UsedCodes used = CodesOf(config);
  co_await types.Learn(used.types);
  Resources limits = co_await account.Read(used.instances, used.storage, used.iops);
  co_return QuotaInformation::Limit(std::move(limits));
}

std::string_view QuotaOf(std::string_view refusal, const AwsLabel& label, std::string_view type) {
  if (refusal == "VcpuLimitExceeded") return CodeOfType(type, label.use_spot);
  if (refusal == "MaxSpotInstanceCountExceeded" || refusal == "SpotInstanceCountExceeded")
    return CodeOfType(type, true);
  if (refusal == "HostLimitExceeded") return CodeOfHost(type);
  const VolumeCodes volume = CodesOfVolume(label.volume.type.value_or(""));
  if (refusal == "VolumeLimitExceeded") return volume.storage;
  return refusal == "MaxIOPSLimitExceeded" ? volume.iops : "";
}

bool CountsVolumes(const AwsConfig& config) { return !CodesOf(config).storage.empty(); }

QuotaInformation UseOf(const Volume& volume) { return UseOfVolume(volume.type, volume.size, volume.iops); }

}  // namespace nodepool::drivers::aws
