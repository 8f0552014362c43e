#include "driver/cloud/adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "async/task.h"
#include "driver/cloud/leaks/missing_machines.h"
#include "model/image.h"

namespace nodepool::driver::cloud {

namespace {

[[noreturn]] void ImagesNotSupported() {
  throw Error(Verdict::kInvalid, "this driver does not support image uploads");
}

// What is wrong with a label now that the cloud was asked.
std::vector<std::string> LabelFaults(Adapter& adapter, const LabelConfig& label) {
  std::vector<std::string> faults;
  try {
    adapter.QuotaForLabel(label);
  } catch (const Error& error) {
    faults.push_back(fmt::format("label {}: {}", label.name, error.message()));
  }
  if (label.cloud_image && adapter.LabelReady(label) == Readiness::kNotReady)
    faults.push_back(fmt::format("label {}: the cloud has no image {}", label.name, *label.cloud_image));
  return faults;
}

}  // namespace

std::vector<std::string> Adapter::Candidates(const LabelConfig&, const PoolConfig&) { return {}; }

Task<std::vector<boost::json::value>> Adapter::MissingMachines(std::vector<boost::json::value>) {
  co_return std::vector<boost::json::value>();
}

Task<std::vector<AnnouncedEnd>> Adapter::AnnouncedEnds(std::vector<boost::json::value>) {
  co_return std::vector<AnnouncedEnd>();
}

Task<std::vector<boost::json::value>> Adapter::NotListed(std::vector<boost::json::value> ids) {
  std::vector<Instance> instances = co_await ListInstances();
  ExternalIds listed;  // a cloud may have thousands
  for (const Instance& instance : instances) listed.insert(instance.external_id);
  std::erase_if(ids, [&listed](const boost::json::value& id) { return listed.contains(id); });
  co_return ids;
}

Task<AccessState> Adapter::StateOfAccess(NodeAccess) { co_return AccessState::kLasts; }

Task<NodeAccess> Adapter::RenewAccess(boost::json::value, NodeAccess access) { co_return access; }

Task<QuotaInformation> Adapter::QuotaLimits() { co_return QuotaInformation::Limit({}); }

std::optional<QuotaInformation> Adapter::UsedByOthers() { return std::nullopt; }

QuotaInformation Adapter::QuotaForLabel(const LabelConfig&) { return QuotaInformation::OneInstance(); }

Task<std::vector<std::optional<std::string>>> Adapter::AvailabilityZones() {
  std::vector<std::optional<std::string>> zones(1);
  co_return zones;
}

Task<> Adapter::LookAgain() { co_return; }

Readiness Adapter::LabelReady(const LabelConfig&) { return Readiness::kReady; }

Task<std::vector<std::string>> Adapter::FindFaults(const ProviderConfig& config) {
  co_await QuotaLimits();
  co_await ListInstances();
  std::vector<std::string> faults;
  for (const auto& [pool_name, pool] : config.pools) {
    for (const auto& [name, label] : pool->labels) {
      if (!IsValidationLabel(name)) std::ranges::move(LabelFaults(*this, *label), std::back_inserter(faults));
    }
  }
  co_return faults;
}

Task<std::string> Adapter::UploadImage(ImageUpload) {
  ImagesNotSupported();
  co_return std::string();
}

Task<> Adapter::DeleteImage(std::string) {
  ImagesNotSupported();
  co_return;
}

Task<std::vector<ListedImage>> Adapter::ListImages() { co_return std::vector<ListedImage>(); }

Task<std::optional<std::string>> Adapter::ConsoleLog(const LabelConfig&, boost::json::value) {
  co_return std::nullopt;
}

Task<> Adapter::Stop() { co_return; }

Task<> EnsureGone(Task<> deletion) {
  Outcome<> deleted = co_await Attempt(std::move(deletion));
  if (!deleted && !FailedWith(deleted, Verdict::kNotFound)) deleted.error().Rethrow();
}

}  // namespace nodepool::driver::cloud
