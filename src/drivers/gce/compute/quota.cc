#include "drivers/gce/compute/quota.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json_fields.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"

namespace nodepool::drivers::gce {

using driver::QuotaInformation;
using driver::cloud::AccountCounters;
using driver::cloud::LabelsOf;

namespace {

constexpr std::size_t kMostMetrics = 2000;
// What counts under limits beside instances.
constexpr const char* kAllCpus = "CPUS_ALL_REGIONS";
constexpr const char* kSpotCpus = "PREEMPTIBLE_CPUS";
constexpr const char* kAddresses = "IN_USE_ADDRESSES";
constexpr const char* kDisks = "DISKS_TOTAL_GB";
constexpr const char* kSsds = "SSD_TOTAL_GB";

Task<> ReadQuotasAt(Compute& compute, ComputeCall call, const char* only, AccountCounters& counters) {
  boost::json::object answer = co_await compute.Get(std::move(call));
  for (const boost::json::object* quota : ObjectsIn(answer, "quotas", kMostMetrics)) {
    std::string metric = TextIn(*quota, "metric");
    if (only == nullptr || metric == only)
      counters.Set(ResourceOf(metric), NumberIn(*quota, "limit"), NumberIn(*quota, "usage"));
  }
}

// Empty: disks of the type have no limit that is known.
std::string DiskMetric(const std::string& volume_type) {
  if (volume_type == "pd-standard") return kDisks;
  return volume_type == "pd-balanced" || volume_type == "pd-ssd" ? kSsds : "";
}

// Spot instances count under a limit of their own.
bool HasSpotLimit(const GceCloud& cloud) {
  const driver::cloud::Counter* spot = cloud.quota.Find(kSpotCpus);
  return spot != nullptr && spot->limit > 0;
}

// `size`: null: it is not known.
Resources UseOfType(const GceCloud& cloud, const std::string& type, const TypeSize* size, bool is_spot) {
  Resources use{{resource::kInstances, 1}};
  if (size == nullptr) return use;
  use[resource::kCores] = size->cores;
  use[resource::kRam] = size->ram;
  use[CpuMetric(type, is_spot, HasSpotLimit(cloud))] = size->cores;
  use[kAllCpus] = size->cores;
  return use;
}

// The type of disk that the provider's nodes of that machine type have.
std::string VolumeTypeFor(const GceConfig& config, const std::string& type) {
  for (const GceLabel* label : LabelsOf<GceLabel>(config)) {
    if (std::ranges::find(label->instance_types, type) != label->instance_types.end())
      return label->volume_type;
  }
  return "";
}

// What nodes of the labels need that limits may exist for.
std::set<std::string> LimitedBy(const GceCloud& cloud) {
  std::set<std::string> resources{resource::kInstances, kAllCpus, kAddresses};
  for (const GceLabel* label : LabelsOf<GceLabel>(*cloud.config)) {
    for (const std::string& type : label->instance_types)
      resources.insert(CpuMetric(type, label->use_spot, HasSpotLimit(cloud)));
    resources.insert(DiskMetric(label->volume_type));
  }
  return resources;
}

}  // namespace

Task<> ReadQuotas(Compute& compute, std::string region, AccountCounters& counters) {
  ComputeCall of_region{"regions.get", "regions/" + region};
  co_await ReadQuotasAt(compute, std::move(of_region), nullptr, counters);
  ComputeCall of_project{"projects.get", ""};
  co_await ReadQuotasAt(compute, std::move(of_project), kAllCpus, counters);
}

std::string CpuMetric(const std::string& type, bool is_spot, bool has_spot_limit) {
  if (is_spot && has_spot_limit) return kSpotCpus;
  static const std::set<std::string> older = {"n1", "e2", "f1", "g1", "custom"};
  std::string family = type.substr(0, type.find('-'));
  return older.contains(family) ? "CPUS" : Upper(family) + "_CPUS";
}

std::string ResourceOf(const std::string& metric) {
  return metric == "INSTANCES" ? resource::kInstances : metric;
}

QuotaInformation NeedOf(const GceCloud& cloud, const GceLabel& label) {
  auto need = [&](const Candidate& candidate, const TypeSize& size) {
    return UseOfType(cloud, candidate.type, &size, label.use_spot);
  };
  std::optional<Resources> least =
      cloud.types.LeastNeed(cloud.CandidatesOf(label), need, "the machine types of Google are not known yet");
  if (!least) {
    throw Error(Verdict::kInvalid,
                fmt::format("no zone of {} has machine type {}", Join(cloud.config->zones, ", "),
                            Excerpt(Join(label.instance_types, ", "))));
  }
  std::string disk = DiskMetric(label.volume_type);
  if (!disk.empty()) (*least)[disk] = label.volume_size;
  auto pool = cloud.config->pools.find(label.pool);
  bool has_address =
      pool != cloud.config->pools.end() && driver::cloud::As<GcePool>(*pool->second).public_ipv4;
  if (has_address) (*least)[kAddresses] = 1;
  return QuotaInformation::Amount(std::move(*least));
}

Resources UseOf(const GceCloud& cloud, const GceInstance& instance) {
  const TypeSize* size = cloud.types.Find({instance.type, instance.zone});
  Resources use = UseOfType(cloud, instance.type, size, instance.is_spot);
  std::string disk = DiskMetric(VolumeTypeFor(*cloud.config, instance.type));
  if (!disk.empty() && instance.disk_size > 0) use[disk] = instance.disk_size;
  if (instance.has_public_ipv4) use[kAddresses] = 1;
  return use;
}

QuotaInformation GceAdapter::QuotaForLabel(const driver::LabelConfig& label) {
  return NeedOf(cloud_, Own(label));
}

Task<QuotaInformation> GceAdapter::QuotaLimits() {
  for (const GceLabel* label : LabelsOf<GceLabel>(*config_)) {
    for (const Candidate& candidate : cloud_.CandidatesOf(*label)) co_await cloud_.types.Learn(candidate);
  }
  bool had_spot_limit = HasSpotLimit(cloud_);
  co_await cloud_.quota.Refresh();
  const std::set<std::string> limited = LimitedBy(cloud_);
  auto use_of = [this](const GceInstance& instance) { return UseOf(cloud_, instance); };
  std::optional<Resources> own;
  if (cloud_.quota.fault().empty()) own = co_await cloud_.all.OwnUse(use_of);
  if (own) cloud_.others.Compare(cloud_.quota.Usage(limited), *own);
  if (HasSpotLimit(cloud_) != had_spot_limit) cloud_.environment.framework.NeedsChanged();
  co_return QuotaInformation::Limit(cloud_.quota.Limits(limited));
}

}  // namespace nodepool::drivers::gce
