#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "async/task.h"
#include "base/clock.h"
#include "driver/provider_config.h"

namespace nodepool::driver {

// Told the id that a cloud has given to an image, before the cloud has all of it; awaited.
using AnnounceImage = std::function<Task<>(std::string external_id)>;

// Everything that bringing an image into a cloud needs (builder.md 11).
struct ImageUploadParameters {
  std::shared_ptr<const ProviderDiskImage> image;
  std::string name;              // in the cloud
  std::string filename;          // the local file
  std::string format;            // of the file
  boost::json::object metadata;  // to be stored with the image; tells whose it is
  std::optional<std::string> md5;
  std::optional<std::string> sha256;
  Duration timeout = std::chrono::seconds(3600);  // for all of it
  // To be called once the image has an id that deletes it, so that somebody else can do
  // so should this process die. A cloud that tells the id only at the end needs no call.
  AnnounceImage announce = [](std::string) -> Task<> { co_return; };
};

}  // namespace nodepool::driver
