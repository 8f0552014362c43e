#include "drivers/gce/gce_driver.h"

#include <fmt/format.h>

#include "driver/cloud/launch/machine_start.h"
#include "driver/cloud/metadata.h"
#include "drivers/gce/compute/quota.h"
#include "drivers/gce/config/gce_config.h"

namespace nodepool::drivers::gce {

namespace {

constexpr Duration kRenewBefore = std::chrono::minutes(5);
constexpr Duration kNew = std::chrono::seconds(60);
constexpr const char* kCloudName = "Google";

// Empty: Google does not accept the provider's name as a label.
std::string LabelFor(const GceConfig& config) {
  return kLabelValueRule.Permits(config.name.value) ? config.name.value : "";
}

// The instances with a label, or all; `which`: in log lines.
InstanceLists::Source SourceOf(GceCloud& cloud, const char* which, std::string label) {
  auto read = [&cloud, label = std::move(label)](std::string zone) {
    return ListInstancesIn(cloud.compute, std::move(zone), label);
  };
  auto key_of = [&usual = cloud.config->zone](const boost::json::value& external_id) {
    MachineId id = ReadExternalId(external_id, usual);
    return driver::cloud::MachineKey{id.zone, id.name};
  };
  const GceConfig& config = *cloud.config;
  return {which + ("instances of provider " + config.name.str()), config.name, config.zones, read, key_of};
}

}  // namespace

GceCloud::GceCloud(driver::cloud::AdapterEnvironment for_environment,
                   std::shared_ptr<const GceConfig> provider, Variables variables,
                   std::unique_ptr<net::HttpClient> client)
    : environment(std::move(for_environment)),
      config(std::move(provider)),
      endpoints(EndpointsOf(variables)),
      http(std::move(client)),
      fetcher(environment, *http, endpoints, config->credentials_file, std::move(variables), logger),
      tokens(
          environment.loop, [this] { return fetcher.Fetch(); }, kRenewBefore),
      signer(tokens),
      compute(environment, *http, endpoints, *config, signer, logger),
      tasks(environment.loop, logger),
      types([this](Candidate asked) { return ReadType(compute, std::move(asked)); }),
      families(
          environment.loop, [this](Family family) { return ReadNewest(compute, std::move(family)); },
          [this](const Family& family, const Failure& failure) {
            logger.Warning("The newest image of family {} is not known; the last one is used: {}",
                           family.second, failure.message());
          }),
      fresh(environment.loop, kNew),
      quota(kCloudName, "region " + config->region, logger,
            [this](auto& counters) { return ReadQuotas(compute, config->region, counters); }),
      others(tasks, environment.framework),
      labelled(environment, tasks, logger, SourceOf(*this, "", LabelFor(*config))),
      all(environment, tasks, logger, SourceOf(*this, "all ", "")) {
  if (config->bucket) storage.emplace(environment, *http, endpoints, *config, signer, logger);
}

std::vector<Candidate> GceCloud::CandidatesOf(const GceLabel& label) const {
  return driver::cloud::CandidatesOf(label.instance_types, config->zones);
}

Task<ImageSource> GceCloud::FindImage(GceCloudImage image) {
  if (image.is_id) co_return ImageSource{image.external_name, ""};
  if (image.project.empty() || image.family.empty()) {
    throw Error(Verdict::kInvalid,
                fmt::format("cloud image {} needs image-id, or image-project and image-family", image.name));
  }
  Family family{image.project, image.family};
  ImageSource source = co_await families.Get(std::move(family));
  co_return source;
}

bool IsOwn(const GceCloud& cloud, const GceInstance& instance, const std::string& node,
           const std::string& attempt) {
  driver::cloud::Owner owner = driver::cloud::OwnerOf(instance.metadata);
  bool is_node = node.empty() || (owner.node && owner.node->str() == node);
  return owner.provider == cloud.config->name.str() && is_node &&
         (attempt.empty() || owner.attempt == attempt);
}

driver::cloud::Instance Describe(const GceCloud& cloud, const GceInstance& instance) {
  driver::cloud::Instance described;
  described.external_id = ExternalId({instance.name, instance.zone}, cloud.config->zone);
  described.name = instance.name;
  described.metadata = instance.metadata;
  described.cloud = kCloudName;
  described.region = instance.zone.substr(0, instance.zone.rfind('-'));
  if (!instance.zone.empty()) described.az = instance.zone;
  driver::cloud::SetAddresses({instance.public_ipv4, instance.public_ipv6, instance.private_ipv4}, described);
  described.quota = driver::QuotaInformation::Amount(UseOf(cloud, instance));
  return described;
}

GceAdapter::GceAdapter(driver::cloud::AdapterEnvironment environment,
                       std::shared_ptr<const driver::ProviderConfig> config, Variables variables,
                       std::unique_ptr<net::HttpClient> client)
    : CloudAdapter(std::move(config)),
      cloud_(std::move(environment), config_, std::move(variables), std::move(client)),
      images_(MakeImages(cloud_)) {}

std::vector<std::string> GceAdapter::Candidates(const driver::LabelConfig& label, const driver::PoolConfig&) {
  const GceLabel& own = Own(label);
  return driver::cloud::NamesOf<std::string>(cloud_.CandidatesOf(own), own.use_spot,
                                             [](const std::string& zone) { return zone; });
}

Task<std::optional<std::string>> GceAdapter::ConsoleLog(const driver::LabelConfig&,
                                                        boost::json::value external_id) {
  MachineId id = ReadExternalId(external_id, config_->zone);
  if (id.name.empty()) co_return std::nullopt;
  ComputeCall call{"instances.getSerialPortOutput", InstancePath(id.zone, id.name) + "/serialPort", "port=1"};
  boost::json::object answer = co_await cloud_.compute.Get(std::move(call));
  co_return driver::cloud::EndOfConsole(TextIn(answer, "contents"));
}

// Beside the usual faults: what only a launch or an upload would show otherwise.
Task<std::vector<std::string>> GceAdapter::FindFaults(const driver::ProviderConfig& config) {
  std::vector<std::string> faults = co_await Adapter::FindFaults(config);
  if (!cloud_.quota.fault().empty()) faults.push_back("quotas: " + cloud_.quota.fault());
  for (const auto& [name, image] : config_->cloud_images) {
    Outcome<ImageSource> found = co_await Attempt(cloud_.FindImage(image));
    if (!found) faults.push_back(fmt::format("cloud image {}: {}", name, found.error().message()));
  }
  if (!cloud_.storage) co_return faults;
  Outcome<std::vector<driver::cloud::StagedFile>> listed =
      co_await Attempt(cloud_.storage->List("nodepool-check"));
  if (!listed) faults.push_back(fmt::format("object-storage: {}", listed.error().message()));
  co_return faults;
}

}  // namespace nodepool::drivers::gce

namespace nodepool::drivers {

GceDriver::GceDriver(std::optional<process::Environment> variables)
    : HttpDriver(Parts::Of<gce::GceAdapter>("gce", &gce::GceSchema, &gce::LoadGceConfig),
                 std::move(variables)) {}

}  // namespace nodepool::drivers
