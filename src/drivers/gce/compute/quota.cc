#include "drivers/gce/compute/quota.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "async/attempt.h"
#include "base/text.h"
#include "driver/cloud/own_types.h"

namespace nodepool::drivers::gce {

using driver::QuotaInformation;
using driver::cloud::As;
using driver::cloud::LabelsOf;

namespace {

constexpr Duration kListLimit = std::chrono::seconds(20);
constexpr const char* kDisks = "DISKS_TOTAL_GB";
constexpr const char* kSsds = "SSD_TOTAL_GB";

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
  Resources use{{"instances", 1}};
  if (size == nullptr) return use;
  use["cores"] = size->cores;
  use["ram"] = size->ram;
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

std::vector<Candidate> CandidatesOf(const GceCloud& cloud, const GceLabel& label) {
  return driver::cloud::CandidatesOf(label.instance_types, cloud.config->zones);
}

// What the provider's own instances use; none: a zone could not be listed.
Task<std::optional<Resources>> OwnUse(GceCloud& cloud) {
  Resources own;
  for (const std::string& zone : cloud.config->zones) {
    Outcome<std::shared_ptr<const GceInstances>> listing =
        co_await Attempt(cloud.RecentList(zone, kListLimit));
    if (!listing) co_return std::nullopt;
    for (const auto& [name, instance] : **listing) {
      if (!IsOwn(cloud, instance)) continue;
      for (const auto& [resource, amount] : UseOf(cloud, instance)) own[resource] += amount;
    }
  }
  co_return own;
}

// The metrics under which nodes of the labels count.
std::set<std::string> MetricsOf(const GceCloud& cloud) {
  std::set<std::string> metrics{kInstances, kAllCpus, kAddresses};
  for (const GceLabel* label : LabelsOf<GceLabel>(*cloud.config)) {
    for (const std::string& type : label->instance_types)
      metrics.insert(CpuMetric(type, label->use_spot, HasSpotLimit(cloud)));
    std::string disk = DiskMetric(label->volume_type);
    if (!disk.empty()) metrics.insert(std::move(disk));
  }
  return metrics;
}

}  // namespace

std::string CpuMetric(const std::string& type, bool is_spot, bool has_spot_limit) {
  if (is_spot && has_spot_limit) return kSpotCpus;
  static const std::set<std::string> older = {"n1", "e2", "f1", "g1", "custom"};
  std::string family = type.substr(0, type.find('-'));
  return older.contains(family) ? "CPUS" : Upper(family) + "_CPUS";
}

std::string ResourceOf(const std::string& metric) { return metric == kInstances ? "instances" : metric; }

QuotaInformation NeedOf(const GceCloud& cloud, const GceLabel& label) {
  auto need = [&](const Candidate& candidate, const TypeSize& size) {
    return UseOfType(cloud, candidate.type, &size, label.use_spot);
  };
  std::optional<Resources> least = cloud.types.LeastNeed(CandidatesOf(cloud, label), need,
                                                         "the machine types of Google are not known yet");
  if (!least) {
    throw Error(Verdict::kInvalid,
                fmt::format("no zone of {} has machine type {}", Join(cloud.config->zones, ", "),
                            Excerpt(Join(label.instance_types, ", "))));
  }
  std::string disk = DiskMetric(label.volume_type);
  if (!disk.empty()) (*least)[disk] = label.volume_size;
  auto pool = cloud.config->pools.find(label.pool);
  bool has_address = pool != cloud.config->pools.end() && As<GcePool>(*pool->second).public_ipv4;
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
    for (const Candidate& candidate : CandidatesOf(cloud_, *label)) co_await cloud_.LearnType(candidate);
  }
  bool had_spot_limit = HasSpotLimit(cloud_);
  co_await cloud_.quota.Refresh();
  const std::set<std::string> metrics = MetricsOf(cloud_);
  std::optional<Resources> own;
  if (cloud_.quota.fault().empty()) own = co_await OwnUse(cloud_);
  if (own) cloud_.others.Compare(cloud_.quota.Usage(metrics, &ResourceOf), *own);
  if (HasSpotLimit(cloud_) != had_spot_limit) cloud_.environment.framework.NeedsChanged();
  co_return QuotaInformation::Limit(cloud_.quota.Limits(metrics, &ResourceOf));
}

}  // namespace nodepool::drivers::gce
