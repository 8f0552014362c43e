#pragma once

#include <memory>
#include <optional>
#include <string>

#include "async/task_group.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/list_cache.h"
#include "driver/cloud/cloud_driver.h"
#include "driver/cloud/images/staged_images.h"
#include "driver/cloud/launch/machine_start.h"
#include "driver/cloud/leaks/leak_search.h"
#include "driver/cloud/machine_lists.h"
#include "driver/cloud/quota/account_counters.h"
#include "drivers/gce/api/services.h"
#include "drivers/gce/api/storage.h"
#include "drivers/gce/compute/instance.h"

namespace nodepool::drivers::gce {

// By zone and name, each list read once for all waiting tasks (driver-gce.md 6).
using InstanceLists = driver::cloud::MachineLists<GceInstance>;

// An instance that was inserted here in the last minute and that no list has shown yet (driver-gce.md 6).
struct NewInstance {
  std::string operation;  // the insert's; empty: it is not known
  std::string zone;
};

// What creations, deletions and lists of one provider share.
struct GceCloud {
  // `http` is used only here. Error(kInvalid): `variables` name no endpoints.
  GceCloud(driver::cloud::AdapterEnvironment for_environment, std::shared_ptr<const GceConfig> provider,
           Variables variables, std::unique_ptr<net::HttpClient> client);

  driver::cloud::AdapterEnvironment environment;
  std::shared_ptr<const GceConfig> config;
  Endpoints endpoints;
  log::Logger logger{"nodepool.GceAdapter." + config->name.value};
  std::unique_ptr<net::HttpClient> http;
  TokenFetcher fetcher;
  driver::cloud::api::BearerSigner::Tokens tokens;
  driver::cloud::api::BearerSigner signer;
  Compute compute;
  std::optional<Storage> storage;  // the bucket of `object-storage`; none: it is not configured
  TaskGroup tasks;
  driver::cloud::MachineSizes<Candidate, TypeSize> types;
  driver::cloud::api::KeptAnswers<Family, ImageSource> families;  // the newest images (driver-gce.md 12)
  driver::cloud::RecentMachines<NewInstance> fresh;               // by name
  driver::cloud::AccountCounters quota;
  driver::cloud::OthersUse others;  // of its limits
  InstanceLists labelled;           // those with the provider's label, if its name can be one; else all
  InstanceLists all;
  driver::cloud::RareSweeps rare_sweeps;

  Loop& loop() { return environment.loop; }
  std::vector<Candidate> CandidatesOf(const GceLabel& label) const;
  // Error(kInvalid): the entry names no family, or the project has no image of it.
  Task<ImageSource> FindImage(GceCloudImage image);
};

// Whether the instance is this provider's, and the node's and the launch's that are given; empty: any.
bool IsOwn(const GceCloud& cloud, const GceInstance& instance, const std::string& node = "",
           const std::string& attempt = "");

// The images that the builder uploads to the project (driver-gce.md 13). `cloud` outlives them.
std::unique_ptr<driver::cloud::StagedImages> MakeImages(GceCloud& cloud);

// What the framework knows of an instance.
driver::cloud::Instance Describe(const GceCloud& cloud, const GceInstance& instance);

// The adapter to a project of Google Compute Engine in one region; each of its tasks is in a file of its own.
class GceAdapter : public driver::cloud::CloudAdapter<GceConfig, GceLabel, GcePool> {
 public:
  GceAdapter(driver::cloud::AdapterEnvironment environment,
             std::shared_ptr<const driver::ProviderConfig> config, Variables variables,
             std::unique_ptr<net::HttpClient> client);

  // Makes an instance and waits until it runs and has its addresses (driver-gce.md 7). Its name is stored
  // before it is made, with the launch's mark until the insert has been accepted.
  Task<driver::cloud::Instance> Create(driver::cloud::MachineReport& machine,
                                       driver::cloud::CreateParameters parameters) override;
  std::vector<std::string> Candidates(const driver::LabelConfig& label,
                                      const driver::PoolConfig& pool) override;
  // Deletes the instance, if it is the one that the id means, and waits until it is gone (driver-gce.md 10).
  // One of the same name that is somebody else's is left alone.
  Task<> Delete(driver::cloud::MachineReport& machine, boost::json::value external_id) override;
  // Zones that cannot be listed are left out, unless it is all of them.
  Task<std::vector<driver::cloud::Instance>> ListInstances() override;
  // Instances in whatever state, images and objects with this provider's marks (driver-gce.md 16).
  Task<std::vector<driver::cloud::Resource>> ListResources() override;
  Task<> DeleteResource(driver::cloud::Resource resource) override;
  // Of a zone that cannot be listed none is missing.
  Task<std::vector<boost::json::value>> MissingMachines(std::vector<boost::json::value> ids) override;
  // Those that are listed as stopped, or that Google has taken away (driver-gce.md 14).
  Task<std::vector<driver::cloud::AnnouncedEnd>> AnnouncedEnds(std::vector<boost::json::value> ids) override;
  Task<std::optional<std::string>> ConsoleLog(const driver::LabelConfig& label,
                                              boost::json::value external_id) override;
  // Of what the provider's labels use; everything else is unlimited. Afterwards UsedByOthers() is as new.
  Task<driver::QuotaInformation> QuotaLimits() override;
  // Also where no list shows their machines.
  std::optional<driver::QuotaInformation> UsedByOthers() override { return cloud_.others.Find(); }
  driver::QuotaInformation QuotaForLabel(const driver::LabelConfig& label) override;
  Task<std::vector<std::string>> FindFaults(const driver::ProviderConfig& config) override;
  Task<std::string> UploadImage(ImageUpload upload) override { return images_->Upload(std::move(upload)); }
  Task<> DeleteImage(std::string external_id) override { return images_->Delete(std::move(external_id)); }
  Task<std::vector<driver::ListedImage>> ListImages() override { return images_->List(); }
  Task<> Stop() override { co_await cloud_.tasks.Stop(); }

 private:
  GceCloud cloud_;
  std::unique_ptr<driver::cloud::StagedImages> images_;  // driver-gce.md 13
};

}  // namespace nodepool::drivers::gce

namespace nodepool::drivers {

// Driver `gce`: instances of Google Compute Engine. Files with credentials are read whenever a token is
// fetched.
class GceDriver : public driver::cloud::HttpDriver {
 public:
  // `variables` replaces the environment of the process.
  explicit GceDriver(std::optional<process::Environment> variables = std::nullopt);
};

}  // namespace nodepool::drivers
