#pragma once

#include <memory>
#include <string>
#include <vector>

#include "driver/cloud/cloud_provider.h"
#include "driver/cloud/work_count.h"
#include "driver/image_store.h"
#include "driver/operator_tools.h"

namespace nodepool::driver::cloud {

// An adapter that is not started: it makes only the calls that it is asked for.
class UnstartedAdapter {
 public:
  UnstartedAdapter(const DriverEnvironment& environment, const MakeAdapter& make);
  Adapter* operator->() const { return adapter_.get(); }
  Adapter& operator*() const { return *adapter_; }

 private:
  Framework framework_;
  std::unique_ptr<Adapter> adapter_;
};

// The images of a cloud provider. Each call has a time-out.
class CloudImages : public ImageStore {
 public:
  CloudImages(const DriverEnvironment& environment, std::shared_ptr<const ProviderConfig> config,
              const MakeAdapter& make);

  const ProviderConfig& config() const override { return *config_; }
  Task<std::string> UploadImage(ImageUploadParameters upload) override;
  Task<> DeleteImage(std::string external_id) override;
  Task<> Stop() override;

 private:
  Loop& loop_;
  std::shared_ptr<const ProviderConfig> config_;
  UnstartedAdapter adapter_;
  WorkCount work_;
};

class CloudTools : public OperatorTools {
 public:
  CloudTools(const DriverEnvironment& environment, std::shared_ptr<const ProviderConfig> config,
             const MakeAdapter& make);

  Task<std::vector<ListedMachine>> ListMachines() override;
  Task<std::vector<ListedImage>> ListImages() override;
  Task<std::vector<std::string>> FindFaults() override;
  Task<> DeleteResources(const NodeId& id, const Node& node) override;
  Task<> Stop() override;

 private:
  Loop& loop_;
  std::shared_ptr<const ProviderConfig> config_;
  UnstartedAdapter adapter_;
};

// Deletes the machine of a node, if it has one, and ends when it is gone. Everything outlives the task.
Task<> DeleteMachineOf(Loop& loop, Adapter& adapter, const ProviderConfig& config, NodeId id,
                       const Node& node);

}  // namespace nodepool::driver::cloud
