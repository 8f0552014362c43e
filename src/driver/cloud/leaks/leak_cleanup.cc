#include "driver/cloud/leaks/leak_cleanup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "async/attempt.h"
#include "async/deadline.h"
#include "driver/cloud/launch/instance.h"
#include "driver/records_environment.h"
#include "store/former_records.h"

namespace nodepool::driver::cloud {

namespace {

constexpr Duration kCallLimit = std::chrono::seconds(120);
constexpr std::size_t kIdsInLog = 5;

using ByKind = std::map<std::string, std::vector<std::string>>;  // ids

// "2 images (a, b), 7 volumes (c, d, e, f, g, ...)"
std::string Describe(const ByKind& kinds) {
  std::vector<std::string> texts;
  for (const auto& [kind, ids] : kinds) {
    std::size_t shown = std::min(ids.size(), kIdsInLog);
    texts.push_back(fmt::format("{} {} ({}{})", ids.size(), kind,
                                fmt::join(ids.begin(), ids.begin() + std::ptrdiff_t(shown), ", "),
                                ids.size() > shown ? ", ..." : ""));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string OfUnknown(const ByKind& kinds, const ProviderConfig& config) {
  return fmt::format(
      "{} of provider {} have our mark, but no record of them was ever removed here: they may be of a tree "
      "that was lost, and stay. nodepool alien-image-list {} shows images; delete in the cloud what nobody "
      "needs",
      Describe(kinds), config.name, config.name);
}

std::string OfTooMany(const ByKind& kinds, const ProviderConfig& config) {
  return fmt::format(
      "{} of provider {} have no record any more, more than {} % of what was uploaded: none of them is "
      "deleted. nodepool alien-image-list {} shows images; max-leaked-share: 100 in the provider's section "
      "allows their deletion, if they are not needed",
      Describe(kinds), config.name, config.max_leaked_share, config.name);
}

std::map<std::string, std::size_t> CountUploaded(const std::vector<Resource>& resources,
                                                 const ProviderName& provider) {
  std::map<std::string, std::size_t> counts;
  for (const Resource& resource : resources) {
    Owner owner = OwnerOf(resource.metadata);
    if (owner.provider == provider.str() && IsUploaded(owner)) ++counts[resource.plural_metric_name()];
  }
  return counts;
}

}  // namespace

Task<bool> LeakCleanup::Run() {
  // With incomplete caches everything would look leaked.
  if (!AreRecordsKnown()) co_return false;
  SteadyTime deadline = environment_.loop.SteadyNow() + kCallLimit;
  std::vector<Resource> resources =
      co_await WithDeadline(environment_.loop, deadline, "listing resources", adapter_.ListResources());
  for (const Resource& resource : resources) CheckResource(resource);
  if (!AreRecordsKnown()) co_return false;

  std::vector<Suspect> leaked = SeenAgain(
      FindSuspects(resources, config_.name, environment_.records.nodes, environment_.records.images));
  leaked = co_await OnceKnown(std::move(leaked));
  leaked = WithinShare(std::move(leaked), resources);
  LeakTally tally(environment_.observer, config_.name);
  bool is_any_gone = false;
  for (Suspect& suspect : leaked) {
    bool is_gone = co_await Delete(std::move(suspect), tally);
    is_any_gone = is_any_gone || is_gone;
  }
  co_return is_any_gone;
}

bool LeakCleanup::AreRecordsKnown() const {
  return environment_.records.nodes.synced() && environment_.records.images.synced();
}

std::vector<Suspect> LeakCleanup::SeenAgain(std::vector<Suspect> suspects) {
  auto before = std::exchange(suspects_, {});
  for (const Suspect& suspect : suspects) suspects_.insert(suspect.key());
  std::erase_if(suspects, [&](const Suspect& suspect) { return !before.contains(suspect.key()); });
  return suspects;
}

Task<std::vector<Suspect>> LeakCleanup::OnceKnown(std::vector<Suspect> leaked) {
  std::vector<Suspect> known;
  ByKind unknown;
  for (Suspect& suspect : leaked) {
    bool was_known = co_await WasKnown(suspect);
    if (was_known) {
      known.push_back(std::move(suspect));
    } else {
      unknown[suspect.resource.plural_metric_name()].push_back(suspect.resource.id);
    }
  }
  SayOnce(said_of_unknown_, unknown.empty() ? "" : OfUnknown(unknown, config_));
  co_return known;
}

Task<bool> LeakCleanup::WasKnown(const Suspect& suspect) {
  const Owner& owner = suspect.owner;
  if (suspect.is_twin) co_return true;
  if (IsUploaded(owner)) {
    co_return co_await store::WasUploadRemoved(environment_.records.store, environment_.records.images,
                                               *owner.build, config_.name, *owner.upload);
  }
  if (!suspect.resource.outlives_machine) co_return true;
  co_return co_await store::WasNodeRemoved(environment_.records.store, *owner.node);
}

std::vector<Suspect> LeakCleanup::WithinShare(std::vector<Suspect> leaked,
                                              const std::vector<Resource>& resources) {
  std::map<std::string, std::size_t> uploaded = CountUploaded(resources, config_.name);
  ByKind too_many;
  for (const Suspect& suspect : leaked) {
    std::string kind = suspect.resource.plural_metric_name();
    if (IsUploaded(suspect.owner)) too_many[kind].push_back(suspect.resource.id);
  }
  std::erase_if(too_many, [&](const auto& entry) {
    const auto& [kind, ids] = entry;
    return ids.size() <= MaxLeaked(uploaded[kind], config_.max_leaked_share);
  });
  std::erase_if(leaked, [&](const Suspect& suspect) {
    return IsUploaded(suspect.owner) && too_many.contains(suspect.resource.plural_metric_name());
  });
  SayOnce(said_of_share_, too_many.empty() ? "" : OfTooMany(too_many, config_));
  return leaked;
}

// Whether it is gone: deleted now, or meanwhile by the cloud.
Task<bool> LeakCleanup::Delete(Suspect suspect, LeakTally& tally) {
  std::string kind = suspect.resource.plural_metric_name();
  std::string what = fmt::format("leaked {} {}", suspect.resource.type, suspect.resource.id);
  logger_.Warning("Deleting {} of provider {}: no record of {}", what, config_.name, suspect.missing);
  SteadyTime deadline = environment_.loop.SteadyNow() + kCallLimit;
  Task<> deletion = adapter_.DeleteResource(std::move(suspect.resource));
  Outcome<> deleted =
      co_await Attempt(WithDeadline(environment_.loop, deadline, "deleting " + what, std::move(deletion)));
  if (deleted) tally.Add(kind);
  if (deleted || FailedWith(deleted, Verdict::kNotFound)) co_return true;
  logger_.Error("Deleting {} of provider {} failed; it is tried again in the next sweep: {}", what,
                config_.name, deleted.error().message());
  co_return false;
}

void LeakCleanup::SayOnce(std::string& said, std::string text) {
  if (text != said && !text.empty()) logger_.Warning("{}", text);
  said = std::move(text);
}

std::size_t MaxLeaked(std::size_t all, int share) {
  return share == 0 ? 0 : std::max<std::size_t>(1, all * static_cast<std::size_t>(share) / 100);
}

}  // namespace nodepool::driver::cloud
