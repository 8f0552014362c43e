#pragma once

#include <map>
#include <memory>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "async/async_cache.h"
#include "async/loop.h"
#include "driver/cloud/api/list_cache.h"
#include "drivers/aws/api/services.h"
#include "drivers/aws/config/aws_config.h"

namespace nodepool::drivers::aws {

// A disk that an image gives its instances.
struct BlockDevice {
  std::string name;        // "/dev/sda1"
  bool is_volume = false;  // else a disk of the host
  std::string snapshot_id;
  std::string type;
  std::optional<int> size;  // GiB
  std::optional<int> iops;
  std::optional<int> throughput;  // MiB/s
};

// An image that machines can boot (AMI).
struct MachineImage {
  std::string id;
  std::string name;
  std::string state;    // "available", "pending", ...
  std::string created;  // 2024-05-06T07:08:09.000Z
  std::string root_device;
  std::vector<BlockDevice> devices;
  std::map<std::string, std::string> tags = {};
  std::string state_reason = "";  // why its state is what it is

  // The volume that becomes the root: the one at `root_device`, else the first. Null: the image has no volume
  // there.
  const BlockDevice* Root() const;
};

std::vector<MachineImage> ReadImages(const pugi::xml_node& root);
// The newest that is available; null: there is none.
const MachineImage* NewestAvailable(const std::vector<MachineImage>& images);

// Finds images (driver-aws.md 14), with a memory.
class MachineImages {
 public:
  // Everything outlives it.
  MachineImages(Loop& loop, Ec2& ec2);

  // The id of a cloud image; by filters it is looked up at most every 5 minutes, and one that was found less
  // than an hour ago is used while EC2 does not answer. Error(kFail): none matches.
  Task<std::string> IdOf(AwsCloudImage image);

  // Error(kFail): there is no such image.
  Task<std::shared_ptr<const MachineImage>> Describe(std::string id);

  // Everything is looked up again; called when a launch was refused for its image.
  void Clear();

 private:
  using Key = std::vector<std::pair<std::string, std::vector<std::string>>>;  // the filters

  Task<std::string> FindNewest(Key filters);
  Task<std::shared_ptr<const MachineImage>> Load(std::string id);

  Ec2& ec2_;
  driver::cloud::api::KeptAnswers<Key, std::string> by_filters_;  // ids
  AsyncCache<std::string, std::shared_ptr<const MachineImage>> by_id_;
};

struct Volume {
  std::string id;
  std::map<std::string, std::string> tags;
  std::string instance = "";  // that it is attached to; empty: none
  std::string type = "";
  double size = 0;  // GiB
  double iops = 0;
};

std::vector<Volume> ReadVolumes(const pugi::xml_node& root);

// The provider's volumes that no instance uses; the others are deleted with their instances.
Task<std::vector<Volume>> ListUnusedVolumes(Ec2& ec2, std::string provider);

// All of the account.
Task<std::vector<Volume>> ListAllVolumes(Ec2& ec2);

// One that does not exist is success.
Task<> DeleteVolume(Ec2& ec2, std::string id);

}  // namespace nodepool::drivers::aws
