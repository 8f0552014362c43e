#include "drivers/gce/compute/lookups.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/request_id.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/gce/api/faults.h"

namespace nodepool::drivers::gce {

namespace json = boost::json;
using driver::cloud::api::PercentEncoded;

namespace {

constexpr double kMostCores = 1e5;
constexpr double kMostRam = 1e9;
constexpr std::size_t kMostMetrics = 2000;
constexpr double kMost = 1e12;

}  // namespace

Families::Families(Loop& loop, Compute& compute, log::Logger logger)
    : compute_(compute),
      newest_(
          loop, [this](Key key) { return ReadNewest(std::move(key)); },
          [logger = std::move(logger)](const Key& key, const Failure& failure) {
            logger.Warning("The newest image of family {} is not known; the last one is used: {}", key.second,
                           failure.message());
          }) {}

Task<ImageSource> Families::Find(GceCloudImage image) {
  if (image.is_id) co_return ImageSource{image.external_name, ""};
  if (image.project.empty() || image.family.empty()) {
    throw Error(Verdict::kInvalid,
                fmt::format("cloud image {} needs image-id, or image-project and image-family", image.name));
  }
  Key key{image.project, image.family};
  ImageSource source = co_await newest_.Get(std::move(key));
  co_return source;
}

Task<ImageSource> Families::ReadNewest(Key key) {
  ComputeCall call{"images.getFromFamily", "projects/" + PercentEncoded(key.first) +
                                               "/global/images/family/" + PercentEncoded(key.second)};
  Outcome<json::object> found = co_await Attempt(compute_.Get(std::move(call)));
  if (FailedWith(found, Verdict::kNotFound)) {
    throw Error(Verdict::kInvalid, fmt::format("project {} has no image of family {}: {}", key.first,
                                               key.second, found.error().message()));
  }
  if (!found) found.error().Rethrow();
  ImageSource source{TextIn(*found, "selfLink"), TextIn(*found, "architecture")};
  if (source.url.empty()) throw Error(Verdict::kRetry, "images.getFromFamily was answered without an image");
  co_return source;
}

Task<> MachineTypes::Learn(Candidate candidate) {
  if (Find(candidate) != nullptr) co_return;
  ComputeCall call{"machineTypes.get", "zones/" + PercentEncoded(candidate.zone) + "/machineTypes/" +
                                           PercentEncoded(candidate.type)};
  Outcome<json::object> found = co_await Attempt(compute_.Get(std::move(call)));
  // A name that is not well formed is refused in another way.
  bool is_refused = FailedWith(found, Verdict::kNotFound) || (!found && CodeOf(found.error()) == "invalid");
  if (is_refused) SetUnknown(candidate);
  if (is_refused) co_return;
  if (!found) found.error().Rethrow();
  TypeSize size;
  size.cores = std::clamp(NumberIn(*found, "guestCpus"), 0.0, kMostCores);
  size.ram = std::clamp(NumberIn(*found, "memoryMb"), 0.0, kMostRam);
  size.architecture = TextIn(*found, "architecture");
  Set(candidate, std::move(size));
}

Task<> RegionQuota::Read() {
  Outcome<> read = co_await Attempt(ReadBoth());
  bool is_new = ReplaceMessage(fault_, read ? "" : read.error().message());
  if (fault_.empty()) co_return;
  logger_.Write(
      is_new ? log::Level::kWarning : log::Level::kDebug,
      fmt::format("The quotas of region {} could not be read; {}: {}", region_,
                  metrics_.empty() ? "Google's own refusals are the limit" : "the last ones count", fault_));
}

Task<> RegionQuota::ReadBoth() {
  ComputeCall region{"regions.get", "regions/" + region_};
  std::set<std::string> all;
  co_await ReadInto(std::move(region), std::move(all));
  ComputeCall project{"projects.get", ""};
  std::set<std::string> wanted{kAllCpus};
  co_await ReadInto(std::move(project), std::move(wanted));
}

// `wanted`: empty: all.
Task<> RegionQuota::ReadInto(ComputeCall call, std::set<std::string> wanted) {
  json::object answer = co_await compute_.Get(std::move(call));
  const json::array* quotas = ArrayIn(answer, "quotas");
  for (std::size_t i = 0; quotas != nullptr && i < std::min(quotas->size(), kMostMetrics); ++i) {
    const json::object* quota = (*quotas)[i].if_object();
    if (quota == nullptr) continue;
    std::string name = TextIn(*quota, "metric");
    if (name.empty() || (!wanted.empty() && !wanted.contains(name))) continue;
    metrics_[name] = {std::clamp(NumberIn(*quota, "limit"), 0.0, kMost),
                      std::clamp(NumberIn(*quota, "usage"), 0.0, kMost)};
  }
}

const Metric* RegionQuota::Find(const std::string& metric) const {
  auto found = metrics_.find(metric);
  return found == metrics_.end() ? nullptr : &found->second;
}

bool RegionQuota::has_spot_limit() const {
  const Metric* spot = Find(kSpotCpus);
  return spot != nullptr && spot->limit > 0;
}

}  // namespace nodepool::drivers::gce
