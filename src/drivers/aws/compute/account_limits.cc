#include "drivers/aws/compute/account_limits.h"

#include "async/attempt.h"
#include "base/request_id.h"

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

}  // namespace nodepool::drivers::aws
