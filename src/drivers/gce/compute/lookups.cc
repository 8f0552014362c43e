#include "drivers/gce/compute/lookups.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_entries.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/gce/api/faults.h"

namespace nodepool::drivers::gce {

namespace json = boost::json;
using driver::cloud::AccountCounters;
using driver::cloud::api::PercentEncoded;

namespace {

constexpr double kMostCores = 1e5;
constexpr double kMostRam = 1e9;
constexpr std::size_t kMostMetrics = 2000;

void SetQuotas(const json::object& answer, bool is_project, AccountCounters& counters) {
  for (const json::object* quota : ObjectsIn(answer, "quotas", kMostMetrics)) {
    std::string name = TextIn(*quota, "metric");
    if (!is_project || name == kAllCpus)
      counters.Set(name, NumberIn(*quota, "limit"), NumberIn(*quota, "usage"));
  }
}

}  // namespace

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

Task<> ReadQuotas(Compute& compute, std::string region, AccountCounters& counters) {
  ComputeCall of_region{"regions.get", "regions/" + region};
  json::object answer = co_await compute.Get(std::move(of_region));
  SetQuotas(answer, false, counters);
  ComputeCall of_project{"projects.get", ""};
  answer = co_await compute.Get(std::move(of_project));
  SetQuotas(answer, true, counters);
}

}  // namespace nodepool::drivers::gce
