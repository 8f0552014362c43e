#include "drivers/gce/gce_adapter.h"

#include <fmt/format.h>

#include "async/attempt.h"
#include "drivers/gce/compute/instance_request.h"
#include "drivers/gce/compute/machines.h"
#include "drivers/gce/compute/quota.h"
#include "drivers/gce/images/images.h"

namespace nodepool::drivers::gce {

using driver::QuotaInformation;
using driver::cloud::Adapter;
using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::MachineReport;
using driver::cloud::Resource;

GceAdapter::GceAdapter(driver::cloud::AdapterEnvironment environment, std::shared_ptr<const GceConfig> config,
                       Endpoints endpoints, Variables variables, std::unique_ptr<net::HttpClient> client)
    : cloud_(std::move(environment), std::move(config), std::move(endpoints), std::move(variables),
             std::move(client)) {}

Task<Instance> GceAdapter::Create(MachineReport& machine, CreateParameters parameters) {
  return CreateMachine(cloud_, machine, std::move(parameters));
}

std::vector<std::string> GceAdapter::Candidates(const driver::LabelConfig& label, const driver::PoolConfig&) {
  return CandidateNames(dynamic_cast<const GceLabel&>(label), *cloud_.config);
}

Task<> GceAdapter::Delete(MachineReport& machine, boost::json::value external_id) {
  MachineId id = ReadExternalId(external_id, cloud_.config->zone);
  co_await DeleteMachine(cloud_, machine, std::move(id));
}

Task<std::vector<Instance>> GceAdapter::ListInstances() { return ListMachines(cloud_); }

Task<std::vector<Resource>> GceAdapter::ListResources() { return ListMarked(cloud_); }

Task<> GceAdapter::DeleteResource(Resource resource) { return DeleteMarked(cloud_, std::move(resource)); }

Task<std::vector<boost::json::value>> GceAdapter::MissingMachines(std::vector<boost::json::value> ids) {
  return MissingInstances(cloud_, std::move(ids));
}

Task<std::vector<driver::cloud::AnnouncedEnd>> GceAdapter::AnnouncedEnds(
    std::vector<boost::json::value> ids) {
  return EndingInstances(cloud_, std::move(ids));
}

Task<std::optional<std::string>> GceAdapter::ConsoleLog(const driver::LabelConfig&,
                                                        boost::json::value external_id) {
  MachineId id = ReadExternalId(external_id, cloud_.config->zone);
  if (id.name.empty()) co_return std::nullopt;
  std::optional<std::string> console = co_await ReadConsole(cloud_.compute, id.zone, id.name);
  co_return console;
}

Task<QuotaInformation> GceAdapter::QuotaLimits() { return ReadLimits(cloud_); }

std::optional<QuotaInformation> GceAdapter::UsedByOthers() { return gce::UsedByOthers(cloud_); }

QuotaInformation GceAdapter::QuotaForLabel(const driver::LabelConfig& label) {
  return NeedOf(cloud_, dynamic_cast<const GceLabel&>(label));
}

// Beside the usual faults: what only a launch or an upload would show otherwise.
Task<std::vector<std::string>> GceAdapter::FindFaults(const driver::ProviderConfig& config) {
  std::vector<std::string> faults = co_await Adapter::FindFaults(config);
  if (!cloud_.quota.fault().empty()) faults.push_back("quotas: " + cloud_.quota.fault());
  for (const auto& [name, image] : cloud_.config->cloud_images) {
    Outcome<ImageSource> found = co_await Attempt(cloud_.families.Find(image));
    if (!found) faults.push_back(fmt::format("cloud image {}: {}", name, found.error().message()));
  }
  if (!cloud_.storage) co_return faults;
  Outcome<std::vector<StoredObject>> listed = co_await Attempt(cloud_.storage->List("nodepool-check"));
  if (!listed) faults.push_back(fmt::format("object-storage: {}", listed.error().message()));
  co_return faults;
}

Task<std::string> GceAdapter::UploadImage(ImageUpload upload) {
  return gce::UploadImage(cloud_, std::move(upload));
}

Task<> GceAdapter::DeleteImage(std::string external_id) {
  return gce::DeleteImage(cloud_, std::move(external_id));
}

Task<std::vector<driver::ListedImage>> GceAdapter::ListImages() { return ListUploadedImages(cloud_); }

Task<> GceAdapter::Stop() { co_await cloud_.tasks.Stop(); }

}  // namespace nodepool::drivers::gce
