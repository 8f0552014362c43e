#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "drivers/gce/gce_adapter.h"

// The images that the builder uploads to a project.
namespace nodepool::drivers::gce {

// Makes an object of the file's archive in parts, of which one is in memory; after a fault it goes on where
// the service is (driver-gce.md 13). What a failure leaves ends by itself, or is removed with the object.
// `sent`: called with how much of the file is in parts that were sent. Error(kFail): the object is not what
// was sent.
Task<> PutArchive(GceCloud& cloud, std::shared_ptr<const driver::cloud::ImageFile> file, std::string key,
                  std::map<std::string, std::string> metadata, std::function<void(std::uint64_t)> sent);

// `cloud` outlives it.
std::unique_ptr<driver::cloud::StagedImages> MakeImages(GceCloud& cloud);

}  // namespace nodepool::drivers::gce
