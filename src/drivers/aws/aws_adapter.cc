#include "drivers/aws/aws_adapter.h"

#include "drivers/aws/compute/instance.h"
#include "drivers/aws/compute/instance_request.h"
#include "drivers/aws/compute/machines.h"
#include "drivers/aws/compute/quota.h"
#include "drivers/aws/images/image_leaks.h"
#include "drivers/aws/images/remove_image.h"
#include "drivers/aws/images/upload_image.h"

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
      cloud_(std::move(environment), config_, std::move(account), std::move(variables), std::move(client)) {}

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

Task<std::vector<Resource>> AwsAdapter::ListResources() { return ListMarked(cloud_); }

Task<> AwsAdapter::DeleteResource(Resource resource) { return DeleteMarked(cloud_, std::move(resource)); }

Task<std::vector<boost::json::value>> AwsAdapter::MissingMachines(std::vector<boost::json::value> ids) {
  return MissingInstances(cloud_, std::move(ids));
}

Task<std::vector<driver::cloud::AnnouncedEnd>> AwsAdapter::AnnouncedEnds(
    std::vector<boost::json::value> ids) {
  return EndingInstances(cloud_, std::move(ids));
}

Task<std::optional<std::string>> AwsAdapter::ConsoleLog(const driver::LabelConfig&,
                                                        boost::json::value external_id) {
  std::string instance = ReadExternalId(external_id).instance;
  if (instance.empty()) co_return std::nullopt;
  std::optional<std::string> console = co_await ReadConsole(cloud_.ec2, std::move(instance));
  co_return console;
}

Task<QuotaInformation> AwsAdapter::QuotaLimits() { return ReadLimits(cloud_); }

QuotaInformation AwsAdapter::QuotaForLabel(const driver::LabelConfig& label) {
  return NeedOf(cloud_, Own(label));
}

Task<std::string> AwsAdapter::UploadImage(ImageUpload upload) {
  return aws::UploadImage(cloud_, std::move(upload));
}

Task<> AwsAdapter::DeleteImage(std::string external_id) {
  return aws::DeleteImage(cloud_, std::move(external_id));
}

Task<std::vector<driver::ListedImage>> AwsAdapter::ListImages() { return ListUploadedImages(cloud_); }

Task<> AwsAdapter::Stop() { co_await cloud_.tasks.Stop(); }

}  // namespace nodepool::drivers::aws
