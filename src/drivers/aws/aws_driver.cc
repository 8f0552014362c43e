#include "drivers/aws/aws_driver.h"

#include "driver/cloud/adapter.h"
#include "drivers/aws/compute/instance.h"
#include "drivers/aws/compute/instance_request.h"
#include "drivers/aws/compute/machines.h"
#include "drivers/aws/compute/quota.h"
#include "drivers/aws/config/aws_settings.h"
#include "drivers/aws/credentials/credentials.h"

namespace nodepool::drivers::aws {

using driver::QuotaInformation;
using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::MachineReport;
using driver::cloud::Resource;

AwsAdapter::AwsAdapter(driver::cloud::AdapterEnvironment environment,
                       const std::shared_ptr<const driver::ProviderConfig>& config, Account account,
                       Variables variables, std::unique_ptr<net::HttpClient> client)
    : CloudAdapter(config),
      environment_(std::move(environment)),
      services_(environment_, *config_, std::move(account), std::move(variables), std::move(client),
                logger_) {}

void AwsAdapter::Start() { cloud_.templates.Start(); }

Task<Instance> AwsAdapter::Create(MachineReport& machine, CreateParameters parameters) {
  return CreateMachine(cloud_, machine, std::move(parameters));
}

std::vector<std::string> AwsAdapter::Candidates(const driver::LabelConfig& label,
                                                const driver::PoolConfig& pool) {
  return CandidateNames(Own(label), Own(pool));
}

Task<> AwsAdapter::Delete(MachineReport& machine, boost::json::value external_id) {
  MachineId id = ReadExternalId(external_id);
  co_await DeleteMachine(cloud_, machine, std::move(id));
}

Task<std::vector<Instance>> AwsAdapter::ListInstances() { return ListMachines(cloud_); }

Task<std::vector<Resource>> AwsAdapter::ListResources() {
  std::vector<Resource> resources = co_await MarkedInstances(cloud_.instances);
  Task<std::vector<Resource>> volumes = MarkedVolumes(services_.ec2(), config_->name.str());
  co_await Append("volumes", std::move(volumes), resources);
  // Labels may have had dedicated hosts before, and the builder images.
  bool is_due = rare_sweeps_.Begin();
  bool has_images = is_due || driver::cloud::MayHaveImages(environment_.framework, *config_);
  if (has_images) co_await AppendMarkedImages(images_, resources);
  if (is_due) co_await AbortOldUploads(images_);
  bool has_hosts = is_due || driver::cloud::AnyLabel<AwsLabel>(*config_, &AwsLabel::dedicated_host);
  if (!has_hosts) co_return resources;
  Task<std::vector<Resource>> hosts = MarkedHosts(services_.ec2(), config_->name.str());
  co_await Append("dedicated hosts", std::move(hosts), resources);
  co_return resources;
}

Task<> AwsAdapter::Append(const char* what, Task<std::vector<Resource>> list,
                          std::vector<Resource>& resources) {
  return driver::cloud::AppendListed(logger_, config_->name, what, std::move(list), resources);
}

Task<> AwsAdapter::DeleteResource(Resource resource) {
  return IsOfImages(resource) ? DeleteMarkedImage(services_, std::move(resource))
                              : DeleteMarked(cloud_, std::move(resource));
}

Task<std::vector<boost::json::value>> AwsAdapter::MissingMachines(std::vector<boost::json::value> ids) {
  return MissingInstances(cloud_.instances, std::move(ids));
}

Task<std::vector<driver::cloud::AnnouncedEnd>> AwsAdapter::AnnouncedEnds(
    std::vector<boost::json::value> ids) {
  return EndingInstances(cloud_, std::move(ids));
}

Task<std::optional<std::string>> AwsAdapter::ConsoleLog(const driver::LabelConfig&,
                                                        boost::json::value external_id) {
  std::string instance = ReadExternalId(external_id).instance;
  if (instance.empty()) co_return std::nullopt;
  std::optional<std::string> console = co_await ReadConsole(services_.ec2(), std::move(instance));
  co_return console;
}

Task<QuotaInformation> AwsAdapter::QuotaLimits() { return ReadLimits(*config_, cloud_.types, limits_); }

QuotaInformation AwsAdapter::QuotaForLabel(const driver::LabelConfig& label) {
  return NeedOf(cloud_, Own(label));
}

Task<std::string> AwsAdapter::UploadImage(ImageUpload upload) {
  return aws::UploadImage(images_, std::move(upload));
}

Task<> AwsAdapter::DeleteImage(std::string external_id) {
  return aws::DeleteImage(images_, std::move(external_id));
}

Task<std::vector<driver::ListedImage>> AwsAdapter::ListImages() {
  return ListUploadedImages(services_.ec2());
}

Task<> AwsAdapter::Stop() { co_await tasks_.Stop(); }

}  // namespace nodepool::drivers::aws

namespace nodepool::drivers {

namespace {

std::unique_ptr<driver::cloud::Adapter> MakeAwsAdapter(const driver::cloud::AdapterEnvironment& environment,
                                                       std::shared_ptr<const driver::ProviderConfig> config,
                                                       aws::Variables variables,
                                                       std::unique_ptr<net::HttpClient> client) {
  const auto& settings = driver::cloud::As<aws::AwsConfig>(*config);
  aws::Profiles profiles = aws::ReadProfiles(variables);
  aws::Account account =
      aws::ResolveAccount(profiles, variables, settings.region_name, settings.profile_name);
  return std::make_unique<aws::AwsAdapter>(environment, config, std::move(account), std::move(variables),
                                           std::move(client));
}

}  // namespace

AwsDriver::AwsDriver(std::optional<process::Environment> variables)
    : HttpDriver({"aws", &aws::AwsSchema, &aws::LoadAwsConfig, &MakeAwsAdapter}, std::move(variables)) {}

}  // namespace nodepool::drivers
